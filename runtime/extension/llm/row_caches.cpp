#include "taper/runtime/extension/llm/row_caches.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "taper/runtime/extension/module/shared_pages.h"

namespace taper::llm {
namespace {

using Run = RowCaches::Run;
using Bytes = Span<std::byte>;

// To share fewer pages of a run takes longer than to copy them.
constexpr index_t least_pages = 4;

Bytes between(std::byte* begin, std::byte* end) {
  return {begin, begin < end ? end - begin : index_t{0}};
}
size_t place_in_page(const std::byte* at) {
  return reinterpret_cast<uintptr_t>(at) % SharedPages::page_bytes();
}
std::byte* begin_of_page(std::byte* at) { return at - place_in_page(at); }

Bytes whole_pages(Bytes bytes) {
  std::byte* const first = begin_of_page(bytes.data() + SharedPages::page_bytes() - 1);
  return between(first, begin_of_page(bytes.end()));
}

// What one text has in a state.
void add_runs(const StateView& state, int64_t row, int64_t rows, int64_t context,
              std::vector<Run>& runs) {
  if (state.sizes.size() <= rows_dim || state.sizes[rows_dim] != rows || state.size_bytes == 0)
    return;
  const size_t bytes = state.size_bytes / static_cast<size_t>(rows);
  std::byte* const data = static_cast<std::byte*>(state.data) + static_cast<size_t>(row) * bytes;
  const bool grows =
      context > 0 && state.sizes.size() > context_dim && state.sizes[context_dim] == context;
  const size_t heads = grows ? static_cast<size_t>(state.sizes[heads_dim]) : 1,
               in_head = bytes / heads,
               in_token = grows ? in_head / static_cast<size_t>(context) : 0;
  const bool is_even = in_token * static_cast<size_t>(context) * heads == bytes;
  if (!grows || !is_even) return runs.push_back({data, bytes, 0});
  for (size_t i = 0; i < heads; ++i) runs.push_back({data + i * in_head, in_head, in_token});
}

}  // namespace

// Whole pages of the first tokens of a text.
struct RowCaches::Prefix {
  std::unique_ptr<SharedPages> pages = SharedPages::create();
  struct Part {
    size_t in_page, offset;  ///< where the run begins, and its pages
    index_t bytes;
  };
  std::vector<Part> parts;  ///< of each run

  bool add(const Run& run, int64_t tokens) {
    const Bytes whole = run.token_bytes > 0 ? whole_pages(run.of(tokens)) : Bytes();
    parts.push_back({place_in_page(run.data), pages->size_bytes(), whole.size()});
    return whole.empty() || pages->append(whole);
  }
  bool fits(const std::vector<Run>& runs) const {
    return std::equal(parts.begin(), parts.end(), runs.begin(), runs.end(),
                      [](const Part& part, const Run& run) {
                        return part.bytes == 0 || part.in_page == place_in_page(run.data);
                      });
  }
  // Returns what is shared then.
  Bytes put(size_t i, const Run& run, int64_t tokens) const {
    if (run.token_bytes == 0) return {};
    const Bytes whole = whole_pages(run.of(tokens));
    const Bytes place = whole.part(0, std::min(whole.size(), parts[i].bytes));
    return !place.empty() && pages->put(parts[i].offset, place) ? place : Bytes();
  }
};

RowCaches::RowCaches(const Session& session, int64_t row, int64_t rows, int64_t context) {
  std::map<std::string, index_t> states;
  for (index_t i = 0; i < session.state_count(); ++i) states[session.state(i).path] = i;
  for (const auto& [path, i] : states) add_runs(session.state(i), row, rows, context, runs_);
}

size_t RowCaches::bytes(int64_t tokens) const {
  size_t sum = 0;
  for (const Run& run : runs_) sum += static_cast<size_t>(run.of(tokens).size());
  return sum;
}

// Moves the first tokens into pages that others can share. What stands behind shared tokens is
// copied, as long as it is the smaller part.
void RowCaches::share(int64_t tokens) {
  if (shared_ != nullptr && 2 * shared_tokens_ >= tokens) return;
  const auto has_many = [&](const Run& run) {
    return run.token_bytes > 0 && whole_pages(run.of(tokens)).size() >=
                                      least_pages * static_cast<index_t>(SharedPages::page_bytes());
  };
  if (!std::any_of(runs_.begin(), runs_.end(), has_many)) return;
  if (!reserve()) return;
  const std::shared_ptr<const Prefix> made = prefix_of(tokens);
  if (made == nullptr) return shared_ == nullptr ? unshare() : void();
  for (size_t i = 0; i < runs_.size(); ++i) made->put(i, runs_[i], tokens);
  shared_ = made, shared_tokens_ = tokens;
}

std::shared_ptr<const RowCaches::Prefix> RowCaches::prefix_of(int64_t tokens) const {
  const auto made = std::make_shared<Prefix>();
  if (made->pages == nullptr) return nullptr;
  for (const Run& run : runs_)
    if (!made->add(run, tokens)) return nullptr;
  return made;
}

// Asks for the places of `shared_`, before it is there: all runs share or none.
bool RowCaches::reserve() {
  return shared_ != nullptr || SharedPages::reserve(static_cast<index_t>(runs_.size()));
}

void RowCaches::unshare() {
  shared_.reset();
  SharedPages::give_back(static_cast<index_t>(runs_.size()));
}

void RowCaches::take(RowCaches& from, int64_t tokens) {
  if (this == &from) return;
  forget(0);
  from.share(tokens);
  if (from.shared_ != nullptr && from.shared_->fits(runs_) && reserve())
    shared_ = from.shared_, shared_tokens_ = std::min(tokens, from.shared_tokens_);
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Bytes to = runs_[i].of(tokens), given = from.runs_[i].of(tokens);
    const auto copy = [&](Bytes part) {
      if (!part.empty())
        std::memcpy(part.data(), given.data() + (part.data() - to.data()),
                    static_cast<size_t>(part.size()));
    };
    const Bytes put = shared_ ? shared_->put(i, runs_[i], shared_tokens_) : Bytes();
    if (put.empty()) {
      copy(to);
    } else {
      copy(between(to.data(), put.data())), copy(between(put.end(), to.end()));
    }
  }
}

void RowCaches::forget(int64_t tokens) {
  if (shared_ == nullptr || tokens >= shared_tokens_) return;
  std::vector<std::byte> kept;
  for (const Run& run : runs_) {
    if (run.token_bytes == 0) continue;
    const Bytes pages = whole_pages(run.of(shared_tokens_));
    std::byte* const end = run.of(tokens).end();
    std::byte* const first = std::max(begin_of_page(end), pages.data());
    if (first >= pages.end()) continue;
    kept.assign(first, std::max(first, end));  // of a page that goes in parts
    if (!SharedPages::clear(between(first, pages.end()))) continue;
    if (!kept.empty()) std::memcpy(first, kept.data(), kept.size());
  }
  shared_tokens_ = tokens;
  if (tokens == 0) unshare();
}

}  // namespace taper::llm
