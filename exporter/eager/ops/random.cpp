#include "taper/exporter/eager/ops/random.h"

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/checkpoint.h"
#include "taper/exporter/eager/text.h"

namespace taper::eager {

Generator::Generator(int64_t seed) : state_(Tensor::from(std::vector<int64_t>{seed, 0}, {2})) {}
void Generator::seed(int64_t seed) {
  state_.copy_(Tensor::from(std::vector<int64_t>{seed, 0}, {2}));
}

Generator& default_generator() {
  static Generator generator = [] {
    Generator g;
    g.state().set_name("random");
    return g;
  }();
  return generator;
}
void manual_seed(int64_t seed) { default_generator().seed(seed); }

Tensor rand(const Dims& size, DType dtype, Generator& generator, Location here) {
  before_draw(generator.state());
  auto [values, next] = call<ops::taper_rand>(here, generator.state(), size, std::optional(dtype));
  generator.state().copy_(next, here);
  return values;
}
Tensor randn(const Dims& size, DType dtype, Generator& generator, Location here) {
  before_draw(generator.state());
  auto [values, next] = call<ops::taper_randn>(here, generator.state(), size, std::optional(dtype));
  generator.state().copy_(next, here);
  return values;
}
Tensor normal(double mean, double std, const Dims& size, DType dtype, Location here) {
  if (!(std >= 0)) throw EagerError(here, "normal: std must be 0 or more, not " + to_text(std));
  const Tensor drawn = randn(size, dtype, default_generator(), here);
  return call<ops::add_Scalar>(here, call<ops::mul_Scalar>(here, drawn, Scalar(std)), Scalar(mean),
                               Scalar(1));
}
Tensor dropout(const Tensor& input, double p, bool train, Generator& generator, Location here) {
  if (!(p >= 0 && p <= 1))
    throw EagerError(here, "dropout: p must be in [0, 1], not " + to_text(p));
  if (!train || p == 0) return input;
  before_draw(generator.state());
  auto [result, mask, next] = call<ops::taper_native_dropout>(here, generator.state(), input, p);
  generator.state().copy_(next, here);
  return result;
}

}  // namespace taper::eager
