// A model that PyTorch exported: `torch.export.save(torch.export.export(model, args), "model.pt2")`
// of torch 2.6 to 2.15. From here on neither Python nor torch is needed.
//
//   pt2::Model model = pt2::Model::load("resnet20.pt2");
//   std::vector<Tensor> logits = model.forward({images});              // runs at once
//
//   Exporter exporter;
//   exporter.method("forward", model.function(), model.input_specs(), model.output_names());
//   exporter.write("resnet20.taper");
//
// A Model is an nn::Module: you can train, save and load its parameters.
#pragma once
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "taper/exporter/nn/module.h"
#include "taper/exporter/trace/trace.h"

namespace taper::pt2 {

struct LoadOptions {
  /// The name of the model in an archive of several. Empty: "model", or the only one.
  std::string model;
  struct Bounds {
    int64_t minimum, maximum;
    bool operator==(const Bounds&) const = default;
  };
  /// What you say about a dimension: its bounds, its name, or both.
  struct DimOption {
    std::optional<Bounds> bounds;
    std::string name;  ///< of the symbol; empty: the place, "x.0", or PyTorch's "u0" without one
  };
  /// The keys are places ("x.0" is dimension 0 of input x), PyTorch's symbols ("s77", "u0"), and
  /// expressions over both ("u0*x.0"). The program checks bounds of an expression when it runs.
  /// Bounds of a symbol must lie inside those of the file: PyTorch may have used them to decide
  /// what the model does.
  std::map<std::string, DimOption> dims;
  /// Loads a model with parts that Taper does not have. A trace of it then fails with one list: of
  /// these parts, and of the calls that cannot be traced.
  bool refuses_in_trace = false;
};

/// A size that may change from call to call.
struct Dimension {
  std::string symbol;  ///< PyTorch's name: "s77", "u0"
  std::string place;   ///< the first input that has it alone, "x.0"; empty: there is none
  int64_t minimum = 0, maximum = std::numeric_limits<int64_t>::max();
  std::string inside;  ///< if no input has it alone, the first that has it inside: "x.2 is 8*s16"
  std::string to_string() const;  ///< "x.0 (2..64)", "u0 (0..)", "s16 (1..8, x.2 is 8*s16)"
};

/// An argument of the model's call.
struct Input {
  enum class Kind : uint8_t {
    tensor,
    number,   ///< an int that may change from call to call
    constant  ///< was fixed when the model was exported, as `value`
  };
  std::string name;
  Kind kind = Kind::tensor;
  DType dtype = DType::f32;  ///< of tensors
  eager::Dims sizes;         ///< of tensors
  Dim number;                ///< of numbers: its symbol
  std::string value;         ///< of constants, as Python prints it
};

struct Output {
  enum class Kind : uint8_t { tensor, number, none };
  std::string name;
  Kind kind = Kind::tensor;
};

/// A result of a node, directly after the node ran. Later nodes may overwrite its elements.
struct Computed {
  const std::string& name;   ///< in the graph: "conv2d_1"
  int index;                 ///< among the node's results
  const std::string& op;     ///< "add.Tensor"
  const std::string& input;  ///< the first tensor that the node reads; empty: none
  const std::string& module;
  Location location;  ///< in the user's model
  const nn::Tensor& value;
};
using Observer = std::function<void(const Computed&)>;

/// One model in an archive.
class Model : public nn::Module {
 public:
  /// Maps the file, checks all of it and uses the weights in place; a weight is copied only if it
  /// is written. Throws io::FileError for a damaged file and for a file of another kind. Throws
  /// ExportError, which lists every operator and dtype that Taper does not have.
  static Model load(const std::filesystem::path& path, const LoadOptions& options = {});
  /// The same for a file in memory, which `owner` keeps alive. Messages begin with `name`.
  static Model parse(std::span<std::byte> file, std::shared_ptr<const void> owner,
                     const std::string& name, const LoadOptions& options = {});
  /// The models in an archive.
  static std::vector<std::string> models(const std::filesystem::path& path);

  /// All arguments in the order of the call, constants included.
  const std::vector<Input>& inputs() const;
  const std::vector<Output>& outputs() const;
  /// The sizes that may change, with the file's bounds. Sizes that depend on data are among them.
  std::vector<Dimension> dimensions() const;
  /// Keys of LoadOptions::dims that name nothing in this model.
  const std::vector<std::string>& unknown_dims() const;
  /// Notes about the import that people should know.
  const std::vector<std::string>& notes() const;
  /// PyTorch's assumptions about the sizes of a call that Taper does not understand and does not
  /// check, as Python expressions. A call that breaks one may give wrong results.
  const std::vector<std::string>& unread_guards() const;
  /// Whether Taper has all of its parts. Only LoadOptions::refuses_in_trace loads other models.
  bool is_supported() const;
  /// The version of torch that wrote the file: "2.15.0".
  const std::string& torch_version() const;

  /// Runs the model on its tensor and number inputs, in order. Constants are left out; numbers are
  /// 0-dim i64 tensors. Returns one tensor for each output: 0-dim for a number, undefined for None.
  /// The model's writes to its buffers and inputs take effect. `forward` can be traced: buffers
  /// that the model writes become states, and inputs that it writes become further outputs, called
  /// "NAME_mutated". Throws EagerError with node, module and line if arguments do not fit.
  /// `observer` gets every tensor that an operator gives, in the order of the graph, including
  /// those in branches and loops.
  std::vector<nn::Tensor> forward(const std::vector<nn::Tensor>& inputs,
                                  const Observer& observer = {});

  /// The arguments that the model was exported with, as `forward` takes them. Empty if the file
  /// does not hold them. Throws io::FileError if they cannot be read or do not fit the model.
  std::optional<std::vector<nn::Tensor>> example_inputs() const;

  /// The arguments of Exporter::method: the function to trace, its inputs and its outputs. Outputs
  /// that are None are left out. Inputs that the model writes are further outputs, in a trace and
  /// outside. `observer` as in `forward`.
  std::function<std::vector<nn::Tensor>(const std::vector<nn::Tensor>&)> function(
      const Observer& observer = {});
  std::vector<taper::InputSpec> input_specs() const;
  std::vector<std::string> output_names() const;

  void visit_members(nn::Members& members) override;

 private:
  struct Data;
  explicit Model(std::shared_ptr<Data> data) : data_(std::move(data)) {}
  std::shared_ptr<Data> data_;
};

}  // namespace taper::pt2
