#include "property_check.h"

#include <algorithm>
#include <cmath>

#include "compare.h"
#include "run_exported.h"
#include "taper/exporter/eager/describe.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/trace/trace.h"

namespace taper::golden {
namespace {

using Tensors = std::vector<Tensor>;

/// `what` differs between two runs, or "".
std::string difference_of(const Tensors& a, const Tensors& b, double rtol, double relative_atol) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (!a[k].defined() && !b[k].defined()) continue;
    double scale = 0;
    if (relative_atol > 0 && is_floating(b[k].dtype()))
      for (const double x : b[k].to(DType::f64).to_vector<double>())
        if (std::isfinite(x)) scale = std::max(scale, std::fabs(x));
    if (const std::string d = difference(a[k], b[k], rtol, relative_atol * scale); !d.empty())
      return "result " + std::to_string(k) + ": " + d;
  }
  return "";
}

class PropertyCheck {
 public:
  PropertyCheck(const Variation& variation, const Json& base, const Target& target,
                const Known& known, PropertyCounts& counts)
      : file_(variation.file),
        golden_(variation.golden),
        base_(base),
        target_(target),
        known_(known),
        counts_(counts) {}

  /// The first property that does not hold, or "".
  std::string run() {
    try {
      wanted_ = call_it(target_);
    } catch (const eager::MissingKernelError&) {
      return ++counts_.refused, "";
    } catch (const ExportError&) {
      return ++counts_.refused, "";
    }
    ++counts_.accepted;
    using Property = std::string (PropertyCheck::*)();
    constexpr std::pair<const char*, Property> properties[] = {
        {"threads", &PropertyCheck::threads}, {"strides", &PropertyCheck::strides},
        {"levels", &PropertyCheck::levels},   {"exported", &PropertyCheck::exported},
        {"symbols", &PropertyCheck::symbols}, {"gradients", &PropertyCheck::gradients}};
    for (const auto& [name, property] : properties) {
      std::string d;
      try {
        d = (this->*property)();
      } catch (const std::exception& e) {
        d = e.what();
      }
      const std::string message = std::string(name) + ": " + d;
      if (!d.empty() && known_.reason(std::string(target_.info->name), message) == nullptr)
        return message;
    }
    return "";
  }

 private:
  Tensors call_it(const Target& target, bool dense = false) {
    Call arguments(file_, golden_, *target.info);
    if (dense)
      for (const auto& [path, tensor] : arguments.tensors()) *tensor = eager::clone(*tensor);
    eager::manual_seed(0);
    return call(arguments, target);
  }

  std::string threads() {
    eager::set_threads(1);
    const Tensors one = call_it(target_);
    eager::set_threads(2);
    return difference_of(one, wanted_, 0, 0);
  }

  std::string strides() { return difference_of(call_it(target_, true), wanted_, 0, 0); }

  std::string levels() {
    eager::OperatorInfo portable = *target_.info;
    std::erase_if(portable.kernels, [](const Kernel* k) { return k->needs != CpuFeatures(); });
    if (portable.kernels.size() == target_.info->kernels.size()) return "";
    const Tensors got = call_it({&portable, target_.in_place});
    DType coarsest = DType::f64;
    for (const Tensor& t : got)
      if (t.defined() && is_floating(t.dtype()) && size_bytes(t.dtype()) < size_bytes(coarsest))
        coarsest = t.dtype();
    const double rtol = coarsest == DType::f64 ? 1e-10 : coarsest == DType::f32 ? 1e-5 : 2e-2;
    return difference_of(got, wanted_, rtol, rtol);
  }

  std::string exported() {
    bool has_result = false;
    for (const Tensor& t : wanted_) has_result = has_result || t.defined();
    if (!has_result) return "";
    const Verdict verdict = run_exported(file_, golden_, target_);
    return verdict.outcome == Outcome::passed ? "" : verdict.reason;
  }

  /// The tensor arguments as inputs of a traced function with a symbol for each extent: extents
  /// that are equal here are equal by name. What wants numbers refuses the symbols.
  std::string symbols() {
    Call arguments(file_, golden_, *target_.info);
    std::vector<InputSpec> inputs;
    std::map<int64_t, Dim> symbols;
    Dim::Bindings bindings;
    for (const auto& [path, tensor] : arguments.tensors()) {
      eager::Dims sizes = tensor->sizes();
      for (Dim& d : sizes) {
        const int64_t extent = d.value();
        if (extent < 2) continue;
        const auto [at, is_new] = symbols.try_emplace(extent, Dim());
        if (is_new) {
          at->second = Dim::symbol("s" + std::to_string(extent), 2, 1 << 20);
          bindings[at->second.parts().symbol] = extent;
        }
        d = at->second;
      }
      inputs.push_back(input("in" + std::to_string(inputs.size()), sizes, tensor->dtype()));
    }
    if (symbols.empty() || inputs.empty()) return "";
    std::unique_ptr<ir::Graph> graph;
    std::vector<size_t> defined;
    try {
      graph = trace(
          "f",
          [&](const Tensors& in) {
            Call traced(file_, golden_, *target_.info);
            size_t i = 0;
            for (const auto& [path, tensor] : traced.tensors()) {
              *tensor = in[i++];
              if (target_.in_place && path == "args.0") *tensor = eager::clone(*tensor);
            }
            Tensors results = call(traced, target_), kept;
            for (const Tensor& t : results)
              if (t.defined()) kept.push_back(t);
            return kept;
          },
          inputs);
    } catch (const ExportError& e) {
      counts_.refused_symbols.insert(e.what());
      return "";
    }
    ++counts_.symbolic;
    if (depends_on_data(*graph)) return interpreted(*graph, arguments);
    for (const Check& check : graph->checks()) {
      const int64_t left = check.left.evaluate(bindings), right = check.right.evaluate(bindings);
      const bool holds = check.comparison == Comparison::equal       ? left == right
                         : check.comparison == Comparison::not_equal ? left != right
                         : check.comparison == Comparison::less      ? left < right
                                                                     : left <= right;
      if (!holds) return "a check does not hold: " + check.message;
    }
    size_t k = 0;
    for (const Tensor& want : wanted_) {
      if (!want.defined()) continue;
      const ir::Type& type = graph->outputs()[k++].value->type;
      eager::Dims sizes(type.sizes, type.sizes + type.rank);
      for (Dim& d : sizes) d = d.evaluate(bindings);
      if (type.dtype != want.dtype()) return std::string("dtype ") + name_of(type.dtype);
      if (eager::to_string(sizes) != eager::to_string(want.sizes()))
        return "sizes " + eager::to_string(sizes) + ", a run gives " +
               eager::to_string(want.sizes());
    }
    return "";
  }

  static bool depends_on_data(const ir::Graph& graph) {
    return std::ranges::any_of(graph.symbols(), [](const ir::SymbolBinding& s) {
      return s.source == ir::SymbolSource::element;
    });
  }
  /// Sizes that symbols get from elements, in a run of the graph.
  std::string interpreted(const ir::Graph& graph, Call& arguments) {
    Tensors inputs;
    for (const auto& [path, tensor] : arguments.tensors()) inputs.push_back(eager::clone(*tensor));
    const ir::Interpretation result = ir::Interpreter(graph).run(inputs);
    size_t k = 0;
    for (const Tensor& want : wanted_)
      if (want.defined())
        if (const std::string d = difference(result.outputs[k++], want, 0, 0); !d.empty())
          return "interpreted: " + d;
    return "";
  }

  /// Of the arguments that PyTorch gives gradients for, at points apart from each other, so that
  /// none lies where a maximum or an order changes.
  std::string gradients() {
    if (target_.in_place || !base_.contains("grads")) return "";
    Call arguments(file_, golden_, *target_.info);
    Tensors leaves;
    int64_t elements = 0;
    for (const auto& [path, tensor] : arguments.tensors()) {
      if (is_complex(tensor->dtype())) return "";  // there are none of f64
      leaves.push_back(eager::clone(*tensor));
      if (!base_.at("grads").contains(path)) {
        if (is_floating(tensor->dtype())) leaves.back() = leaves.back().to(DType::f64);
        continue;
      }
      std::vector<double> x = tensor->to(DType::f64).to_vector<double>();
      for (double& value : x) {
        if (!std::isfinite(value) || std::fabs(value) > 1e6) return "";  // x + 1e-8 is x
        // squares: multiples of one number would differ alike from row to row
        const double n = static_cast<double>(++elements);
        value += 1e-3 * (1 + std::fmod(n * n * 0.6180339887498949, 1));
      }
      eager::Ints sizes;
      for (const Dim d : tensor->sizes()) sizes.push_back(d.value());
      leaves.back() = Tensor::from(x, sizes);
      leaves.back().set_requires_grad();
    }
    if (elements == 0 || elements > 40) return "";

    const auto results = [&](const Tensors& in) {
      Call differentiable(file_, golden_, *target_.info);
      size_t i = 0;
      for (const auto& [path, tensor] : differentiable.tensors()) *tensor = in[i++];
      eager::manual_seed(0);
      return call(differentiable, target_);
    };
    Tensors first;
    try {
      first = results(leaves);
    } catch (const ExportError&) {
      return "";  // an argument says another dtype
    }
    std::vector<size_t> used;
    for (size_t k = 0; k < first.size(); ++k) {
      if (!first[k].defined() || !first[k].requires_grad()) continue;
      if (first[k].dtype() != DType::f64) return "";  // rounded
      for (const double x : first[k].detach().to_vector<double>())
        if (!std::isfinite(x) || std::fabs(x) > 1e6) return "";
      used.push_back(k);
    }
    if (used.empty()) return "";
    const auto function = [&](const Tensors& in) -> Tensor {
      const Tensors all = results(in);
      Tensors parts;
      for (const size_t k : used) parts.push_back(all[k].reshape({all[k].numel()}));
      return eager::cat(parts, 0);
    };
    ++counts_.differentiated;
    std::string d = eager::gradcheck(function, leaves, 1e-6, 1e-4, 1e-3);
    // a kink within reach of the difference is not met by a smaller one
    if (!d.empty()) d = eager::gradcheck(function, leaves, 1e-8, 1e-3, 1e-2);
    if (!d.empty()) return d;
    d = eager::gradgradcheck(function, leaves, 1e-6, 1e-3, 1e-2);
    if (!d.empty()) d = eager::gradgradcheck(function, leaves, 1e-8, 1e-2, 1e-1);
    return d.empty() ? d : "second order: " + d;
  }

  const CaseFile& file_;
  const Json& golden_;
  const Json& base_;  ///< the case that it is a variation of
  const Target& target_;
  const Known& known_;
  PropertyCounts& counts_;
  Tensors wanted_;
};

}  // namespace

std::string check_properties(const Variation& variation, const Json& base, const Target& target,
                             const Known& known, PropertyCounts& counts) {
  return PropertyCheck(variation, base, target, known, counts).run();
}

}  // namespace taper::golden
