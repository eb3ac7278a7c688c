// Cubic convolution with a = -0.75, as in PyTorch (R. Keys, "Cubic convolution interpolation for
// digital image processing", 1981).
#pragma once

namespace taper::portable {

/// The weights of the elements at -1, 0, 1 and 2 for a position t in [0, 1].
template <class T>
void cubic_weights(T t, T* weight) {
  constexpr T a = T(-0.75);
  const auto near = [](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  weight[0] = far(t + 1), weight[1] = near(t), weight[2] = near(1 - t), weight[3] = far(2 - t);
}
/// The derivatives of the weights with respect to t.
template <class T>
void cubic_slopes(T t, T* slope) {
  constexpr T a = T(-0.75);
  const auto near = [](T x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  const auto far = [](T x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  slope[0] = far(t + 1), slope[1] = near(t), slope[2] = -near(1 - t), slope[3] = -far(2 - t);
}

}  // namespace taper::portable
