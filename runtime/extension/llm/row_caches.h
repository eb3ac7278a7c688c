#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "taper/runtime/core/span.h"
#include "taper/runtime/method/session.h"

namespace taper::llm {

/// The sizes of a cache are (rows, heads, context, …), and of other states (rows, …).
inline constexpr index_t rows_dim = 0, heads_dim = 1, context_dim = 2;

/// The caches of one text: its row of each state of a session. They hold something of each token,
/// or they remember all tokens at once.
class RowCaches {
 public:
  /// `context`: the tokens that a cache has room for; 0: the states remember all tokens at once.
  RowCaches(const Session& session, int64_t row, int64_t rows, int64_t context);
  RowCaches(const RowCaches&) = delete;
  ~RowCaches() { forget(0); }

  /// Memory in one piece: what a head of a cache holds of all tokens, or a whole state.
  struct Run {
    std::byte* data;
    size_t bytes, token_bytes;  ///< of all, and of a token; 0: it is that of all tokens at once
    Span<std::byte> of(int64_t tokens) const {
      const size_t size = token_bytes > 0 ? token_bytes * static_cast<size_t>(tokens) : bytes;
      return {data, static_cast<index_t>(size)};
    }
  };
  /// In the order of the names of the states.
  const std::vector<Run>& runs() const { return runs_; }
  /// What the runs hold of so many tokens.
  size_t bytes(int64_t tokens) const;

  /// Takes over what the caches of another text hold of its first tokens. The two share memory by
  /// whole pages, if there are many and the system can (SharedPages): also where thousands of texts
  /// share, until the process has no mappings left for it. A page that one of them writes becomes
  /// its own. Both texts are of one program.
  void take(RowCaches& from, int64_t tokens);
  /// The tokens from `tokens` on will be written anew: gives back what is shared of them.
  void forget(int64_t tokens);

 private:
  struct Prefix;
  void share(int64_t tokens);
  std::shared_ptr<const Prefix> prefix_of(int64_t tokens) const;
  bool reserve();
  void unshare();

  std::vector<Run> runs_;
  std::shared_ptr<const Prefix> shared_;
  int64_t shared_tokens_ = 0;  ///< the first ones, whose whole pages are those of `shared_`
};

}  // namespace taper::llm
