#include "taper/runtime/extension/llm/language_model.h"

#include <algorithm>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/language_model_parts.h"

namespace taper::llm {
namespace {

bool is_tensor(const TensorRef& t, DType dtype, int rank) {
  return t.shape != nullptr && t.dtype == dtype && t.shape->rank == rank;
}

Module module_of(const std::string& path, KernelSet kernels, ModuleOptions options) {
  std::string why;
  options.message = &why;
  Result<Module> module = Module::load(path, kernels, options);
  if (!module.ok()) throw Failure{module.error(), why};
  return std::move(module.value());
}

// Calls `make`; what it throws names the file.
template <class Make>
auto naming(const std::string& path, Make make) {
  try {
    return make();
  } catch (Failure& failure) {
    failure.why.insert(0, path + ": ");
    throw;
  }
}

TextParts text_of(const Module& module) {
  std::string why;
  Result<TextParts> text = read_text_parts(module.program(), &why);
  if (!text.ok()) throw Failure{text.error(), why};
  return std::move(text.value());
}

}  // namespace

int64_t chunk_of(const Method& method, const char* name) {
  const TensorRef ids = method.input(0), start = method.input(1);
  if (method.input_count() != 2 || method.output_count() < 1 || !is_tensor(ids, DType::i64, 2) ||
      !is_tensor(start, DType::i64, 1) || ids.shape->sizes[0] != 1 || start.shape->sizes[0] != 1)
    refuse(std::string("its method `") + name +
           "` does not take ids (1, n) and start (1), both i64");
  return ids.shape->sizes[1];
}

Result<LanguageModel> LanguageModel::load(const std::string& path, KernelSet kernels,
                                          const ModuleOptions& options) {
  return guarded<LanguageModel>(options.message, [&] {
    Module module = module_of(path, kernels, options);
    return naming(path, [&] {
      TextParts text = text_of(module);
      auto parts = std::make_shared<Parts>(std::move(module), std::move(text), options.threads);
      const Result<Method> method = parts->module.method(method_name);
      if (!method.ok()) throw Failure{method.error(), parts->module.message()};
      parts->chunk = chunk_of(method.value(), method_name);
      return LanguageModel(std::move(parts));
    });
  });
}

const TextParts& LanguageModel::text() const { return parts_->text; }
bool LanguageModel::has_all_logits() const { return has_method(all_logits_name); }
bool LanguageModel::has_states() const { return has_method(states_name); }

bool LanguageModel::has_method(const char* name) const {
  const std::lock_guard lock(parts_->making);
  const std::vector<std::string> names = parts_->module.method_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<std::vector<TokenId>> LanguageModel::prompt(ChatInput input, std::string* message) const {
  return guarded<std::vector<TokenId>>(message, [&] {
    const TextParts& text = parts_->text;
    if (!text.chat)
      throw Failure{Error::not_supported,
                    "the model has no chat template; give a text to continue"};
    input.bos_token = text.bos_token, input.eos_token = text.eos_token;
    input.add_generation_prompt = !input.continue_final_message;
    if (!text.tools.describes) input = with_tools_as_text(std::move(input));
    input.messages = parts_->user_text.mark_messages(input.messages);
    std::string why;
    const Result<std::string> prompt = text.chat->render(input, &why);
    if (!prompt.ok()) throw Failure{prompt.error(), "its chat template: " + why};
    return parts_->user_text.encode(prompt.value());
  });
}

}  // namespace taper::llm
