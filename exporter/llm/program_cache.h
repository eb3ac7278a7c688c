// Programs that were made of language models, kept for the next start.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace taper::llm {

/// A folder with a folder for each kept model: its program, and its weights as this processor reads
/// them (a pack store). Any number of processes may use it at once: files appear complete, and a
/// process keeps those that it runs when they are removed.
class ProgramCache {
 public:
  /// What is kept of a model.
  struct Kept {
    std::filesystem::path folder;
    uintmax_t size_bytes;
    std::filesystem::file_time_type last_used;
  };

  explicit ProgramCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// What the environment variable TAPER_CACHE names; otherwise `taper` in XDG_CACHE_HOME or in
  /// ~/.cache. Empty if TAPER_CACHE is "off", or if there is no home.
  static std::filesystem::path default_folder();

  const std::filesystem::path& folder() const { return folder_; }
  /// The last used first. Folders whose names `folder_of` does not give are not of models: nothing
  /// here looks at them or removes them.
  std::vector<Kept> models() const;

  /// The folder of a model, whether it is there or not. `model` is a folder or a .gguf file. The
  /// name depends on the model's name, on the content of its files, on `options`, on the processor
  /// and on this build of Taper. It does not depend on where the model lies. Throws FileError if a
  /// file of the model cannot be read.
  std::filesystem::path folder_of(const std::filesystem::path& model,
                                  const std::string& options) const;
  /// Makes the folder of a model, and room for about `size_bytes`: models that were not used for
  /// longest go first. "": there is room; otherwise why there is none, in words.
  std::string make_room(const std::filesystem::path& folder_of_model, uintmax_t size_bytes) const;
  /// Notes that a model is in use now.
  void use(const std::filesystem::path& folder_of_model) const;
  /// Removes all models, and returns them.
  std::vector<Kept> clear() const;

  static constexpr char program[] = "program.taper";       ///< in the folder of a model
  static constexpr uintmax_t most_bytes = 10'000'000'000;  ///< of all models
  static constexpr int most_days = 90;                     ///< that a model stays unused

 private:
  std::filesystem::path folder_;
};

}  // namespace taper::llm
