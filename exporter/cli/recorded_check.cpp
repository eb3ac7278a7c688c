#include "taper/exporter/cli/recorded_check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>

#include "taper/exporter/cli/callable.h"
#include "taper/exporter/cli/check_result.h"
#include "taper/exporter/cli/recorded_inputs.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/inspect/program_file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/recorded_calls.h"
#include "taper/exporter/io/tolerance.h"

namespace taper::cli {
namespace {

std::vector<int> keys(const std::map<int, io::Array>& recorded) {
  std::vector<int> result;
  for (const auto& [i, array] : recorded) result.push_back(i);
  return result;
}

bool contains(const io::Array& whole, const io::Array& part) {
  const auto a = whole.raw(), b = part.raw();
  return whole.dtype == part.dtype && !b.empty() &&
         std::search(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

/// Whether the file is a program with a method of this name.
bool has_method(const std::string& file, const std::string& name) {
  if (name.empty() || is_exported_model(file)) return false;
  const inspect::ProgramFile program(file, eager::all_kernels());
  return program.program().find_method(name.c_str()).ok();
}

/// Repeats the calls of one model.
class RecordedModel {
 public:
  RecordedModel(const RecordedCheck& check, const std::string& model)
      : check_(check), calls_(io::read_recorded_calls(check.recorded, model)) {
    if (calls_.empty()) throw ExportError(check.recorded + " contains no recorded call");
    ImportChoice import = check.import;
    import.model = model;
    known_ = call_positions(check.file, import);
    const bool is_method = check.method.empty() && has_method(check.file, model);
    callable_ = open_callable(check.file, is_method ? model : check.method, import);
  }

  /// Whether every result is close enough.
  bool run(std::ostream& out, const std::string& prefix) {
    for (call_ = 0; call_ < calls_.size(); ++call_) compare_call(calls_[call_]);
    if (worst_.empty() && notes_.empty())
      throw ExportError(check_.recorded +
                        " records no result to compare with; expected set<k>.output.<i>");
    bool passed = true;
    for (const auto& [name, w] : worst_)
      passed = print_result(out, prefix + name, w.result, " of call " + std::to_string(w.call)) &&
               passed;
    for (const auto& [name, note] : notes_)
      out << "ok    " << io::printable(prefix + name + "  " + note) << '\n';
    return passed;
  }

  size_t count() const { return calls_.size(); }
  /// The largest tolerance that any result had.
  double tolerance() const { return tolerance_; }

 private:
  /// The largest difference of one result over all calls.
  struct Worst {
    Checked result;
    size_t call = 0;
  };

  void compare_call(const io::RecordedCall& call) {
    set_inputs(call);
    scale_ = io::scale_of(call);
    const std::vector<Callable::Output> outputs = callable_->call();
    size_t next = 0;
    for (const int i : result_positions(call, outputs)) {
      const Callable::Output& output = outputs.at(next++);
      if (const auto want = call.outputs.find(i); want != call.outputs.end())
        take(output.name, compare(output.value, want->second));
    }
    for (const auto& [i, want] : call.mutated)
      take("argument " + std::to_string(i) + " afterwards",
           compare(outputs.at(next++).value, want));
    for (const auto& [path, want] : call.buffers) compare_buffer(call, path, want);
  }

  void take(const std::string& name, const Checked& result) {
    tolerance_ = std::max(tolerance_, result.tolerance);
    const auto [at, is_new] = worst_.try_emplace(name, Worst{result, call_});
    if (!is_new && result.is_worse_than(at->second.result)) at->second = {result, call_};
  }

  Checked compare(const io::Array& got, const io::Array& want, bool any_float = false) const {
    const double usual = std::max(callable_->tolerance(), io::tolerance_of(want.dtype));
    Checked result = check_result(got, want, check_.tolerance.value_or(usual), any_float);
    result.measure.scale = scale_;
    return result;
  }

  /// PyTorch records a buffer under each of its names, but a program has one state for all of them.
  /// If a name is not a state, it is checked by the state whose recorded bytes contain its own.
  void compare_buffer(const io::RecordedCall& call, const std::string& path,
                      const io::Array& want) {
    if (callable_->has_state(path))
      return take("state " + path, compare(callable_->state(path), want, /*any_float=*/true));
    const auto holder = std::ranges::find_if(call.buffers, [&](const auto& other) {
      return callable_->has_state(other.first) && contains(other.second, want);
    });
    if (holder == call.buffers.end())
      (void)callable_->state(path);  // throws an error that says what is wrong
    else
      notes_["state " + path] = "recorded as a part of " + holder->first;
  }

  void set_inputs(const io::RecordedCall& call) {
    const std::vector<Callable::Input>& inputs = callable_->inputs();
    std::vector<int> at = known_ ? known_->inputs : keys(call.inputs);
    if (!known_ && at.size() > inputs.size()) at = choose_inputs(call.inputs, inputs).value_or(at);
    require_count(at.size(), inputs.size(), "arguments");
    for (size_t i = 0; i < at.size(); ++i) {
      const auto found = call.inputs.find(at[i]);
      if (found == call.inputs.end())
        throw ExportError(check_.recorded + ": argument " + std::to_string(at[i]) + " (" +
                          inputs[i].name + ") is not recorded");
      callable_->set_input(static_cast<index_t>(i), found->second);
    }
  }

  /// The recorded results that are the first results of the method, in order. The arguments that
  /// the method writes follow them. Two kinds of recorded results are left out. A result that is
  /// None may be recorded as an empty tensor, such as the gradient of a tensor that needs none. The
  /// buffers that a training graph changes are recorded before its results.
  std::vector<int> result_positions(const io::RecordedCall& call,
                                    const std::vector<Callable::Output>& outputs) {
    return known_ ? known_positions(call, outputs.size()) : guessed_positions(call, outputs);
  }

  std::vector<int> known_positions(const io::RecordedCall& call, size_t of_method) {
    const int in_front = buffers_in_front(call);
    for (const auto& [recorded, want] : call.outputs) {
      const int i = recorded - in_front;
      if (i < 0 || std::ranges::find(known_->outputs, i) != known_->outputs.end()) continue;
      if (std::ranges::find(known_->absent, i) == known_->absent.end())
        throw ExportError(check_.recorded + " records result " + std::to_string(recorded) +
                          ", which the model does not have");
      const std::string name = "result " + std::to_string(recorded);
      if (want.numel() == 0)
        notes_[name] = "absent in both";
      else
        take(name, absent_instead_of(want));
    }
    if (!call.mutated.empty())
      require_count(call.mutated.size(), of_method - known_->outputs.size(), "changed arguments");
    std::vector<int> at;
    for (const int i : known_->outputs) at.push_back(i + in_front);
    return at;
  }

  /// How many more results are recorded than the model has, if all of these are recorded; otherwise
  /// 0.
  int buffers_in_front(const io::RecordedCall& call) const {
    const int of_model = static_cast<int>(known_->outputs.size() + known_->absent.size()),
              last = call.outputs.empty() ? -1 : call.outputs.rbegin()->first,
              more = std::max(0, last + 1 - of_model);
    for (int i = 0; i < more; ++i)
      if (!call.outputs.contains(i)) return 0;
    return more;
  }

  std::vector<int> guessed_positions(const io::RecordedCall& call,
                                     const std::vector<Callable::Output>& outputs) const {
    std::vector<int> at = keys(call.outputs);
    const auto too_many = [&] { return at.size() + call.mutated.size() > outputs.size(); };
    if (too_many()) std::erase_if(at, [&](int i) { return call.outputs.at(i).numel() == 0; });
    if (too_many() && outputs.size() >= call.mutated.size()) {
      const size_t wanted = outputs.size() - call.mutated.size();
      const std::vector<int> last(at.end() - static_cast<std::ptrdiff_t>(wanted), at.end());
      const auto alike = [&](int i, const Callable::Output& o) {
        const io::Array& want = call.outputs.at(i);
        return want.dtype == o.value.dtype && want.sizes == o.value.sizes;
      };
      if (std::equal(last.begin(), last.end(), outputs.begin(), alike)) at = last;
    }
    require_count(at.size() + call.mutated.size(), outputs.size(), "results and changed arguments");
    return at;
  }

  /// Throws ExportError unless the recording has as many of `what` for each call as the method.
  void require_count(size_t recorded, size_t of_method, const char* what) const {
    if (recorded != of_method)
      throw ExportError(check_.recorded + " records " + std::to_string(recorded) + " " + what +
                        " a call, but the method has " + std::to_string(of_method) +
                        "; check the .pt2 instead, which knows the constant arguments");
  }

  const RecordedCheck& check_;
  std::vector<io::RecordedCall> calls_;
  std::optional<CallPositions> known_;
  std::unique_ptr<Callable> callable_;
  std::map<std::string, Worst> worst_;
  // about results that are right without a comparison of numbers
  std::map<std::string, std::string> notes_;
  size_t call_ = 0;
  double tolerance_ = 0;
  double scale_ = 0;  // of the call
};

/// The models whose calls are repeated: the chosen one, the one with the name of the method, or all
/// that are recorded. A program must then have a method for each of several models.
std::vector<std::string> models_of(const RecordedCheck& check) {
  if (!check.import.model.empty()) return {check.import.model};
  std::vector<std::string> models = io::recorded_models(check.recorded);
  if (models.empty()) return {""};
  if (check.method.empty()) {
    if (models.size() > 1 && !is_exported_model(check.file))
      for (const std::string& model : models)
        if (!has_method(check.file, model))
          throw ExportError(check.file + " has no method " + model + ", but " + check.recorded +
                            " records calls of " + io::joined(models) +
                            "; choose those of one with --model");
    return models;
  }
  if (std::ranges::find(models, check.method) != models.end()) return {check.method};
  if (models.size() > 1)
    throw ExportError(check.recorded + " records calls of " + io::joined(models) +
                      "; choose those of " + check.method + " with --model");
  return models;
}

}  // namespace

void check_recorded(const RecordedCheck& check, std::ostream& out) {
  const std::vector<std::string> models = models_of(check);
  bool passed = true;
  size_t calls = 0;
  double tolerance = 0;
  for (const std::string& model : models) {
    RecordedModel recorded(check, model);
    passed = recorded.run(out, models.size() > 1 ? model + ", " : "") && passed;
    calls += recorded.count();
    tolerance = std::max(tolerance, recorded.tolerance());
  }
  if (!passed) throw ExportError("the results of " + check.file + " differ from " + check.recorded);
  out << io::counted(static_cast<int64_t>(calls), "recorded call") << " within " << tolerance
      << '\n';
}

}  // namespace taper::cli
