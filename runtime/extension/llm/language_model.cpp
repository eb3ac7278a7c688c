#include "taper/runtime/extension/llm/language_model.h"

#include <algorithm>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/language_model_parts.h"
#include "taper/runtime/extension/llm/model_identity.h"

namespace taper::llm {
namespace {

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

void LanguageModel::Parts::open() {
  const auto look_at = [&](const char* name) {
    const Result<Method> method = module.method(name);
    if (!method.ok()) throw Failure{method.error(), module.message()};
    return row_method(method.value(), name);
  };
  const RowMethod forward = look_at(method_name);
  if (forward.rows != 1)
    refuse(std::string("its method `") + method_name + "` takes " + std::to_string(forward.rows) +
           " texts at once; Taper wants one");
  chunk = forward.chunk;
  if (const TensorRef logits = forward.method.output(0);
      logits.shape != nullptr && logits.shape->rank == 3)
    vocabulary = logits.shape->sizes[2];
  if (forward.by_row) {
    const RowMethod decode = look_at(decode_name);
    const TensorRef logits = decode.method.output(0);
    if (!decode.by_row || decode.chunk != 1 || logits.shape == nullptr || logits.shape->rank != 3)
      refuse(std::string("its method `") + decode_name +
             "` does not take a token of each row, and give logits");
    rows = decode.rows, vocabulary = logits.shape->sizes[2];
  }
  first = std::make_shared<RowSession>(module, rows);
}

TakenRow LanguageModel::Parts::take_row() const {
  const std::lock_guard lock(making);
  if (const int64_t row = first->take_row(); row >= 0) return {first, row};
  others.erase(std::remove_if(others.begin(), others.end(), [](auto& s) { return s.expired(); }),
               others.end());
  for (const std::weak_ptr<RowSession>& other : others) {
    std::shared_ptr<RowSession> session = other.lock();
    if (session == nullptr) continue;
    if (const int64_t row = session->take_row(); row >= 0) return {std::move(session), row};
  }
  auto session = std::make_shared<RowSession>(module, rows, threads);
  others.push_back(session);
  const int64_t row = session->take_row();
  return {std::move(session), row};
}

uint64_t LanguageModel::Parts::identity() const {
  const std::lock_guard lock(making);
  if (!own_identity) own_identity = identity_of(module, text);
  return *own_identity;
}

uint64_t LanguageModel::Parts::identity_of_adapter(index_t adapter) const {
  if (adapter == 0) return 0;
  const std::lock_guard lock(making);
  const auto [at, is_new] = adapter_identities.try_emplace(adapter);
  if (is_new) at->second = llm::identity_of_adapter(module, text, adapter);
  return at->second;
}

Result<LanguageModel> LanguageModel::load(const std::string& path, KernelSet kernels,
                                          const ModuleOptions& options) {
  return guarded<LanguageModel>(options.message, [&] {
    Module module = module_of(path, kernels, options);
    return naming(path, [&] {
      TextParts text = text_of(module);
      auto parts = std::make_shared<Parts>(std::move(module), std::move(text), options.threads);
      parts->open();
      return LanguageModel(std::move(parts));
    });
  });
}

const TextParts& LanguageModel::text() const { return parts_->text; }
bool LanguageModel::has_all_logits() const { return has_method(all_logits_name); }
bool LanguageModel::has_states() const { return has_method(states_name); }
int64_t LanguageModel::rows() const { return parts_->rows; }
size_t LanguageModel::cache_bytes() const {
  const std::lock_guard lock(parts_->making);
  return parts_->module.program().session_bytes() / static_cast<size_t>(parts_->rows);
}

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
    if (!text.tools.describes) input = with_tools_as_text(std::move(input), text.tools);
    input.messages = parts_->user_text.mark_messages(input.messages);
    std::string why;
    const Result<std::string> prompt = text.chat->render(input, &why);
    if (!prompt.ok()) throw Failure{prompt.error(), "its chat template: " + why};
    return parts_->user_text.encode(prompt.value());
  });
}

}  // namespace taper::llm
