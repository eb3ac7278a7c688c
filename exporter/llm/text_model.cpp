#include "taper/exporter/llm/text_model.h"

#include <filesystem>
#include <map>
#include <optional>
#include <random>

#include "taper/exporter/io/backends.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/llm/adapter_slots.h"
#include "taper/exporter/llm/program.h"
#include "taper/exporter/llm/program_cache.h"
#include "taper/exporter/llm/text_assets.h"

namespace taper::llm {
namespace {

namespace fs = std::filesystem;

constexpr int64_t default_context = 4096;
// Twice as many take 30 MB more in a model of 1.2 billion weights, and are read 2 % faster.
constexpr int64_t chunk = 256;
constexpr int64_t draft_chunk = 8;  // a token and seven guesses

/// A file that is mapped while the model runs, so that weights that are packed are in memory once.
/// Its name goes as soon as it is open.
class ProgramFile {
 public:
  ProgramFile() {
    std::random_device random;
    path_ = fs::temp_directory_path() /
            ("taper-" + std::to_string(random()) + std::to_string(random()) + ".taper");
  }
  ~ProgramFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

/// The program's file cannot be written.
class CannotWrite : public ExportError {
 public:
  using ExportError::ExportError;
};

void begin(const TextModelOptions& options, const char* stage) {
  if (options.stage) options.stage(stage);
}
void note(const TextModelOptions& options, const std::string& text) {
  if (options.note) options.note(text);
}

/// Of a program whose weights lie in the files of the model.
ModuleOptions module_options(const fs::path& model, const TextModelOptions& options,
                             std::string& why) {
  ModuleOptions loaded;
  loaded.threads = options.threads, loaded.message = &why;
  loaded.backends = io::backends();
  const fs::path folder = fs::is_directory(model) ? model : model.parent_path();
  loaded.weights_folder = folder.empty() ? "." : folder.string();
  return loaded;
}

/// The message of a failed load names the program's file: `path` is the name to show instead.
LanguageModel load_program(const fs::path& program, const std::string& path,
                           const TextModelOptions& options,
                           std::map<std::string, OwnedTensor> slots = {}) {
  std::string why;
  ModuleOptions loaded = module_options(path, options, why);
  loaded.slots = std::move(slots);
  Result<LanguageModel> model = LanguageModel::load(program.string(), loaded);
  if (model.ok()) return std::move(model.value());
  if (why.starts_with(program.string())) why.replace(0, program.string().size(), path);
  throw ExportError(why);
}

/// A program that `taper export` wrote. It may have room for an adapter.
LanguageModel load_exported(const std::string& path, const TextModelOptions& options) {
  const AdapterFiles adapters = adapter_files(options.lora);
  if (!adapters.by_name.empty() && !adapter_slots(path, "").empty())
    throw ExportError(path + ": a program with slots takes one adapter, without a name");
  if (options.exact || options.context > 0 || !adapters.by_name.empty() || options.before_passes ||
      options.cache_type != CacheType::f32)
    throw ExportError(path +
                      ": a program has the context, the exactness and the weights that it was "
                      "exported with; export it again, with --context, --exact, "
                      "--cache-dtype, --lora or --recipe");
  return load_program(path, path, options, adapter_slots(path, adapters.always));
}

void write_program(const std::string& path, const fs::path& program,
                   const TextModelOptions& options) {
  LoadOptions load;
  const AdapterFiles adapters = adapter_files(options.lora);
  load.capacity = options.context, load.lora = adapters.always, load.adapters = adapters.by_name;
  if (options.context == 0) load.most_capacity = default_context;
  load.batch = options.rows, load.cache = options.cache_type;
  const Model model = llm::load(path, load);
  Exporter exporter;
  const std::vector<io::Asset> assets = text_assets(path, model.config);
  if (assets.empty())
    throw ExportError(path + ": it has no tokenizer; put a tokenizer.json beside its weights");
  for (const io::Asset& asset : assets) exporter.asset(asset);

  begin(options, "tracing");
  add_methods(exporter, *model.decoder,
              {.chunk = chunk,
               .all_logits = options.draft,
               .all_logits_chunk = draft_chunk,
               .states = options.states,
               .by_row = options.rows > 1});
  ExportOptions written;
  written.exact = options.exact, written.quiet = true, written.debug = false;
  written.stage = options.stage, written.before_passes = options.before_passes;
  written.sources = model.files;
  try {
    exporter.write(program, written);
  } catch (const io::FileError& error) {
    throw CannotWrite(error.what());
  }
}

/// A model's folder in the cache.
class Keeper {
 public:
  /// Throws FileError if a file of the model cannot be read.
  Keeper(const std::string& path, const TextModelOptions& options)
      : path_(path), options_(options), cache_(options.cache) {
    std::string what =
        options.edit + '\n' + std::to_string(options.context) + ' ' + std::to_string(options.rows);
    const AdapterFiles adapters = adapter_files(options.lora);
    const auto add = [&](const std::string& name, const std::string& adapter) {
      what += ' ' + name + ' ' + cache_.folder_of(adapter, "").filename().string();
    };
    if (!adapters.always.empty()) add("", adapters.always);
    for (const NamedAdapter& adapter : adapters.by_name) add(adapter.name, adapter.path);
    if (options.cache_type != CacheType::f32)
      what += ' ' + cache_type_names()[static_cast<size_t>(options.cache_type)];
    for (const bool choice : {options.exact, options.draft, options.states})
      what += choice ? " 1" : " 0";
    folder_ = cache_.folder_of(path, what);
  }

  /// nullopt: it is not there, or damaged.
  std::optional<LanguageModel> load() const {
    const fs::path program = folder_ / ProgramCache::program;
    std::error_code none;
    if (!fs::exists(program, none)) return std::nullopt;
    cache_.use(folder_);
    begin(options_, "packing");
    std::string why;
    ModuleOptions loaded = module_options(path_, options_, why);
    loaded.verify = true, loaded.pack_store = folder_.string();
    Result<LanguageModel> model = LanguageModel::load(program.string(), loaded);
    if (model.ok()) return std::move(model.value());
    note(options_, "makes the kept program again, which cannot be used: " + why);
    return std::nullopt;
  }
  /// Makes the program, and loads it. nullopt: it cannot be kept.
  std::optional<LanguageModel> make() const {
    std::string why = cache_.make_room(folder_, expected_bytes());
    std::error_code none;
    try {
      if (why.empty()) write_program(path_, folder_ / ProgramCache::program, options_);
    } catch (const CannotWrite& error) {
      why = error.what();
    } catch (...) {
      fs::remove(folder_, none);  // if it is empty
      throw;
    }
    if (!why.empty()) fs::remove(folder_, none);
    std::optional<LanguageModel> model;
    if (why.empty()) model = load();
    if (model)
      note(options_, "the next start will be faster: " + folder_.string() + " keeps " +
                         size_text() + " (`taper cache`)");
    else if (!why.empty())
      note(options_, "the next start will not be faster: nothing can be kept in " +
                         cache_.folder().string() + ": " + why);
    return model;
  }

 private:
  /// The packed weights, the tables and the tokenizer; and the weights if they are not those of the
  /// model's files.
  uintmax_t expected_bytes() const {
    uintmax_t weights = 0;
    if (!fs::is_directory(path_)) weights = fs::file_size(path_);
    if (fs::is_directory(path_))
      for (const auto& entry : fs::directory_iterator(path_))
        if (entry.path().extension() == ".safetensors" && entry.is_regular_file())
          weights += entry.file_size();
    return (uintmax_t{32} << 20) + (options_.before_passes ? 2 : 1) * weights;
  }
  std::string size_text() const {
    for (const ProgramCache::Kept& model : cache_.models())
      if (model.folder == folder_) return io::bytes_text(static_cast<int64_t>(model.size_bytes));
    return "nothing";
  }

  const std::string& path_;
  const TextModelOptions& options_;
  const ProgramCache cache_;
  fs::path folder_;
};

/// nullopt: nothing is kept of this model.
std::optional<LanguageModel> load_kept(const std::string& path, const TextModelOptions& options) {
  if (options.cache.empty() || (options.before_passes && options.edit.empty())) return std::nullopt;
  const Keeper keeper(path, options);
  std::optional<LanguageModel> model = keeper.load();
  return model ? std::move(model) : keeper.make();
}

}  // namespace

LanguageModel load_text_model(const std::string& path, const TextModelOptions& options) {
  begin(options, "loading");
  if (!is_language_model(path)) return load_exported(path, options);
  if (std::optional<LanguageModel> kept = load_kept(path, options)) return std::move(*kept);
  const ProgramFile file;
  write_program(path, file.path(), options);
  begin(options, "packing");
  return load_program(file.path(), path, options);
}

}  // namespace taper::llm
