// Every loss that Taper has against PyTorch's values and gradients.
#include <functional>

#include "taper/exporter/nn/loss.h"
#include "taper/tests/exporter/nn/golden.h"

namespace taper::tests {
namespace {

/// A loss of the inputs of a case.
using LossRun = std::function<Tensor(const std::vector<Tensor>& inputs)>;

/// Losses of an input and a target, or of three tensors.
template <class L>
LossRun of(std::shared_ptr<L> loss) {
  return [loss](const std::vector<Tensor>& in) {
    if constexpr (std::is_base_of_v<nn::LossOfThree, L>)
      return (*loss)(in.at(0), in.at(1), in.at(2));
    else
      return (*loss)(in.at(0), in.at(1));
  };
}
template <class L, class... A>
LossRun make(A&&... a) {
  return of(std::make_shared<L>(std::forward<A>(a)...));
}

struct Arguments {
  const Json& args;
  const GoldenFile& file;

  Reduction reduction() const {
    const std::string name = args.value("reduction", "mean");
    return name == "none" ? Reduction::none : name == "sum" ? Reduction::sum : Reduction::mean;
  }
  Tensor tensor(const char* name) const {
    return args.contains(name) && args[name].is_string()
               ? file.tensor(args[name].get<std::string>())
               : Tensor();
  }
  double number(const char* name, double fallback) const { return args.value(name, fallback); }
  int64_t ignore_index() const { return args.value("ignore_index", int64_t{-100}); }
};

const std::map<std::string, std::function<LossRun(const Arguments&)>> factories = {
    {"BCELoss",
     [](const Arguments& a) {
       return make<nn::BCELoss>(nn::BCELossOptions{a.tensor("weight"), a.reduction()});
     }},
    {"BCEWithLogitsLoss",
     [](const Arguments& a) {
       return make<nn::BCEWithLogitsLoss>(
           nn::BCEWithLogitsLossOptions{a.tensor("weight"), a.tensor("pos_weight"), a.reduction()});
     }},
    {"CrossEntropyLoss",
     [](const Arguments& a) {
       return make<nn::CrossEntropyLoss>(nn::CrossEntropyLossOptions{
           a.tensor("weight"), a.ignore_index(), a.reduction(), a.number("label_smoothing", 0)});
     }},
    {"HuberLoss",
     [](const Arguments& a) { return make<nn::HuberLoss>(a.reduction(), a.number("delta", 1)); }},
    {"KLDivLoss",
     [](const Arguments& a) {
       return make<nn::KLDivLoss>(
           nn::KLDivLossOptions{a.reduction(), a.args.value("log_target", false)});
     }},
    {"L1Loss", [](const Arguments& a) { return make<nn::L1Loss>(a.reduction()); }},
    {"MSELoss", [](const Arguments& a) { return make<nn::MSELoss>(a.reduction()); }},
    {"NLLLoss",
     [](const Arguments& a) {
       return make<nn::NLLLoss>(
           nn::NLLLossOptions{a.tensor("weight"), a.ignore_index(), a.reduction()});
     }},
    {"CTCLoss",
     [](const Arguments& a) -> LossRun {
       const auto loss = std::make_shared<nn::CTCLoss>(nn::CTCLossOptions{
           a.args["blank"].get<int64_t>(), a.reduction(), a.args["zero_infinity"].get<bool>()});
       return [loss](const std::vector<Tensor>& in) {
         return (*loss)(in.at(0), in.at(1), in.at(2), in.at(3));
       };
     }},
    {"CosineEmbeddingLoss",
     [](const Arguments& a) {
       return make<nn::CosineEmbeddingLoss>(a.number("margin", 0), a.reduction());
     }},
    {"GaussianNLLLoss",
     [](const Arguments& a) {
       return make<nn::GaussianNLLLoss>(nn::GaussianNLLLossOptions{
           .full = a.args.value("full", false), .reduction = a.reduction()});
     }},
    {"HingeEmbeddingLoss",
     [](const Arguments& a) {
       return make<nn::HingeEmbeddingLoss>(a.number("margin", 1), a.reduction());
     }},
    {"MarginRankingLoss",
     [](const Arguments& a) {
       return make<nn::MarginRankingLoss>(a.number("margin", 0), a.reduction());
     }},
    {"MultiLabelMarginLoss",
     [](const Arguments& a) { return make<nn::MultiLabelMarginLoss>(a.reduction()); }},
    {"MultiLabelSoftMarginLoss",
     [](const Arguments& a) {
       return make<nn::MultiLabelSoftMarginLoss>(
           nn::MultiLabelSoftMarginLossOptions{a.tensor("weight"), a.reduction()});
     }},
    {"MultiMarginLoss",
     [](const Arguments& a) {
       return make<nn::MultiMarginLoss>(
           nn::MultiMarginLossOptions{a.args.value("p", int64_t{1}), a.number("margin", 1),
                                      a.tensor("weight"), a.reduction()});
     }},
    {"PoissonNLLLoss",
     [](const Arguments& a) {
       return make<nn::PoissonNLLLoss>(
           nn::PoissonNLLLossOptions{.log_input = a.args.value("log_input", true),
                                     .full = a.args.value("full", false),
                                     .reduction = a.reduction()});
     }},
    {"SoftMarginLoss", [](const Arguments& a) { return make<nn::SoftMarginLoss>(a.reduction()); }},
    {"TripletMarginLoss",
     [](const Arguments& a) {
       return make<nn::TripletMarginLoss>(
           nn::TripletMarginLossOptions{.margin = a.number("margin", 1),
                                        .p = a.number("p", 2),
                                        .swap = a.args.value("swap", false),
                                        .reduction = a.reduction()});
     }},
    {"SmoothL1Loss",
     [](const Arguments& a) { return make<nn::SmoothL1Loss>(a.reduction(), a.number("beta", 1)); }},
};

TEST(losses, agree_with_pytorch) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "nn/losses.safetensors");
  const GoldenFile file(path);
  Coverage coverage("losses");
  for (const Json& c : file.cases) {
    const std::string id = c["id"];
    const auto factory = factories.find(c["class"]);
    if (factory == factories.end()) {
      coverage.left_out(c["class"]);
      continue;
    }
    SCOPED_TRACE(id + " " + c["args"].dump());
    coverage.ran();
    try {
      const LossRun loss = factory->second({c["args"], file});
      std::vector<Tensor> inputs;
      const auto name = [&](size_t i) { return id + ".in" + std::to_string(i); };
      for (size_t i = 0; i < c["inputs"].get<size_t>(); ++i) {
        inputs.push_back(file.tensor(name(i)));
        if (file.has(name(i) + ".grad")) inputs[i].set_requires_grad();
      }
      const Tensor output = loss(inputs);
      expect_close(output, file.tensor(id + ".out"), c["rtol"], c["atol"], "loss");
      output.backward(file.has(id + ".out.grad") ? file.tensor(id + ".out.grad") : Tensor());
      for (size_t i = 0; i < inputs.size(); ++i)
        if (file.has(name(i) + ".grad"))
          expect_close(inputs[i].grad(), file.tensor(name(i) + ".grad"), c["rtol"], c["atol"],
                       "gradient of input " + std::to_string(i));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  coverage.expect_complete();
}

}  // namespace
}  // namespace taper::tests
