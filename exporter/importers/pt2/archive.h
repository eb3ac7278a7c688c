// The container of an exported program. It hides the differences between its three generations
// (torch 2.6–2.7, 2.8, 2.9 and later).
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/importers/pt2/program.h"
#include "taper/exporter/io/stored_tensor.h"
#include "taper/exporter/io/zip.h"

namespace taper::pt2 {

class Archive {
 public:
  /// Reads the directory of an archive in memory, which must outlive this object. Messages begin
  /// with `name`. Throws io::FileError for any file that is not an exported program; the message
  /// says what the file is, and what to do.
  Archive(std::span<const std::byte> file, std::string name);

  /// The models in the archive, in alphabetical order.
  const std::vector<std::string>& models() const { return models_; }
  /// The model of this name. For an empty name: "model", or the only model. Throws io::FileError,
  /// which lists the models.
  const std::string& choose(const std::string& model) const;

  std::string_view program_json(const std::string& model) const;

  /// The file of `torch.save` with the arguments that the model was exported with. Empty if the
  /// archive holds none.
  std::span<const std::byte> example_inputs(const std::string& model) const;

  /// A model's stored tensors by path: parameters, buffers, constants.
  class Payloads {
   public:
    /// The tensor of a path. `constants_first`: looks among the constants first, then among the
    /// weights; otherwise the other way round. Throws io::FileError if there is none, if its record
    /// is damaged, pickled or without data, or if Taper does not have its dtype.
    io::StoredTensor at(const std::string& path, bool constants_first) const;
    /// A plain tensor inside the tensor subclass of a path. Throws io::FileError.
    io::StoredTensor inner(const std::string& path, const std::string& attribute) const;

   private:
    friend class Archive;
    struct Part {
      std::map<std::string, PayloadMeta> raw;              ///< torch 2.9 and later
      std::map<std::string, io::StoredTensor> checkpoint;  ///< before
      std::string folder;
    };
    const Archive* archive_ = nullptr;
    Part weights_, constants_;
    std::optional<io::StoredTensor> find(const Part& part, const std::string& path) const;
  };
  Payloads payloads(const std::string& model) const;

 private:
  enum class Generation : uint8_t { legacy, pickled, raw };
  [[noreturn]] void fail(const std::string& what) const;
  void find_root();
  void find_models();
  [[noreturn]] void refuse_other_kinds() const;
  /// Complex numbers of two f64, rounded to f32. The result lives as long as the archive.
  std::span<const std::byte> in_complex64(std::span<const std::byte> complex128) const;
  Payloads::Part part(const std::string& model, const std::string& kind) const;

  io::ZipArchive zip_;
  std::string name_, root_;
  Generation generation_ = Generation::raw;
  std::vector<std::string> models_;
  mutable std::map<const std::byte*, std::vector<std::byte>> narrowed_;  ///< storages
};

}  // namespace taper::pt2
