#include "run_case.h"

#include "compare.h"
#include "taper/exporter/eager/describe.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/numbers.h"

namespace taper::golden {
namespace {

/// Adds a line to those of a verdict.
void add(std::string& lines, const std::string& what, const std::string& difference) {
  if (difference.empty()) return;
  lines += (lines.empty() ? "" : "\n") + what + ": " + difference;
}

/// Whether result k is left to the implementation, as a case or the operator says: those of
/// embedding_bag are notes for its own backward pass.
bool is_informative(const Json& golden, const Target& target, size_t k) {
  const Operator* op = target.info->op;
  if (op == &ops::embedding_bag || op == &ops::_embedding_bag ||
      op == &ops::embedding_bag_padding_idx)
    return k > 0;
  if (!golden.contains("informative_outputs")) return false;
  for (const Json& i : golden.at("informative_outputs"))
    if (i.get<size_t>() == k) return true;
  return false;
}

/// Whether result k holds the indices of an order that leaves open which of equal elements comes
/// first.
bool is_open_order(const Target& target, size_t k) {
  return (target.info->op == &ops::sort && k == 1) || (target.info->op == &ops::argsort && k == 0);
}

/// Indices of an order along a dimension: each once, and the elements in the same order.
std::string difference_of_orders(const Tensor& self, int64_t dim, const Tensor& got,
                                 const Tensor& want) {
  const Tensor all = std::get<0>(eager::sort(got, dim)), same = std::get<0>(eager::sort(want, dim));
  if (const std::string d = difference(all, same, 0, 0); !d.empty()) return "sorted: " + d;
  return difference(eager::gather(self, dim, got), eager::gather(self, dim, want), 0, 0);
}

std::string compare_values(const CaseFile& file, const Json& golden, const Target& target,
                           const std::vector<Tensor>& results, Call& arguments) {
  const std::vector<Json> outputs = flat_outputs(golden.at("outputs"));
  const double rtol = golden.value("rtol", 0.0), atol = golden.value("atol", 0.0);
  if (results.size() < outputs.size())
    return std::to_string(results.size()) + " results, not " + std::to_string(outputs.size());
  std::string lines;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (is_informative(golden, target, k)) continue;
    std::string d = difference(file, results[k], outputs[k], rtol, atol);
    if (!d.empty() && is_open_order(target, k))
      d = difference_of_orders(arguments.at("args.0"), arguments.integer("dim"), results[k],
                               file.tensor(outputs[k]));
    add(lines, "result " + std::to_string(k), d);
  }
  if (golden.contains("mutated"))
    for (const auto& [path, want] : golden.at("mutated").items())
      add(lines, path + " afterwards", difference(file, arguments.at(path), want, rtol, atol));
  return lines;
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
    seeds.push_back(file.tensor(given[k]));
  }
  std::vector<std::string> paths;
  std::vector<Tensor> inputs;
  for (const auto& [path, leaf] : leaves) paths.push_back(path), inputs.push_back(leaf);
  const bool twice = golden.contains("grad_grad");
  std::vector<Tensor> gradients(inputs.size());  // undefined ones are zero
  if (!outputs.empty())
    gradients = eager::grad(outputs, inputs, seeds, twice, false, /*allow_unused=*/true);
  const double rtol = golden.value("grad_rtol", 0.0), atol = golden.value("grad_atol", 0.0);
  std::string lines;
  for (size_t i = 0; i < paths.size(); ++i) {
    const Tensor got = gradients[i].defined() ? gradients[i] : eager::zeros_like(inputs[i]);
    add(lines, "gradient of " + paths[i],
        difference(file, got, golden.at("grads").at(paths[i]), rtol, atol));
  }
  if (!twice) return lines;

  const Json& second = golden.at("grad_grad");
  Tensor loss;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!second.at("v").contains(paths[i]) || !gradients[i].defined()) continue;
    const Tensor v = file.tensor(second.at("v").at(paths[i]));
    const Tensor term = eager::sum(gradients[i] * v);
    loss = loss.defined() ? loss + term : term;
  }
  std::vector<Tensor> seconds(inputs.size());
  if (loss.defined() && loss.requires_grad())
    seconds = eager::grad({loss}, inputs, {}, false, false, true);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!second.at("grads").contains(paths[i])) continue;
    const Tensor got = seconds[i].defined() ? seconds[i] : eager::zeros_like(inputs[i]);
    add(lines, "second gradient of " + paths[i],
        difference(file, got, second.at("grads").at(paths[i]), rtol,
                   second.at("atol").get<double>()));
  }
  return lines;
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
  std::string lines = compare_values(file, golden, target, results, arguments);
  if (with_gradients && results.size() >= flat_outputs(golden.at("outputs")).size()) {
    const std::string more = compare_gradients(file, golden, results, leaves);
    lines += (lines.empty() || more.empty() ? "" : "\n") + more;
  }
  return {lines.empty() ? Outcome::passed : Outcome::failed, lines};
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
  throw NotHere("there is no row " + overload);
}

Target target_of(const std::string& overload, const Json& golden) {
  const Target target = target_of(overload);
  const Json& args = golden.at("args");
  for (size_t i = 0; i < args.size(); ++i) {
    const Parameter& p = target.info->schema.parameters[i];
    const bool is_number = p.kind != Kind::tensor && p.kind != Kind::none && !p.list;
    if (is_number && args[i].contains("tensor")) return target_of(overload + ".Tensor");
  }
  return target;
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
