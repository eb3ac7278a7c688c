#include "taper/exporter/llm/text_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>

#include "taper/exporter/llm/program.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::llm {
namespace {

constexpr int64_t default_context = 4096, chunk = 512;

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

}  // namespace

struct TextModel::Parts {
  std::string path;
  TextParts text;
  std::optional<Module> module;
  int64_t context = 0, position = 0;
  bool is_recurrent = false;  ///< it remembers more than a cache
  std::vector<float> logits;

  void load(const TextModelOptions& options);
  void run(const std::vector<TokenId>& ids, size_t first, size_t count);
};

void TextModel::Parts::load(const TextModelOptions& options) {
  const auto stage = [&](const char* what) {
    if (options.stage) options.stage(what);
  };
  stage("loading");
  text = read_text_parts(path);
  if (!text.tokenizer)
    throw ExportError(path + ": it has no tokenizer; put a tokenizer.json beside its weights");
  LoadOptions load;
  load.capacity = options.context;
  if (options.context == 0) load.most_capacity = default_context;
  const Model model = llm::load(path, load);
  context = model.config.capacity;
  is_recurrent = model.config.inner > 0 || std::ranges::find(model.config.convolutional, true) !=
                                               model.config.convolutional.end();
  logits.resize(static_cast<size_t>(model.config.vocabulary));

  stage("tracing");
  Exporter exporter;
  add_methods(exporter, *model.decoder, {.chunk = chunk});
  const ProgramFile file;
  ExportOptions written;
  written.exact = options.exact, written.quiet = true, written.debug = false;
  written.stage = options.stage;
  exporter.write(file.path(), written);

  stage("packing");
  std::string why;
  ModuleOptions loaded;
  loaded.threads = options.threads, loaded.message = &why;
  Result<Module> opened = Module::load(file.path(), loaded);
  if (!opened.ok()) throw ExportError(path + ": " + why);
  module.emplace(std::move(*opened));
}

void TextModel::Parts::run(const std::vector<TokenId>& ids, size_t first, size_t count) {
  const std::vector<int64_t> part(ids.begin() + static_cast<std::ptrdiff_t>(first),
                                  ids.begin() + static_cast<std::ptrdiff_t>(first + count));
  const Error error = module->run(
      "forward", {Input(part.data(), {1, static_cast<index_t>(count)}), Input(&position, {1})},
      {logits});
  if (error != Error::ok) throw ExportError(path + ": " + module->message());
  position += static_cast<int64_t>(count);
}

TextModel::TextModel(const std::string& path, const TextModelOptions& options)
    : parts_(std::make_unique<Parts>()) {
  parts_->path = path;
  parts_->load(options);
}
TextModel::~TextModel() = default;

const Tokenizer& TextModel::tokenizer() const { return *parts_->text.tokenizer; }
int64_t TextModel::context() const { return parts_->context; }
int64_t TextModel::position() const { return parts_->position; }
bool TextModel::ends(TokenId id) const { return parts_->text.ends.contains(id); }

std::vector<TokenId> TextModel::prompt(const std::string& messages) const {
  const TextParts& text = parts_->text;
  if (!text.chat)
    throw ExportError(parts_->path + ": it has no chat template; give a text to continue");
  ChatInput input;
  input.messages = messages, input.add_generation_prompt = true;
  input.bos_token = text.bos_token, input.eos_token = text.eos_token;
  std::string why;
  const Result<std::string> prompt = text.chat->render(input, &why);
  if (!prompt.ok()) throw ExportError(parts_->path + ": its chat template: " + why);
  EncodeOptions plain;
  plain.add_special_tokens = false;  // the template has written them
  return text.tokenizer->encode(prompt.value(), plain);
}

Span<float> TextModel::append(const std::vector<TokenId>& ids) {
  Parts& p = *parts_;
  if (ids.empty()) throw ExportError(p.path + ": there is no token to continue");
  if (static_cast<int64_t>(ids.size()) > p.context - p.position)
    throw ExportError(p.path + ": " + std::to_string(ids.size()) + " tokens do not fit behind " +
                      std::to_string(p.position) + " in a context of " + std::to_string(p.context) +
                      "; ask for a larger --context");
  for (size_t first = 0; first < ids.size(); first += chunk)
    p.run(ids, first, std::min(ids.size() - first, static_cast<size_t>(chunk)));
  return {p.logits.data(), static_cast<index_t>(p.logits.size())};
}

void TextModel::rewind(int64_t position) {
  Parts& p = *parts_;
  const int64_t wanted = std::clamp<int64_t>(position, 0, p.position);
  p.position = p.is_recurrent && wanted < p.position ? 0 : wanted;
}

}  // namespace taper::llm
