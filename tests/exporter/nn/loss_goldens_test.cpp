// Every loss that Taper has against PyTorch's values and gradients.
#include <functional>

#include "taper/exporter/nn/loss.h"
#include "taper/tests/exporter/nn/golden.h"

namespace taper::tests {
namespace {

using LossPtr = std::unique_ptr<nn::Loss>;

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

const std::map<std::string, std::function<LossPtr(const Arguments&)>> factories = {
    {"BCELoss",
     [](const Arguments& a) -> LossPtr {
       return std::make_unique<nn::BCELoss>(nn::BCELossOptions{a.tensor("weight"), a.reduction()});
     }},
    {"BCEWithLogitsLoss",
     [](const Arguments& a) -> LossPtr {
       return std::make_unique<nn::BCEWithLogitsLoss>(
           nn::BCEWithLogitsLossOptions{a.tensor("weight"), a.tensor("pos_weight"), a.reduction()});
     }},
    {"CrossEntropyLoss",
     [](const Arguments& a) -> LossPtr {
       return std::make_unique<nn::CrossEntropyLoss>(nn::CrossEntropyLossOptions{
           a.tensor("weight"), a.ignore_index(), a.reduction(), a.number("label_smoothing", 0)});
     }},
    {"HuberLoss",
     [](const Arguments& a) -> LossPtr {
       return std::make_unique<nn::HuberLoss>(a.reduction(), a.number("delta", 1));
     }},
    {"KLDivLoss",
     [](const Arguments& a) -> LossPtr {
       return std::make_unique<nn::KLDivLoss>(
           nn::KLDivLossOptions{a.reduction(), a.args.value("log_target", false)});
     }},
    {"L1Loss",
     [](const Arguments& a) -> LossPtr { return std::make_unique<nn::L1Loss>(a.reduction()); }},
    {"MSELoss",
     [](const Arguments& a) -> LossPtr { return std::make_unique<nn::MSELoss>(a.reduction()); }},
    {"NLLLoss",
     [](const Arguments& a) -> LossPtr {
       return std::make_unique<nn::NLLLoss>(
           nn::NLLLossOptions{a.tensor("weight"), a.ignore_index(), a.reduction()});
     }},
    {"SmoothL1Loss",
     [](const Arguments& a) -> LossPtr {
       return std::make_unique<nn::SmoothL1Loss>(a.reduction(), a.number("beta", 1));
     }},
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
      const LossPtr loss = factory->second({c["args"], file});
      const Tensor inputs[] = {file.tensor(id + ".in0"), file.tensor(id + ".in1")};
      for (int i = 0; i < 2; ++i)
        if (file.has(id + ".in" + std::to_string(i) + ".grad")) inputs[i].set_requires_grad();
      const Tensor output = (*loss)(inputs[0], inputs[1]);
      expect_close(output, file.tensor(id + ".out"), c["rtol"], c["atol"], "loss");
      output.backward(file.has(id + ".out.grad") ? file.tensor(id + ".out.grad") : Tensor());
      for (int i = 0; i < 2; ++i) {
        const std::string gradient = id + ".in" + std::to_string(i) + ".grad";
        if (file.has(gradient))
          expect_close(inputs[i].grad(), file.tensor(gradient), c["rtol"], c["atol"],
                       "gradient of input " + std::to_string(i));
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  coverage.print();
}

}  // namespace
}  // namespace taper::tests
