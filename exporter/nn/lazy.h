// Layers that take the number of their inputs from the first input:
//
//   nn::LazyLinear fc(10);
//   fc(randn({2, 784}));   // now it is nn::Linear(784, 10)
//
// Run them once before you ask for parameters, load weights or trace: until then they have none.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "taper/exporter/nn/conv.h"
#include "taper/exporter/nn/linear.h"
#include "taper/exporter/nn/norm.h"

namespace taper::nn {

/// The common part: makes an L at the first input. Its members have the names that those of an L
/// have. Copies share the layer, also one that is made later.
template <class L>
class Lazy : public Layer {
 public:
  /// Whether the first input came.
  bool is_made() const { return made_->layer.has_value(); }
  /// The layer. Throws ExportError if it is not made yet.
  L& layer() {
    if (!is_made())
      throw ExportError(std::string(class_name_) +
                        ": the layer has no parameters yet; run it once on an input");
    return *made_->layer;
  }

  void visit_members(Members& members) override {
    if (is_made()) made_->layer->visit_members(members);
  }
  Tensor forward(const Tensor& input, Location here = Location::current()) override {
    if (!is_made()) make(input, here);
    if (layer().training() != training()) layer().train(training());
    return layer().forward(input, here);
  }

 protected:
  /// `make` gets the extent of dimension rank - `channels_from_end`, or of dimension 1 for 0.
  Lazy(const char* class_name, int channels_from_end, std::function<L(int64_t)> make)
      : class_name_(class_name),
        channels_from_end_(channels_from_end),
        make_(std::move(make)),
        made_(std::make_shared<Made>()) {}

 private:
  struct Made {
    std::optional<L> layer;
  };

  void make(const Tensor& input, Location here) {
    const int dim = channels_from_end_ == 0 ? 1 : input.rank() - channels_from_end_;
    if (dim < 0 || dim >= input.rank())
      throw EagerError(here, std::string(class_name_) + ": input " +
                                 eager::to_string(input.sizes()) + " has too few dimensions");
    if (input.is_traced())
      throw EagerError(here,
                       std::string(class_name_) +
                           ": the layer has no parameters yet; run it once on an input before "
                           "the trace");
    made_->layer.emplace(make_(input.size(dim).value()));
    name_members();
  }
  /// A trace may come before the module around this one names its members.
  void name_members() {
    const std::string& path = eager::module_path();
    for (const auto& [name, tensor] : made_->layer->state_dict())
      tensor.set_name(path.empty() ? name : path + "." + name);
  }

  const char* class_name_;
  int channels_from_end_;
  std::function<L(int64_t)> make_;
  std::shared_ptr<Made> made_;
};

/// Linear, of inputs (…, in).
struct LazyLinear : Lazy<Linear> {
  explicit LazyLinear(int64_t out_features, LinearOptions options = {},
                      Location here = Location::current())
      : Lazy("LazyLinear", 1, [=](int64_t in) { return Linear(in, out_features, options, here); }) {
  }
};

/// Conv over n spatial dimensions.
template <int n>
struct LazyConv : Lazy<Conv<n>> {
  explicit LazyConv(int64_t out_channels, ConvOptions<n> options,
                    Location here = Location::current())
      : Lazy<Conv<n>>("LazyConv", n + 1,
                      [=](int64_t in) { return Conv<n>(in, out_channels, options, here); }) {}
};
using LazyConv1d = LazyConv<1>;
using LazyConv2d = LazyConv<2>;
using LazyConv3d = LazyConv<3>;

/// ConvTranspose over n spatial dimensions.
template <int n>
struct LazyConvTranspose : Lazy<ConvTranspose<n>> {
  explicit LazyConvTranspose(int64_t out_channels, ConvTransposeOptions<n> options,
                             Location here = Location::current())
      : Lazy<ConvTranspose<n>>("LazyConvTranspose", n + 1, [=](int64_t in) {
          return ConvTranspose<n>(in, out_channels, options, here);
        }) {}
};
using LazyConvTranspose1d = LazyConvTranspose<1>;
using LazyConvTranspose2d = LazyConvTranspose<2>;
using LazyConvTranspose3d = LazyConvTranspose<3>;

/// One of BatchNorm1d, 2d and 3d.
template <class Norm>
struct LazyBatchNorm : Lazy<Norm> {
  explicit LazyBatchNorm(BatchNormOptions options = {}, Location here = Location::current())
      : Lazy<Norm>("LazyBatchNorm", 0, [=](int64_t in) { return Norm(in, options, here); }) {}
};
using LazyBatchNorm1d = LazyBatchNorm<BatchNorm1d>;
using LazyBatchNorm2d = LazyBatchNorm<BatchNorm2d>;
using LazyBatchNorm3d = LazyBatchNorm<BatchNorm3d>;

/// InstanceNorm over n spatial dimensions.
template <class Norm, int n>
struct LazyInstanceNorm : Lazy<Norm> {
  explicit LazyInstanceNorm(InstanceNormOptions options = {}, Location here = Location::current())
      : Lazy<Norm>("LazyInstanceNorm", n + 1, [=](int64_t in) { return Norm(in, options, here); }) {
  }
};
using LazyInstanceNorm1d = LazyInstanceNorm<InstanceNorm1d, 1>;
using LazyInstanceNorm2d = LazyInstanceNorm<InstanceNorm2d, 2>;
using LazyInstanceNorm3d = LazyInstanceNorm<InstanceNorm3d, 3>;

}  // namespace taper::nn
