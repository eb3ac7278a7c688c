#include "taper/exporter/llm/text_model.h"

#include <filesystem>
#include <random>

#include "taper/exporter/llm/program.h"
#include "taper/exporter/llm/text_assets.h"

namespace taper::llm {
namespace {

constexpr int64_t default_context = 4096, chunk = 512;
constexpr int64_t draft_chunk = 8;  // a token and seven guesses

/// A file that is mapped while the model runs, so that weights that are packed are in memory once.
/// Its name goes as soon as it is open.
class ProgramFile {
 public:
  ProgramFile() {
    std::random_device random;
    path_ = std::filesystem::temp_directory_path() /
            ("taper-" + std::to_string(random()) + std::to_string(random()) + ".taper");
  }
  ~ProgramFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// The message of a failed load names the program's file: `path` is the name to show instead.
LanguageModel load_program(const std::string& program, const std::string& path,
                           const TextModelOptions& options) {
  std::string why;
  ModuleOptions loaded;
  loaded.threads = options.threads, loaded.message = &why;
  Result<LanguageModel> model = LanguageModel::load(program, loaded);
  if (model.ok()) return std::move(model.value());
  if (why.starts_with(program)) why.replace(0, program.size(), path);
  throw ExportError(why);
}

void write_program(const std::string& path, const std::string& program,
                   const TextModelOptions& options) {
  LoadOptions load;
  load.capacity = options.context, load.lora = options.lora;
  if (options.context == 0) load.most_capacity = default_context;
  load.batch = options.rows;
  const Model model = llm::load(path, load);
  Exporter exporter;
  const std::vector<io::Asset> assets = text_assets(path, model.config);
  if (assets.empty())
    throw ExportError(path + ": it has no tokenizer; put a tokenizer.json beside its weights");
  for (const io::Asset& asset : assets) exporter.asset(asset);

  if (options.stage) options.stage("tracing");
  add_methods(exporter, *model.decoder,
              {.chunk = chunk,
               .all_logits = options.draft,
               .all_logits_chunk = draft_chunk,
               .states = options.states,
               .by_row = options.rows > 1});
  ExportOptions written;
  written.exact = options.exact, written.quiet = true, written.debug = false;
  written.stage = options.stage, written.before_passes = options.before_passes;
  exporter.write(program, written);
}

}  // namespace

LanguageModel load_text_model(const std::string& path, const TextModelOptions& options) {
  if (options.stage) options.stage("loading");
  if (!is_language_model(path)) {
    if (options.exact || options.context > 0 || !options.lora.empty() || options.before_passes)
      throw ExportError(
          path +
          ": a program has the context, the exactness and the weights that it was "
          "exported with; export it again, with --context, --exact, --lora or --recipe");
    return load_program(path, path, options);
  }
  const ProgramFile file;
  write_program(path, file.path(), options);
  if (options.stage) options.stage("packing");
  return load_program(file.path(), path, options);
}

}  // namespace taper::llm
