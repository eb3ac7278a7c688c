#include "run_exported.h"

#include <algorithm>

#include "compare.h"
#include "taper/exporter/eager/describe.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/numbers.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/exporter.h"
#include "taper/tests/support/execute.h"

namespace taper::golden {
namespace {

/// What a case asks for, as a function of dense inputs: the tensor arguments by path, then the
/// gradients of results.
class Function {
 public:
  Function(const CaseFile& file, const Json& golden, const Target& target)
      : file_(file), golden_(golden), target_(target) {
    Call arguments(file, golden, *target.info);
    for (const auto& [path, tensor] : arguments.tensors())
      paths_.push_back(path), inputs_.push_back(eager::clone(*tensor));
    if (!wants_gradients()) return;
    for (const Json& seed : flat_outputs(golden.at("grad_outputs"))) {
      has_seed_.push_back(!seed.contains("none"));
      if (has_seed_.back()) inputs_.push_back(file.tensor(seed));
    }
  }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<std::string>& gradient_paths() const { return gradient_paths_; }
  size_t result_count() const { return result_count_; }

  /// Results, then gradients. Also while traced.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) {
    if (target_.info->number != nullptr) return number(inputs);
    Call arguments(file_, golden_, *target_.info);
    std::vector<Tensor> leaves;
    gradient_paths_.clear();
    for (size_t i = 0; i < paths_.size(); ++i) {
      Tensor& t = arguments.at(paths_[i]);
      t = inputs[i];
      const bool wanted = wants_gradients() && golden_.at("grads").contains(paths_[i]);
      if (wanted) {
        t = t.detach();
        t.set_requires_grad();
        leaves.push_back(t);
        gradient_paths_.push_back(paths_[i]);
      }
      if (is_written(paths_[i])) t = eager::clone(t);  // a program does not write its inputs
    }
    std::vector<Tensor> results = call(arguments, target_);
    result_count_ = results.size();
    if (leaves.empty()) return results;
    std::vector<Tensor> outputs, seeds;
    size_t seed = paths_.size();
    for (size_t k = 0; k < has_seed_.size(); ++k) {
      if (!has_seed_[k]) continue;
      if (results[k].defined() && results[k].requires_grad())
        outputs.push_back(results[k]), seeds.push_back(fitted(inputs[seed], results[k]));
      ++seed;
    }
    std::vector<Tensor> gradients(leaves.size());
    if (!outputs.empty())
      gradients = eager::grad(outputs, leaves, seeds, false, false, /*allow_unused=*/true);
    for (size_t i = 0; i < leaves.size(); ++i)
      results.push_back(gradients[i].defined() ? gradients[i] : eager::zeros_like(leaves[i]));
    for (Tensor& t : results)
      if (t.defined()) t = t.detach();
    return results;
  }

 private:
  /// A number that a trace knows is no instruction. It becomes a result: the program must give
  /// what eager gives for these inputs.
  std::vector<Tensor> number(const std::vector<Tensor>& inputs) {
    Call arguments(file_, golden_, *target_.info);
    size_t i = 0;
    for (const auto& [path, tensor] : arguments.tensors()) *tensor = inputs[i++];
    const eager::Boxed got = eager::dispatch_number(*target_.info, arguments.boxed(), {});
    result_count_ = 1;
    return {got.present ? eager::full({}, got.scalar().to<double>(), DType::f64)
                        : eager::zeros({})};
  }
  /// The gradient of a result whose sizes only a run knows: as much of the input as there will be.
  static Tensor fitted(Tensor seed, const Tensor& result) {
    const eager::Dims sizes = result.sizes();
    for (size_t d = 0; d < sizes.size(); ++d)
      if (!sizes[d].is_constant())
        seed = eager::index_select(seed, static_cast<int64_t>(d), positions(sizes[d]));
    return seed;
  }
  /// 0, 1, … count - 1
  static Tensor positions(Dim count) {
    eager::Boxed arguments[] = {eager::Boxed::of(Dim(0)), eager::Boxed::of(count),
                                eager::Boxed::of(Dim(1)), eager::Boxed::of(DType::i64)};
    Tensor result;
    eager::dispatch(eager::info_of(ops::arange_start_step), arguments, &result, {});
    return result;
  }
  bool is_written(const std::string& path) const {
    if (target_.in_place && path == "args.0") return true;
    for (int i = 0; i < target_.info->argument_count; ++i)
      if ((target_.info->arguments[i].mutated ||
           target_.info->arguments[i].name.starts_with("running_")) &&
          (path == "args." + std::to_string(i) ||
           path == "kwargs." + std::string(target_.info->arguments[i].name)))
        return true;
    return false;
  }
  bool wants_gradients() const { return golden_.contains("grads") && !golden_.at("grads").empty(); }

  const CaseFile& file_;
  const Json& golden_;
  const Target& target_;
  std::vector<std::string> paths_, gradient_paths_;
  std::vector<Tensor> inputs_;
  std::vector<bool> has_seed_;
  size_t result_count_ = 0;
};

std::vector<std::byte> write_program(Function& function) {
  std::vector<InputSpec> specs;
  for (const Tensor& t : function.inputs())
    specs.push_back(input("input" + std::to_string(specs.size()), t.sizes(), t.dtype()));
  Exporter exporter;
  exporter.method(
      "forward",
      [&](const std::vector<Tensor>& in) {
        std::vector<Tensor> results = function(in);
        results.erase(std::remove_if(results.begin(), results.end(),
                                     [](const Tensor& t) { return !t.defined(); }),
                      results.end());
        return results;
      },
      specs);
  return exporter.write(ExportOptions{.exact = true});
}

std::string compare_bits(const Tensor& program, const Tensor& eager_result) {
  const Tensor want = eager::contiguous(eager_result);
  if (const std::string d = difference(program, want, 0, 0); !d.empty())
    return "not as in eager: " + d;
  return "";
}

std::string compare_all(const CaseFile& file, const Json& golden, const Function& function,
                        const std::vector<Tensor>& program, const std::vector<Tensor>& in_eager,
                        bool like_pytorch) {
  const bool random = golden.value("random", false);
  size_t k = 0;
  for (size_t i = 0; i < in_eager.size(); ++i) {
    if (!in_eager[i].defined()) continue;
    if (k == program.size()) return "the program has fewer results";
    const Tensor& got = program[k++];
    if (!random)
      if (const std::string d = compare_bits(got, in_eager[i]); !d.empty())
        return "result " + std::to_string(i) + " " + d;
    if (i < function.result_count() || !like_pytorch) continue;
    const std::string& path = function.gradient_paths()[i - function.result_count()];
    if (const std::string d =
            difference(file, got, golden.at("grads").at(path), golden.value("grad_rtol", 0.0),
                       golden.value("grad_atol", 0.0));
        !d.empty())
      return "gradient of " + path + ": " + d;
  }
  return "";
}

}  // namespace

Verdict run_exported(const CaseFile& file, const Json& golden, const Target& target,
                     bool like_pytorch) {
  try {
    Function function(file, golden, target);
    const eager::CountBounds bounds(0, 4096);  // of sizes that depend on data: memory is planned
    const std::vector<std::byte> bytes = write_program(function);
    const std::vector<Tensor> program = tests::execute(bytes, function.inputs(), nullptr);
    const std::vector<Tensor> again = tests::execute(bytes, function.inputs(), eager::threads());
    for (size_t i = 0; i < program.size(); ++i)
      if (const std::string d = compare_bits(again[i], program[i]); !d.empty())
        return {Outcome::failed, "with eager's threads, result " + std::to_string(i) + " is " + d};
    if (golden.contains("error"))
      return {Outcome::failed,
              "must be refused: " + golden.at("error").at("message").get<std::string>()};
    const std::vector<Tensor> in_eager = function(function.inputs());
    const std::string d = compare_all(file, golden, function, program, in_eager, like_pytorch);
    return {d.empty() ? Outcome::passed : Outcome::failed, d};
  } catch (const NotHere& e) {
    return {Outcome::without_kernel, e.what()};
  } catch (const eager::MissingKernelError& e) {
    return {Outcome::without_kernel, e.what()};
  } catch (const DataDependentError& e) {
    return {golden.contains("error") ? Outcome::passed : Outcome::decided_by_data, e.what()};
  } catch (const ExportError& e) {
    if (golden.contains("error")) return {Outcome::passed, e.what()};
    return {Outcome::failed, e.what()};
  } catch (const std::exception& e) {
    return {Outcome::failed, std::string("unexpected exception: ") + e.what()};
  }
}

}  // namespace taper::golden
