// How far a signal is from the one it stands for.
#pragma once
#include <span>

namespace taper::quantize {

/// Sums over pairs of numbers.
class SignalError {
 public:
  /// Both have the same length.
  void add(std::span<const float> got, std::span<const float> want);

  /// The energy of the error over that of the signal. 0 without any error, else infinite without
  /// signal.
  double noise() const;
  /// 10 log10(1 / noise): the signal-to-quantization-noise ratio. Infinite without any error.
  double sqnr_db() const;
  /// Of the angle between both, taken as vectors. 1 for two zero vectors, 0 if one is zero.
  double cosine() const;

 private:
  double want_ = 0, got_ = 0, both_ = 0, error_ = 0;
};

/// 10 log10(1 / noise)
double decibels(double noise);

}  // namespace taper::quantize
