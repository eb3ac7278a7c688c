// The innermost loops of static 8-bit operators without products, once for each instruction set.
// Every set gives the same integers.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/quantized/requantize.h"

namespace taper::quantized {

/// The numbers of taper::add_q8 and its kin. Both operands are de-quantized, and the result of the
/// operation is quantized as quantize_per_tensor does it: in f32, with a rounding after each step.
struct BinaryNumbers {
  float scale[2];
  int32_t zero_point[2];
  float inverse;  ///< of the output's scale
  Rounding rounding;
};
/// y[i] for i < n. An operand that `repeats` is one element.
using BinaryLoop = void (*)(const BinaryNumbers& numbers, index_t n, const int8_t* a,
                            bool a_repeats, const int8_t* b, bool b_repeats, int8_t* y);

/// A window of an image with its channels last.
struct ByteWindow {
  const int8_t* x;
  index_t rows, columns, row_step, channels;
  int32_t zero_point;
  float scale;  ///< of the sums of q - zero_point
};

/// A pixel between four others: (top left, top right, bottom left, bottom right).
struct BytePixel {
  const int8_t* x[4];
  float along_row[2], along_column[2];  ///< the weights of left and right, of top and bottom
  int32_t zero_point;
  float scale, inverse;  ///< of the input, and of the output's scale
};

/// A line of softmax: its elements lie `step` bytes apart.
struct ByteLine {
  const int8_t* x;
  index_t count, step;
  const int32_t* exponentials;  ///< of minus the distance to the largest element
  double output_scale;
  bool is_falling;  ///< the exponentials: none is negative, or larger than the one before it

  /// What the exponentials are multiplied by.
  TAPER_INLINED float factor(int64_t sum) const {
    return static_cast<float>(1 / (static_cast<double>(sum) * output_scale));
  }
};

struct ByteLoops {
  BinaryLoop add, sub, mul;
  void (*average)(const ByteWindow& window, const Rounding& rounding, int8_t* y);
  /// A bilinear average of four pixels, as upsample_bilinear2d computes it between dequantize and
  /// quantize.
  void (*blend)(const BytePixel& pixel, index_t channels, const Rounding& rounding, int8_t* y);
  void (*softmax)(const ByteLine& line, const Rounding& rounding, int8_t* y);
  /// quantize_per_tensor to i8: round(x * inverse), and so on.
  void (*quantize)(index_t n, const float* x, float inverse, const Rounding& rounding, int8_t* y);
  void (*dequantize)(index_t n, const int8_t* x, int32_t zero_point, float scale, float* y);
  /// y[3 i + c] = x[c][i]: the pixels of three planes.
  void (*interleave)(index_t n, const int8_t* const x[3], int8_t* y);
};

/// y[i] = table[x[i] + 128]. y may be x.
void lookup_avx2(index_t n, const int8_t* x, const int8_t* table, int8_t* y);
void lookup_avx512(index_t n, const int8_t* x, const int8_t* table, int8_t* y);

/// ByteLoops::softmax of elements that lie together, with results that are looked up, too. Lines
/// have at least `softmax_is_looked_up_from` elements: shorter ones are faster without. y is not x.
void softmax_avx2(const ByteLine& line, const Rounding& rounding, int8_t* y);
void softmax_avx512(const ByteLine& line, const Rounding& rounding, int8_t* y);
inline constexpr index_t softmax_is_looked_up_from = 48;

extern const ByteLoops byte_loops_plain, byte_loops_avx2, byte_loops_avx512;

}  // namespace taper::quantized
