// What all layers of one call share: where the new tokens stand.
#pragma once
#include "taper/exporter/llm/config.h"
#include "taper/exporter/llm/weights.h"

namespace taper::llm {

/// cos and sin of the angles of each new token: (batch, 1, n, features).
struct Rotation {
  Tensor cos, sin;
  bool interleaved = false;
  bool defined() const { return cos.defined(); }
};

/// `factors` (dims / 2) divide the frequencies; undefined: they do not. `capacity`: positions of
/// the caches (Rotary::is_long).
class RotaryTable {
 public:
  RotaryTable() = default;
  RotaryTable(const Rotary& rotary, const Tensor& factors, int64_t capacity);
  /// `positions`: i64 (batch, n).
  Rotation at(const Tensor& positions) const;

 private:
  Rotary rotary_;
  Tensor frequencies_;  ///< of each feature
};

/// Turns the first features of x (batch, heads, n, features), as many as the rotation has.
Tensor rotate(const Tensor& x, const Rotation& rotation);

struct Step {
  Tensor start;      ///< i64 (batch): the position of the first new token of each row
  Tensor positions;  ///< i64 (batch, n)
  Rotation rotation, local_rotation;
  Tensor score_bias;      ///< f32 (batch, heads, n, capacity), in place of positions; or undefined
  Tensor source_last;     ///< i64 (batch): the last position of a source, for cross attention
  Tensor jumping_window;  ///< f32 (batch, 1, n, capacity): of windows that jump; or undefined
  Tensor batch;  ///< i64 (batch): the row of the caches that each row uses; undefined: its own
  /// The tokens of a call are whole texts. Nothing reads or writes a cache, and all has
  /// derivatives: for training.
  bool is_whole = false;

  const Rotation& rotation_of(const Config& config, int64_t layer) const {
    static const Rotation none;
    if (!config.is_turned(layer)) return none;
    return config.is_windowed(layer) && local_rotation.defined() ? local_rotation : rotation;
  }
};

/// The rows of a state that the rows of a call use: (batch, …).
Tensor rows_of(const Tensor& state, const Step& step);
/// The same with zeros where a new text begins, at position 0.
Tensor kept(const Tensor& state, const Step& step);
/// Writes these rows of a state.
void keep(Tensor& state, const Tensor& rows, const Step& step);

}  // namespace taper::llm
