// A few operators with kernels of the tests' own, so that the runtime is tested without a kernel
// library.
#pragma once
#include "taper/kernels/kernel.h"

namespace taper::test {

namespace ops {
inline constexpr Operator add{"add", Category::kernel,
                              "test::add(Tensor self, Tensor other) -> Tensor"};
inline constexpr Operator sum_rows{"sum_rows", Category::kernel,
                                   "test::sum_rows(Tensor self) -> Tensor"};
inline constexpr Operator take{"take", Category::kernel,
                               "test::take(Tensor self, Tensor index) -> Tensor"};
inline constexpr Operator join{"join", Category::kernel, "test::join(Tensor[] tensors) -> Tensor"};
inline constexpr Operator truncate{"truncate", Category::kernel,
                                   "test::truncate(Tensor self) -> Tensor"};
inline constexpr Operator negate{"negate", Category::kernel, "test::negate(Tensor self) -> Tensor"};
inline constexpr Operator fill{"fill", Category::kernel,
                               "test::fill(SymInt[] size, Scalar value, str? note=None) -> Tensor"};
}  // namespace ops

/// self + other, equal sizes, f32; may write over either argument.
extern const Kernel add_f32;
/// (rows, columns) -> (rows), through scratch of `columns` floats.
extern const Kernel sum_rows_f32;
/// self[index], 1-d; an index out of range is invalid_argument.
extern const Kernel take_f32;
/// 1-d tensors behind each other.
extern const Kernel join_f32;
extern const Kernel fill_f32;
/// -self for two dimensions of any strides; may write over it.
extern const Kernel negate_f32;
extern const Kernel truncate_f32;  ///< to i32

extern const KernelSet kernels;

/// `add`, whose plan holds one of `held`, from its first `prepare` on.
extern const Kernel holding_add_f32;
/// How many plans on this thread hold something, and how often one was told that it ends.
extern thread_local int held, ended;
/// `sum_rows`, which asks for most scratch if there are `middle_rows` rows, and says so.
extern const Kernel middle_sum_rows_f32;
inline constexpr index_t middle_rows = 4;
/// What that says, in floats; its `prepare` asks for 100 in the middle, and else for one.
extern thread_local size_t bound_floats;
/// The sizes whose `prepare` by `holding_add_f32` fails.
extern thread_local index_t refused_size;

/// How often a kernel's `prepare` ran on this thread since the test set it to zero.
extern thread_local int prepared;

}  // namespace taper::test
