// Reads the scores of an attention that a model wrote as single operators.
#pragma once
#include <optional>
#include <vector>

#include "taper/exporter/ir/graph.h"

namespace taper::passes {

/// A tensor that changes scores.
struct ScoreMask {
  enum class Kind : uint8_t {
    added,
    hides,  ///< true: the score becomes `number`
    shows,  ///< false: the score becomes `number`
  };
  Kind kind;
  ir::Value* value;
  const ir::Value* scores;  ///< those that it is applied to
  double number = 0;
};

/// scale * query keyᵀ, then masks.
struct AttentionScores {
  ir::Value *query = nullptr, *key = nullptr;  ///< bmm(query, key), keys in columns
  const ir::Value* matrices = nullptr;         ///< the product as (…, queries, keys)
  double scale = 1;
  std::vector<ScoreMask> masks;  ///< in the order in which they are applied
};

/// nullopt if `scores` are made of other operators, or are used elsewhere, too. `readers`: how many
/// nodes may read the scores themselves.
std::optional<AttentionScores> read_scores(const ir::Graph& graph, const ir::Value* scores,
                                           size_t readers);

/// number * value
struct Scaled {
  ir::Value* value;
  double number;
};
/// What mul.Scalar or div.Scalar computes; nullopt: another node.
std::optional<Scaled> scaled_by(const ir::Node& node);

/// The node that gives `weights`, if it is a softmax, or PyTorch's decomposition of a safe one. The
/// latter gives zeros where all scores are -inf. `readers`: the nodes that read the scores.
const ir::Node* softmax_of(const ir::Graph& graph, const ir::Value* weights, size_t& readers);

/// Whether a reshape leaves the matrices in the last two dimensions as they are, and their number.
bool keeps_matrices(const ir::Type& from, const ir::Type& to);

}  // namespace taper::passes
