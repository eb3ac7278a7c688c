// What a sequence forgets, and what others take over from it.
#include <algorithm>
#include <mutex>
#include <utility>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/sequence_parts.h"
#include "taper/runtime/extension/llm/session_file.h"

namespace taper::llm {
namespace {

/// Holds the sessions of two sequences, which may be one.
class BothStill {
 public:
  BothStill(RowSession& a, RowSession& b)
      : a_(a.running, std::defer_lock), b_(b.running, std::defer_lock) {
    if (&a == &b)
      a_.lock();
    else
      std::lock(a_, b_);
  }

 private:
  std::unique_lock<std::mutex> a_, b_;
};

}  // namespace

void Sequence::rewind(int64_t position) {
  std::vector<TokenId>& tokens = parts_->tokens;
  if (position >= static_cast<int64_t>(tokens.size())) return;
  tokens.resize(parts_->model.text().rewinds && position > 0 ? static_cast<size_t>(position) : 0);
  parts_->caches.forget(this->position());
}

int64_t Sequence::known_prefix(Span<const TokenId> prompt) const {
  const std::vector<TokenId>& tokens = parts_->tokens;
  const TokenId* const last = prompt.empty() ? prompt.end() : prompt.end() - 1;
  return std::mismatch(prompt.begin(), last, tokens.begin(), tokens.end()).first - prompt.begin();
}

int64_t Sequence::keep_prefix(Span<const TokenId> prompt) {
  rewind(known_prefix(prompt));
  return position();
}

Result<Sequence> Sequence::fork(std::string* message) {
  Result<Sequence> made = create(parts_->model, message);
  if (!made.ok()) return made;
  made->parts_->adapter = parts_->adapter, made->parts_->adapter_index = parts_->adapter_index;
  made->take_prefix(*this, position());
  return made;
}

int64_t Sequence::take_prefix(Sequence& from, int64_t count) {
  count = std::min(count, from.position());
  const bool can =
      (count == from.position() || model().text().rewinds) && from.adapter() == adapter();
  if (from.parts_->model.parts_ != parts_->model.parts_ || count <= 0 || !can) return 0;
  if (&from == this) return rewind(count), count;
  rewind(0);
  const std::vector<TokenId>& given = from.parts_->tokens;
  const BothStill still(from.parts_->row.session(), parts_->row.session());
  parts_->caches.take(from.parts_->caches, count);
  parts_->tokens.assign(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

Error Sequence::save(const std::string& path, std::string_view note) {
  Parts& p = *parts_;
  const SessionOwner owner{p.model.parts_->identity(),
                           p.model.parts_->identity_of_adapter(p.adapter_index), p.adapter};
  const std::lock_guard lock(p.row.session().running);
  return write_session_file(path, owner, p.tokens, note, p.caches, p.message);
}

Error Sequence::restore(const std::string& path) {
  TAPER_LET(file, open_session_file(path, parts_->message));
  const Error e = restore(file);
  if (e != Error::ok) parts_->message.insert(0, path + ": ");
  return e;
}

Error Sequence::restore(const SessionFile& file) {
  Parts& p = *parts_;
  const int64_t count = file.tokens.size(), context = p.model.context();
  const auto fail = [&](std::string why) {
    return p.fail(Error::invalid_argument, std::move(why));
  };
  const SessionOwner& owner = file.owner;
  const int64_t adapter = p.find_adapter(owner.adapter_name);
  if (owner.model != p.model.parts_->identity())
    return fail("it was saved with another model, or with other options of this one");
  if (adapter < 0)
    return fail("it was saved with an adapter that the model lacks: " +
                p.no_adapter(owner.adapter_name));
  if (owner.adapter != p.model.parts_->identity_of_adapter(adapter))
    return fail("it was saved with another adapter of the name " + std::string(owner.adapter_name));
  if (count > context)
    return fail("its " + std::to_string(count) + " tokens do not fit into a context of " +
                std::to_string(context));
  if (static_cast<size_t>(file.caches.size()) != p.caches.bytes(count))
    return fail("it is damaged: its caches do not fit its tokens");
  const int64_t vocabulary = p.model.parts_->vocabulary;
  for (const TokenId id : file.tokens)
    if (id < 0 || (vocabulary > 0 && id >= vocabulary))
      return fail("it is damaged: token " + std::to_string(id) +
                  " is not one of the vocabulary's " + std::to_string(vocabulary));
  rewind(0);
  const std::lock_guard lock(p.row.session().running);
  const std::byte* from = file.caches.data();
  for (const RowCaches::Run& run : p.caches.runs()) {
    const Span<std::byte> to = run.of(count);
    std::copy_n(from, to.size(), to.data());
    from += to.size();
  }
  p.tokens.assign(file.tokens.begin(), file.tokens.end());
  p.adapter = owner.adapter_name, p.adapter_index = adapter;
  return Error::ok;
}

}  // namespace taper::llm
