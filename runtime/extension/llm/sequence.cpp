#include <algorithm>
#include <string>
#include <utility>

#include "taper/runtime/core/dense_copy.h"
#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/language_model.h"
#include "taper/runtime/extension/llm/sequence_parts.h"
#include "taper/runtime/extension/module/message.h"

namespace taper::llm {

// Reads at most a chunk. Keeps the results if they are wanted.
Error Sequence::Parts::run(RowMethod& with, Span<const TokenId> ids,
                           const std::atomic<bool>* cancel, bool keeps) {
  RowSession& session = row.session();
  const std::lock_guard lock(session.running);
  session.ids.assign(ids.begin(), ids.end());
  const auto start = static_cast<int64_t>(tokens.size()), of_cache = row.row();
  Limits limits;
  limits.cancel = cancel;
  Method& method = with.method;
  Error e = method.set_input(0, session.ids.data(), {1, ids.size()});
  if (e == Error::ok) e = method.set_input(1, &start, {1});
  index_t next = 2;
  if (e == Error::ok && with.by_row) e = method.set_input(next++, &of_cache, {1});
  if (e == Error::ok && with.by_adapter) e = method.set_input(next, &adapter_index, {1});
  if (e == Error::ok) e = method.execute(limits);
  if (e != Error::ok) return forget_unfinished(), fail(e, describe(method.last_error()));
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  return keeps ? keep_results(method, 0) : Error::ok;
}

// What a model remembers beyond a cache may be that of an unfinished step.
void Sequence::Parts::forget_unfinished() {
  if (!model.text().rewinds) tokens.clear();
}

// Copies a row of the first output.
Error Sequence::Parts::keep_results(const Method& of, index_t index) {
  const TensorRef output = of.output(0);
  if (output.shape == nullptr || output.dtype != DType::f32 || output.shape->rank < 1 ||
      output.shape->sizes[0] <= index || output.shape->numel() < 1)
    return fail(Error::invalid_program, "the first output of a method is not in f32");
  Shape shape = *output.shape;
  shape.sizes[0] = 1;
  const TensorRef of_row{static_cast<float*>(output.data) + index * shape.strides[0], &shape,
                         DType::f32};
  results.resize(static_cast<size_t>(shape.numel()));
  copy_dense(of_row, reinterpret_cast<std::byte*>(results.data()));
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

// Programs check the tokens, too. But a wrong one must not fail for all that share a call.
Error Sequence::Parts::require_in_vocabulary(TokenId id) {
  const int64_t size = model.parts_->vocabulary;
  if (id >= 0 && id < size) return Error::ok;
  return fail(
      Error::invalid_argument,
      "token " + std::to_string(id) + " is not one of the vocabulary's " + std::to_string(size));
}

RowMethod* Sequence::Parts::find(Extra& extra) {
  if (extra.method != nullptr || !model.has_method(extra.name)) return extra.method;
  const Result<RowMethod*> made = guarded<RowMethod*>(
      &message, [&] { return &model.parts_->method(row.session(), extra.name); });
  return extra.method = made.ok() ? made.value() : nullptr;
}

Result<Span<float>> Sequence::Parts::append(Extra& extra, Span<const TokenId> ids,
                                            const std::atomic<bool>* cancel) {
  TAPER_TRY(require_room(ids.size()));
  RowMethod* const with = find(extra);
  if (with == nullptr || ids.size() > with->chunk)
    return fail(Error::invalid_argument, "the model does not give the " + std::string(extra.rows) +
                                             " of " + std::to_string(ids.size()) + " tokens");
  TAPER_TRY(run(*with, ids, cancel, true));
  return kept();
}

Sequence::Sequence(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Sequence::Sequence(Sequence&&) noexcept = default;
Sequence& Sequence::operator=(Sequence&&) noexcept = default;
Sequence::~Sequence() = default;

Result<Sequence> Sequence::create(const LanguageModel& model, std::string* message) {
  return guarded<Sequence>(message, [&] { return Sequence(std::make_unique<Parts>(model)); });
}

const LanguageModel& Sequence::model() const { return parts_->model; }
const std::string& Sequence::adapter() const { return parts_->adapter; }

int64_t Sequence::Parts::find_adapter(std::string_view name) const {
  if (name.empty()) return 0;
  const std::vector<std::string>& all = model.text().adapters;
  const auto found = std::find(all.begin(), all.end(), name);
  return found == all.end() ? -1 : found - all.begin() + 1;
}

std::string Sequence::Parts::no_adapter(std::string_view name) const {
  std::string why = "there is no adapter " + std::string(name) + "; the model has ";
  const std::vector<std::string>& all = model.text().adapters;
  for (const std::string& other : all) why += (&other == &all[0] ? "" : ", ") + other;
  return all.empty() ? why + "none" : why;
}

Error Sequence::use_adapter(const std::string& name) {
  Parts& p = *parts_;
  const int64_t index = p.find_adapter(name);
  if (index < 0) return p.fail(Error::invalid_argument, p.no_adapter(name));
  if (name != p.adapter) rewind(0);
  p.adapter = name, p.adapter_index = index;
  return Error::ok;
}

const std::vector<TokenId>& Sequence::tokens() const { return parts_->tokens; }
int64_t Sequence::chunk() const { return parts_->model.parts_->chunk; }
const std::string& Sequence::message() const { return parts_->message; }

Result<Span<float>> Sequence::append(Span<const TokenId> ids, const std::atomic<bool>* cancel) {
  Parts& p = *parts_;
  TAPER_TRY(p.require_room(ids.size()));
  for (index_t first = 0; first < ids.size(); first += chunk()) {
    const Span<const TokenId> part =
        ids.part(first, std::min<index_t>(ids.size() - first, chunk()));
    TAPER_TRY(p.run(p.forward, part, cancel, first + chunk() >= ids.size()));
  }
  return p.kept();
}

// Sequences of one session, with one call.
void Sequence::decode(Span<NextToken* const> tokens) {
  const LanguageModel::Parts& model = *tokens[0]->sequence->parts_->model.parts_;
  RowSession& session = tokens[0]->sequence->parts_->row.session();
  std::string why;
  const Result<RowMethod*> made =
      guarded<RowMethod*>(&why, [&] { return &model.method(session, decode_name); });
  if (!made.ok()) {
    for (NextToken* next : tokens) next->error = next->sequence->parts_->fail(made.error(), why);
    return;
  }
  Method& method = made.value()->method;
  const std::lock_guard lock(session.running);
  session.ids.clear(), session.starts.clear(), session.rows.clear(), session.adapters.clear();
  for (const NextToken* next : tokens) {
    session.ids.push_back(next->id);
    session.starts.push_back(next->sequence->position());
    session.rows.push_back(next->sequence->parts_->row.row());
    session.adapters.push_back(next->sequence->parts_->adapter_index);
  }
  const index_t count = tokens.size();
  Error e = method.set_input(0, session.ids.data(), {count, 1});
  if (e == Error::ok) e = method.set_input(1, session.starts.data(), {count});
  if (e == Error::ok) e = method.set_input(2, session.rows.data(), {count});
  if (e == Error::ok && made.value()->by_adapter)
    e = method.set_input(3, session.adapters.data(), {count});
  if (e == Error::ok) e = method.execute();
  for (index_t i = 0; i < count; ++i) {
    NextToken& next = *tokens[i];
    Parts& p = *next.sequence->parts_;
    if (e != Error::ok) {
      p.forget_unfinished();
      next.error = p.fail(e, describe(method.last_error()));
      continue;
    }
    p.tokens.push_back(next.id);
    next.error = p.keep_results(method, i);
    if (next.error == Error::ok) next.logits = p.kept();
  }
}

void Sequence::append_each(Span<NextToken> tokens) {
  std::vector<NextToken*> left;
  for (NextToken& next : tokens) {
    Parts& p = *next.sequence->parts_;
    next.logits = {};
    if (p.model.rows() == 1) {
      const Result<Span<float>> logits = next.sequence->append({&next.id, 1});
      next.error = logits.error();
      if (logits.ok()) next.logits = logits.value();
      continue;
    }
    next.error = p.require_room(1);
    if (next.error == Error::ok) next.error = p.require_in_vocabulary(next.id);
    if (next.error == Error::ok) left.push_back(&next);
  }
  while (!left.empty()) {
    const RowSession* session = &left.front()->sequence->parts_->row.session();
    const auto others = std::stable_partition(left.begin(), left.end(), [&](const NextToken* next) {
      return &next->sequence->parts_->row.session() == session;
    });
    decode({left.data(), others - left.begin()});
    left.erase(left.begin(), others);
  }
}

Result<Span<float>> Sequence::append_all(Span<const TokenId> ids, const std::atomic<bool>* cancel) {
  return parts_->append(parts_->all, ids, cancel);
}
int64_t Sequence::all_logits_chunk() { return parts_->chunk_of(parts_->all); }

Result<Span<float>> Sequence::append_states(Span<const TokenId> ids,
                                            const std::atomic<bool>* cancel) {
  return parts_->append(parts_->states, ids, cancel);
}
int64_t Sequence::states_chunk() { return parts_->chunk_of(parts_->states); }

}  // namespace taper::llm
