#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "taper/runtime/core/dense_copy.h"
#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/language_model.h"
#include "taper/runtime/extension/llm/language_model_parts.h"
#include "taper/runtime/extension/module/message.h"
#include "taper/runtime/extension/module/region.h"

namespace taper::llm {
namespace {

Region region_of(size_t size, const char* what, Region::Use use) {
  Region region(size, use);
  if (!region.is_there())
    throw Failure{Error::out_of_memory, std::string("a conversation needs ") +
                                            std::to_string(size) + " bytes for its " + what};
  return region;
}

// States and a method beside those of the module.
class Memory {
 public:
  /// Delegates to the constructor of an empty memory, so that the destructor runs if this one
  /// throws.
  Memory(Module& module, const Threads* threads) : Memory() {
    const Result<ModuleRequirements> needed = module.requirements(method_name);
    if (!needed.ok()) throw Failure{needed.error(), module.message()};
    session_memory_.emplace(region_of(needed.value().session, "caches", Region::Use::all));
    method_memory_.emplace(region_of(needed.value().method.total(), "work", Region::Use::part));
    ErrorInfo info;
    SessionOptions options;
    options.threads = threads, options.info = &info, options.zeroed = true;
    Result<Session> session = Session::create(module.program(), *session_memory_, options);
    if (!session.ok()) fail(session.error(), info);
    session_.emplace(session.value());
    method_.emplace(create(method_name, *method_memory_));
  }
  Memory(const Memory&) = delete;
  ~Memory() {
    for (auto& [name, more] : more_)
      if (more.method) (void)more.method->close();
    if (method_) (void)method_->close();
    if (session_) (void)session_->close();
  }
  Method& method() { return *method_; }
  /// Another method. It is made when it is asked for.
  Method& more(Module& module, const char* name) {
    Extra& extra = more_[name];
    if (extra.method) return *extra.method;
    const Result<ModuleRequirements> needed = module.requirements(name);
    if (!needed.ok()) throw Failure{needed.error(), module.message()};
    extra.memory.emplace(region_of(needed.value().method.total(), "work", Region::Use::part));
    return extra.method.emplace(create(name, *extra.memory));
  }

 private:
  struct Extra {
    std::optional<Region> memory;
    std::optional<Method> method;
  };
  Memory() = default;
  Method create(const char* name, Region& memory) {
    ErrorInfo info;
    Result<Method> method = Method::create(*session_, name, MethodMemory(memory), &info);
    if (!method.ok()) fail(method.error(), info);
    return method.value();
  }
  [[noreturn]] static void fail(Error error, ErrorInfo& info) {
    info.error = error;
    throw Failure{error, describe(info)};
  }

  std::optional<Region> session_memory_, method_memory_;
  std::optional<Session> session_;
  std::optional<Method> method_;
  std::map<std::string, Extra> more_;
};

}  // namespace

struct Sequence::Parts {
  explicit Parts(const LanguageModel& of) : model(of) {
    const LanguageModel::Parts& shared = *model.parts_;
    const std::lock_guard lock(shared.making);
    takes_module = !shared.in_use.exchange(true, std::memory_order_acquire);
    if (takes_module)
      method.emplace(shared.module.method(method_name).value());  // `load` has created it
    else
      method.emplace(own.emplace(shared.module, shared.threads).method());
  }
  Parts(const Parts&) = delete;
  ~Parts() {
    if (takes_module) model.parts_->in_use.store(false, std::memory_order_release);
  }

  Error fail(Error error, std::string why) { return message = std::move(why), error; }
  Error run(Method& with, Span<const TokenId> ids, const std::atomic<bool>* cancel);
  Error read_rows(Method& of);
  Error require_room(index_t count);
  /// A method that gives rows of every token.
  struct Extra {
    const char *name, *rows;
    std::optional<Method> method;  ///< when it was asked for
    int64_t chunk = 0;
  };
  Method* find(Extra& extra);
  Result<Span<float>> append(Extra& extra, Span<const TokenId> ids,
                             const std::atomic<bool>* cancel);

  LanguageModel model;
  bool takes_module = false;
  std::optional<Memory> own;  ///< if another sequence has the module's session
  std::optional<Method> method;
  Extra all{all_logits_name, "logits", {}, 0}, states{states_name, "states", {}, 0};
  std::vector<TokenId> tokens;
  std::vector<int64_t> wide;  ///< the ids of a chunk
  std::vector<float> rows;    ///< the logits or states that the last call gave
  std::string message;
};

// Reads at most a chunk.
Error Sequence::Parts::run(Method& with, Span<const TokenId> ids, const std::atomic<bool>* cancel) {
  wide.assign(ids.begin(), ids.end());
  const auto start = static_cast<int64_t>(tokens.size());
  Limits limits;
  limits.cancel = cancel;
  Error e = with.set_input(0, wide.data(), {1, ids.size()});
  if (e == Error::ok) e = with.set_input(1, &start, {1});
  if (e == Error::ok) e = with.execute(limits);
  if (e == Error::ok) return tokens.insert(tokens.end(), ids.begin(), ids.end()), Error::ok;
  // what such a model remembers may be that of an unfinished step
  if (!model.text().rewinds) tokens.clear();
  return fail(e, describe(with.last_error()));
}

Error Sequence::Parts::read_rows(Method& of) {
  const TensorRef t = of.output(0);
  if (t.shape == nullptr || t.dtype != DType::f32 || t.shape->numel() < 1)
    return fail(Error::invalid_program, "the first output of a method is not in f32");
  rows.resize(static_cast<size_t>(t.shape->numel()));
  copy_dense(t, reinterpret_cast<std::byte*>(rows.data()));
  return Error::ok;
}

Error Sequence::Parts::require_room(index_t count) {
  if (count == 0) return fail(Error::invalid_argument, "there is no token to continue");
  const int64_t context = model.context(), read = static_cast<int64_t>(tokens.size());
  if (count <= context - read) return Error::ok;
  return fail(Error::invalid_argument, std::to_string(count) + " tokens do not fit behind " +
                                           std::to_string(read) + " in a context of " +
                                           std::to_string(context));
}

Method* Sequence::Parts::find(Extra& extra) {
  if (extra.method) return &*extra.method;
  if (!model.has_method(extra.name)) return nullptr;
  Module& module = model.parts_->module;
  const std::lock_guard lock(model.parts_->making);
  const Result<Method> made = guarded<Method>(&message, [&] {
    if (!takes_module) return own->more(module, extra.name);
    const Result<Method> of_module = module.method(extra.name);
    if (!of_module.ok()) throw Failure{of_module.error(), module.message()};
    return of_module.value();
  });
  if (!made.ok()) return nullptr;
  const Result<int64_t> chunk =
      guarded<int64_t>(&message, [&] { return chunk_of(made.value(), extra.name); });
  if (!chunk.ok()) return nullptr;
  extra.chunk = chunk.value();
  return &extra.method.emplace(made.value());
}

Result<Span<float>> Sequence::Parts::append(Extra& extra, Span<const TokenId> ids,
                                            const std::atomic<bool>* cancel) {
  TAPER_TRY(require_room(ids.size()));
  Method* const with = find(extra);
  if (with == nullptr || ids.size() > extra.chunk)
    return fail(Error::invalid_argument, "the model does not give the " + std::string(extra.rows) +
                                             " of " + std::to_string(ids.size()) + " tokens");
  TAPER_TRY(run(*with, ids, cancel));
  TAPER_TRY(read_rows(*with));
  return Span<float>(rows.data(), static_cast<index_t>(rows.size()));
}

Sequence::Sequence(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Sequence::Sequence(Sequence&&) noexcept = default;
Sequence& Sequence::operator=(Sequence&&) noexcept = default;
Sequence::~Sequence() = default;

Result<Sequence> Sequence::create(const LanguageModel& model, std::string* message) {
  return guarded<Sequence>(message, [&] { return Sequence(std::make_unique<Parts>(model)); });
}

const LanguageModel& Sequence::model() const { return parts_->model; }
const std::vector<TokenId>& Sequence::tokens() const { return parts_->tokens; }
int64_t Sequence::chunk() const { return parts_->model.parts_->chunk; }
const std::string& Sequence::message() const { return parts_->message; }

Result<Span<float>> Sequence::append(Span<const TokenId> ids, const std::atomic<bool>* cancel) {
  Parts& p = *parts_;
  TAPER_TRY(p.require_room(ids.size()));
  for (index_t first = 0; first < ids.size(); first += chunk())
    TAPER_TRY(
        p.run(*p.method, ids.part(first, std::min<index_t>(ids.size() - first, chunk())), cancel));
  TAPER_TRY(p.read_rows(*p.method));
  return Span<float>(p.rows.data(), static_cast<index_t>(p.rows.size()));
}

Result<Span<float>> Sequence::append_all(Span<const TokenId> ids, const std::atomic<bool>* cancel) {
  return parts_->append(parts_->all, ids, cancel);
}
int64_t Sequence::all_logits_chunk() {
  return parts_->find(parts_->all) == nullptr ? 0 : parts_->all.chunk;
}

Result<Span<float>> Sequence::append_states(Span<const TokenId> ids,
                                            const std::atomic<bool>* cancel) {
  return parts_->append(parts_->states, ids, cancel);
}
int64_t Sequence::states_chunk() {
  return parts_->find(parts_->states) == nullptr ? 0 : parts_->states.chunk;
}

void Sequence::rewind(int64_t position) {
  std::vector<TokenId>& tokens = parts_->tokens;
  if (position >= static_cast<int64_t>(tokens.size())) return;
  tokens.resize(parts_->model.text().rewinds && position > 0 ? static_cast<size_t>(position) : 0);
}

int64_t Sequence::keep_prefix(Span<const TokenId> prompt) {
  const std::vector<TokenId>& tokens = parts_->tokens;
  const auto most = static_cast<size_t>(prompt.size() > 0 ? prompt.size() - 1 : 0);
  size_t equal = 0;
  while (equal < std::min(tokens.size(), most) &&
         tokens[equal] == prompt[static_cast<index_t>(equal)])
    ++equal;
  rewind(static_cast<int64_t>(equal));
  return position();
}

}  // namespace taper::llm
