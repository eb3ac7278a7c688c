// Two runs of a model beside each other, node by node: where a program leaves the model that it was
// exported from, or what another export, other weights or other kernels change.
//
//   pt2::Model model = pt2::Model::load("net.pt2");
//   compare::Run want = compare::run_model(model, {image});
//   Module module = Module::load("net.taper").value();
//   Method method = module.method("forward").value();
//   method.set_input(0, pixels, {1, 3, 32, 32});
//   compare::Run got = compare::run_program(module.program(), method);
//
//   compare::Comparison c = compare::compare(want, got);
//   compare::print(std::cout, c);
//   if (c.first_beyond()) std::cout << c.first_beyond()->want->module << '\n';
//
// Goes in: runs, each with a copy of every result of every node: as much memory as all activations
// together, for both runs at once. Comes out: which results belong together, how far they are from
// each other, and the first that is too far. Programs must have been exported with their debug
// table to have names; without one only outputs are compared.
#pragma once
#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "taper/exporter/compare/measure.h"

namespace taper {
class Method;
class Program;
namespace pt2 {
class Model;
}
}  // namespace taper

namespace taper::compare {

/// A tensor that a node gave.
struct Result {
  std::string name;    ///< in the graph: "conv2d_1"
  int index;           ///< among the node's results
  std::string op;      ///< "conv2d", in a program what became of it: "convolution"
  std::string input;   ///< the name of the first tensor that the node reads; may be empty
  std::string module;  ///< "features.3.conv"; empty: of none, or not known
  std::string source;  ///< "net.py:12"; empty: not known
  io::Array value;
  bool is_view = false;    ///< looks at the elements of another result
  bool is_folded = false;  ///< the node's weights hold an operator that followed it
};

struct Output {
  std::string name;  ///< may be empty
  std::string slot;  ///< of the model's call: "output 3", "input 1 afterwards"; empty: not known
  io::Array value;
};

struct Run {
  std::string title;            ///< for reports: the file's name
  std::vector<Result> nodes;    ///< in the order of execution
  std::vector<Output> outputs;  ///< in the order of the call
  bool by_name = false;         ///< a recording whose outputs have names and no order
};

// ---- runs

/// Runs a model of PyTorch in eager, without gradients, on its tensor and number inputs in order
/// (numbers are arrays without sizes). The inputs stay as they are; the model's buffers change as
/// in any run. Throws as Model::forward.
Run run_model(pt2::Model& model, const std::vector<io::Array>& inputs);

/// Executes a method of `program` whose inputs are set. Results in the memory of other devices are
/// left out. The states change as in any run, and no profiler is set afterwards. Throws ExportError
/// if the run fails, or if the runtime was built without TAPER_PROFILE: each instruction is looked
/// at when the profiler's clock is read behind it.
Run run_program(const Program& program, Method& method);

/// What was recorded elsewhere.
struct Recording {
  Run run;
  /// Arguments by their position in the model's call, constants counted; empty: not recorded.
  std::map<int, io::Array> inputs;
};
/// From a file of
///   - the first of recorded calls (io/recorded_calls.h), those of `model` if there are several;
///   - .safetensors with tensors by the names of outputs, and of nodes as far as they are there;
///   - .npy with the only output.
/// Throws io::FileError.
Recording read_recording(const std::filesystem::path& path, const std::string& model = "");

// ---- comparing

/// Two results of one node, or two outputs. Points into the runs.
struct Pair {
  const Result *want, *got;  ///< nullptr for outputs
  std::string name;          ///< of the node in `want`, or of the output
  Measure measure;
};

struct Comparison {
  std::string want, got;  ///< titles
  double tolerance;
  std::vector<Pair> nodes;    ///< in the order of execution
  std::vector<Pair> outputs;  ///< in the order of the call
  /// Results without a counterpart: fused, folded or merged into others, or views.
  int only_in_want = 0, only_in_got = 0;

  /// The first node whose results are further apart than the tolerance, nullptr if none are.
  const Pair* first_beyond() const;
  /// At most `count` nodes, those with the largest relative differences, the largest first.
  std::vector<const Pair*> worst(size_t count) const;
  /// Whether every output is within the tolerance; of runs without outputs, every node.
  bool fits() const;
};

/// Which result of `got` is that of the same node, for each of `want`; nullptr: none. The rule,
/// with what a run does not know taken as equal, and further results of one name, line or operator
/// taken in order:
///   1. equal names on the same line of the same module;
///   2. of the rest, equal operators there, if both have as many of them;
///   3. of the rest, the last results there, if their operators are related ("conv2d" and
///      "convolution", anything and a fused one);
///   4. of the rest, equal names in the same module, if the other run does not have the line.
/// Views, and all but the first of a node's results, have counterparts by name alone. Sizes must be
/// equal, and types where they are not floating; a recording's need not be. A convolution into
/// which the normalization behind it was folded is the counterpart of that one, not of the
/// convolution.
std::vector<const Result*> match(const Run& want, const Run& got);

/// `tolerance` is relative to the largest magnitude of a result of `want`; see Measure::exceeds.
/// Outputs belong together by their places in the call, else by their order; those of recordings
/// with names by name, as far as they are recorded. Throws ExportError if the runs do not have the
/// same outputs. Both runs must outlive the comparison.
Comparison compare(const Run& want, const Run& got, double tolerance = 1e-4);

struct PrintOptions {
  bool all = false;  ///< every node in order, instead of the worst
  size_t worst = 5;
};
/// A table of outputs and nodes, and which is the first beyond the tolerance.
void print(std::ostream& out, const Comparison& comparison, const PrintOptions& options = {});

}  // namespace taper::compare
