// Compares two runs of a model node by node. It shows where a program differs from its model, or
// what another export, other weights or other kernels change.
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
// A run holds a copy of every result of every node, so both runs take the memory of all
// activations. A comparison says which results belong together, how far they are from each other,
// and which one is the first beyond the tolerance. Names come from the debug table of a program;
// without that table only outputs are compared.
#pragma once
#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <optional>
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

/// A tensor that a node computed.
struct Result {
  std::string name;    ///< in the graph: "conv2d_1"
  int index;           ///< among the node's results
  std::string op;      ///< "conv2d"; in a program, what it became: "convolution"
  std::string input;   ///< the name of the first tensor that the node reads; may be empty
  std::string module;  ///< "features.3.conv"; empty: none, or not known
  std::string source;  ///< "net.py:12"; empty: not known
  io::Array value;
  bool is_view = false;    ///< shares the elements of another result
  bool is_folded = false;  ///< the node's weights hold an operator that followed it
  /// Lies as (batch, height, width, channels). The model's may have channels first.
  bool has_channels_last = false;
  bool is_fused = false;  ///< the end of several operators, the last of which gave it its name
  bool is_delegate = false;
};

struct Output {
  std::string name;  ///< may be empty
  std::string slot;  ///< in the model's call: "output 3", "input 1 afterwards"; empty: not known
  io::Array value;
};

struct Run {
  std::string title;            ///< for reports: the file's name
  std::vector<Result> nodes;    ///< in the order of execution
  std::vector<Output> outputs;  ///< in the order of the call
  bool by_name = false;         ///< a recording in which outputs have names and no order
};

// ---- runs

/// Runs a model of PyTorch in eager, without gradients, on its tensor and number inputs in order
/// (numbers are 0-dim arrays). The inputs do not change; the model's buffers change as in any run.
/// Throws the same errors as Model::forward.
Run run_model(pt2::Model& model, const std::vector<io::Array>& inputs);

/// Executes a method of `program` whose inputs are set. Results in the memory of other devices are
/// left out. The states change as in any run. The method has no profiler afterwards: this function
/// uses the profiler's clock to look at each result. Throws ExportError if the run fails, or if the
/// runtime was built without TAPER_PROFILE.
Run run_program(const Program& program, Method& method);

/// A run that was recorded elsewhere.
struct Recording {
  Run run;
  /// Arguments by their position in the model's call, including constants; empty: not recorded.
  std::map<int, io::Array> inputs;
};
/// Reads a file of one of these kinds:
///   - the first of recorded calls (io/recorded_calls.h), those of `model` if there are several;
///   - .safetensors with tensors by the names of outputs, and of nodes if they are recorded;
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
  /// Results without a counterpart: views, and results that another one contains after fusion,
  /// folding or merging.
  int only_in_want = 0, only_in_got = 0;

  /// The first node whose results differ by more than the tolerance; nullptr if there is none.
  const Pair* first_beyond() const;
  /// At most `count` nodes, those with the largest relative differences, the largest first.
  std::vector<const Pair*> worst(size_t count) const;
  /// Whether every output is within the tolerance. For runs without outputs: every node.
  bool fits() const;
};

/// For each result of `want`, the result of `got` from the same node; nullptr: none. A property
/// that a run does not know counts as equal. Several results of one name, line or operator are
/// matched in order. The rule:
///   1. equal names on the same line of the same module;
///   2. of the rest, equal operators there, if both have as many of them;
///   3. of the rest, the last results there, if their operators are related ("conv2d" and
///      "convolution", anything and a fused one);
///   4. of the rest, equal names in the same module, if the other run does not have the line.
/// Views, and all results of a node but the first, are matched by name alone. Sizes must be equal,
/// and so must types that are not floating; recordings are exempt. If a normalization was folded
/// into the convolution before it, the convolution is matched with the normalization.
std::vector<const Result*> match(const Run& want, const Run& got);

/// Whether one of two results has channels last, and the other is the same image with channels
/// first.
bool are_turned(const Result& a, const Result& b);

/// `tolerance` is relative to the largest magnitude of a result of `want`; see Measure::exceeds. If
/// it is not given, the dtypes of the results in both runs decide (io/tolerance.h).
/// Outputs are matched by their places in the call, else by their order. Outputs of a recording
/// with names are matched by name, as far as they are recorded. Throws ExportError if the runs do
/// not have the same outputs. Both runs must outlive the comparison.
Comparison compare(const Run& want, const Run& got, std::optional<double> tolerance = {});

struct PrintOptions {
  bool all = false;  ///< shows every node in order, instead of the worst ones
  size_t worst = 5;
};
/// Prints a table of outputs and nodes, and names the first node beyond the tolerance.
void print(std::ostream& out, const Comparison& comparison, const PrintOptions& options = {});

}  // namespace taper::compare
