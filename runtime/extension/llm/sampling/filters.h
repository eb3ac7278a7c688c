#pragma once
#include <cstddef>

#include "taper/runtime/core/span.h"

namespace taper::llm {

// Each function changes the logits of one step. A token that it removes gets -inf. All keep at
// least `least` tokens: the most likely ones. Values outside of the stated ranges change nothing.

/// Divides by `temperature`, above 0.
void apply_temperature(Span<float> logits, float temperature);

/// The `k` largest, and those that equal the last of them. k ≥ 1.
void keep_top_k(Span<float> logits, int k, int least = 1);

/// The fewest whose probabilities add up to `p`, in [0, 1). Holtzman et al., 2020.
void keep_top_p(Span<float> logits, float p, int least = 1);

/// Those with at least `p` times the largest probability, p in (0, 1]. Nguyen et al., 2024.
void keep_min_p(Span<float> logits, float p, int least = 1);

/// Those whose information is nearest to the entropy, up to the probability `mass` in (0, 1).
/// Meister et al., 2022.
void keep_typical(Span<float> logits, float mass, int least = 1);

/// Of the 100 most likely: as many as have `share` of their entropy, share in (0, 1]. Top-h,
/// Potraghloo et al., 2025.
void keep_top_h(Span<float> logits, float share);

/// Those with the probability `epsilon` or more, in (0, 1). Hewitt et al., 2022.
void keep_epsilon(Span<float> logits, float epsilon, int least = 1);

/// As `keep_epsilon`, with a limit that falls with the entropy: eta sampling of the same paper.
void keep_eta(Span<float> logits, float epsilon, int least = 1);

/// The logarithms of the probabilities.
void log_softmax(Span<float> logits);

}  // namespace taper::llm
