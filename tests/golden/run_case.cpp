#include "run_case.h"

#include "compare.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/describe.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/eager/numbers.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"

namespace taper::golden {
namespace {

bool is_informative(const Json& golden, size_t k) {
  if (!golden.contains("informative_outputs")) return false;
  for (const Json& i : golden.at("informative_outputs"))
    if (i.get<size_t>() == k) return true;
  return false;
}

std::string compare_values(const CaseFile& file, const Json& golden,
                           const std::vector<Tensor>& results, Call& arguments) {
  const std::vector<Json> outputs = flat_outputs(golden.at("outputs"));
  const double rtol = golden.value("rtol", 0.0), atol = golden.value("atol", 0.0);
  if (results.size() < outputs.size())
    return std::to_string(results.size()) + " results, not " + std::to_string(outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (is_informative(golden, k)) continue;
    if (const std::string d = difference(file, results[k], outputs[k], rtol, atol); !d.empty())
      return "result " + std::to_string(k) + ": " + d;
  }
  if (golden.contains("mutated"))
    for (const auto& [path, want] : golden.at("mutated").items())
      if (const std::string d = difference(file, arguments.at(path), want, rtol, atol); !d.empty())
        return path + " afterwards: " + d;
  return "";
}

/// Asks for gradients where the case has some. An argument that is written gets a history first: a
/// leaf cannot be written.
std::map<std::string, Tensor> want_gradients(const Json& golden, Call& arguments, bool in_place) {
  std::map<std::string, Tensor> leaves;
  for (const auto& [path, want] : golden.at("grads").items()) {
    Tensor& t = arguments.at(path);
    t.set_requires_grad();
    leaves[path] = t;
    if (in_place && path == "args.0") t = eager::clone(t);
  }
  return leaves;
}

std::string compare_gradients(const CaseFile& file, const Json& golden,
                              const std::vector<Tensor>& results,
                              const std::map<std::string, Tensor>& leaves) {
  const std::vector<Json> given = flat_outputs(golden.at("grad_outputs"));
  std::vector<Tensor> outputs, seeds;
  for (size_t k = 0; k < given.size() && k < results.size(); ++k) {
    if (given[k].contains("none") || !results[k].defined() || !results[k].requires_grad()) continue;
    outputs.push_back(results[k]);
    seeds.push_back(file.tensor(given[k].at("tensor").get<std::string>()));
  }
  std::vector<std::string> paths;
  std::vector<Tensor> inputs;
  for (const auto& [path, leaf] : leaves) paths.push_back(path), inputs.push_back(leaf);
  const bool twice = golden.contains("grad_grad");
  std::vector<Tensor> gradients(inputs.size());  // undefined ones are zero
  if (!outputs.empty())
    gradients = eager::grad(outputs, inputs, seeds, twice, false, /*allow_unused=*/true);
  const double rtol = golden.value("grad_rtol", 0.0), atol = golden.value("grad_atol", 0.0);
  for (size_t i = 0; i < paths.size(); ++i) {
    const Tensor got = gradients[i].defined() ? gradients[i] : eager::zeros_like(inputs[i]);
    if (const std::string d = difference(file, got, golden.at("grads").at(paths[i]), rtol, atol);
        !d.empty())
      return "gradient of " + paths[i] + ": " + d;
  }
  if (!twice) return "";

  const Json& second = golden.at("grad_grad");
  Tensor loss;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!second.at("v").contains(paths[i]) || !gradients[i].defined()) continue;
    const Tensor v = file.tensor(second.at("v").at(paths[i]).at("tensor").get<std::string>());
    const Tensor term = eager::sum(gradients[i] * v);
    loss = loss.defined() ? loss + term : term;
  }
  std::vector<Tensor> seconds(inputs.size());
  if (loss.defined() && loss.requires_grad())
    seconds = eager::grad({loss}, inputs, {}, false, false, true);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!second.at("grads").contains(paths[i])) continue;
    const Tensor got = seconds[i].defined() ? seconds[i] : eager::zeros_like(inputs[i]);
    if (const std::string d = difference(file, got, second.at("grads").at(paths[i]), rtol,
                                         second.at("atol").get<double>());
        !d.empty())
      return "second gradient of " + paths[i] + ": " + d;
  }
  return "";
}

bool has_implementation(const eager::OperatorInfo& info) {
  return !info.kernels.empty() || info.decomposition != nullptr || info.number != nullptr ||
         (info.op->category == Category::view && info.symbolic_rule != nullptr);
}

/// Of operators that give a number, or check and give nothing.
std::string compare_number(const Json& outputs, const eager::Boxed& got) {
  if (outputs.empty()) return got.present ? "a result where there is none" : "";
  if (!got.present) return "no result";
  const Json& want = outputs.at(0);
  const double x = got.scalar().to<double>(), y = number_of(want).to<double>();
  const bool same_kind = got.kind == (want.contains("int")     ? Kind::integer
                                      : want.contains("float") ? Kind::real
                                                               : Kind::boolean);
  if (same_kind && (x == y || (x != x && y != y))) return "";
  return "the number is " + std::to_string(x) + ", not " + std::to_string(y) +
         (same_kind ? "" : ", or of another type");
}

Verdict run_values(const CaseFile& file, const Json& golden, const Target& target) {
  if (target.info->number != nullptr) {
    Call arguments(file, golden, *target.info);
    const std::string d = compare_number(
        golden.at("outputs"), eager::dispatch_number(*target.info, arguments.boxed(), {}));
    return {d.empty() ? Outcome::passed : Outcome::failed, d};
  }
  Call arguments(file, golden, *target.info);
  const bool with_gradients = golden.contains("grads") && !golden.at("grads").empty();
  std::map<std::string, Tensor> leaves;
  if (with_gradients) leaves = want_gradients(golden, arguments, target.in_place);
  const std::vector<Tensor> results = call(arguments, target);
  std::string d = compare_values(file, golden, results, arguments);
  if (d.empty() && with_gradients) d = compare_gradients(file, golden, results, leaves);
  return {d.empty() ? Outcome::passed : Outcome::failed, d};
}

}  // namespace

std::vector<Json> flat_outputs(const Json& outputs) {
  std::vector<Json> flat;
  for (const Json& o : outputs) {
    if (o.contains("list"))
      flat.insert(flat.end(), o.at("list").begin(), o.at("list").end());
    else
      flat.push_back(o);
  }
  return flat;
}

Target target_of(const std::string& overload) {
  const eager::Overload found = eager::find_overload(overload);
  if (found.info != nullptr) return {found.info, found.in_place};
  throw NotHere("no such row");
}

std::vector<Tensor> call(Call& arguments, const Target& target) {
  const eager::OperatorInfo& info = *target.info;
  if (target.in_place) {
    Tensor& self = arguments.at("args.0");
    eager::dispatch_in_place(info, arguments.boxed(), self, {});
    return {self};
  }
  if (info.schema.result_count == 1 && info.schema.results[0].list)
    return eager::dispatch_list(info, arguments.boxed(), {});
  std::vector<Tensor> results(static_cast<size_t>(info.schema.result_count));
  eager::dispatch(info, arguments.boxed(), results.data(), {});
  if (info.schema.parameters[0].mutated) arguments.at("args.0") = results[0];  // `resize_`
  return results;
}

Verdict run_eager(const CaseFile& file, const Json& golden, const Target& target) {
  if (target.info->op->category == Category::refused)
    return {Outcome::complex, "the operator is one of complex numbers"};
  if (!has_implementation(*target.info)) return {Outcome::without_kernel, "no kernel"};
  try {
    if (!golden.contains("error")) return run_values(file, golden, target);
    Call arguments(file, golden, *target.info);
    if (target.info->number != nullptr)
      eager::dispatch_number(*target.info, arguments.boxed(), {});
    else
      call(arguments, target);
    return {Outcome::failed,
            "must be refused: " + golden.at("error").at("message").get<std::string>()};
  } catch (const ComplexNumbers& e) {
    return {Outcome::complex, e.what()};
  } catch (const NotHere& e) {
    return {Outcome::without_kernel, e.what()};
  } catch (const eager::MissingKernelError& e) {
    return {Outcome::without_kernel, e.what()};
  } catch (const ExportError& e) {
    if (!golden.contains("error")) return {Outcome::failed, e.what()};
    const std::string_view name = target.info->name;
    if (std::string_view(e.what()).find(name.substr(0, name.find('.'))) == std::string_view::npos)
      return {Outcome::failed, std::string("the error does not name the operator: ") + e.what()};
    return {Outcome::passed, e.what()};
  } catch (const std::exception& e) {
    return {Outcome::failed, std::string("unexpected exception: ") + e.what()};
  }
}

}  // namespace taper::golden
