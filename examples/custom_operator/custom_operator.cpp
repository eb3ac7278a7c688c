// A model of PyTorch with an operator of its own, mylib::soft_clip: its row, its shape rule and its
// kernel, and the model run in eager and exported.
//
//   custom_operator soft_clip.pt2 OUT.taper
#include <cmath>
#include <iostream>

#include "taper/exporter/exporter.h"
#include "taper/exporter/importers/pt2/pt2.h"

using namespace taper;

namespace mylib {

// The row: PyTorch's schema.
inline constexpr Operator soft_clip{"soft_clip", Category::kernel,
                                    "mylib::soft_clip(Tensor x, float limit) -> Tensor"};

// The kernel, an ordinary function over views. A firmware links this file.
Error run_soft_clip(Context&, View<const float> x, double limit, View<float> out) {
  const float bound = static_cast<float>(limit);
  for (index_t i = 0; i < x.numel(); ++i) out.data()[i] = bound * std::tanh(x.data()[i] / bound);
  return Error::ok;
}

}  // namespace mylib

// The shape rule, for numbers and for symbols.
template <>
struct taper::Rule<mylib::soft_clip> {
  static constexpr Promotion promotion = Promotion::floating;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& x, double limit, TensorType<D>& out) {
    out.like(x);
    return facts.require(limit > 0, TAPER_TEXT("limit must be positive"));
  }
};

namespace mylib {
inline constexpr Kernel soft_clip_f32 = make_kernel<soft_clip, run_soft_clip>("soft_clip_f32");
}

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::cerr << "usage: custom_operator soft_clip.pt2 OUT.taper\n";
    return 2;
  }
  eager::OperatorInfo info = eager::describe<mylib::soft_clip>();
  info.kernels = {&mylib::soft_clip_f32};
  eager::add_operator(std::move(info));

  pt2::Model model = pt2::Model::load(argv[1]);
  const Tensor x = Tensor::from<float>({1, -2, 3, -4, 10, 20, -30, 0}, {2, 4});
  std::cout << model.forward({x})[0] << '\n';

  Exporter exporter;
  exporter.method("forward", model.function(), model.input_specs(), model.output_names());
  exporter.write(argv[2]);
} catch (const std::exception& e) {
  std::cerr << "custom_operator: " << e.what() << '\n';
  return 1;
}
