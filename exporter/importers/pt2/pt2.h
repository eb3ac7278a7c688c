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
// It is an nn::Module: its parameters can be trained further, saved and loaded.
#pragma once
#include <filesystem>
#include <functional>
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
  /// Which model of an archive that holds several; empty: "model", or the only one.
  std::string model;
  /// Narrower bounds of symbols by name: {"u0", {0, 512}}. Those of the program stay: PyTorch may
  /// have decided by them what the model does.
  struct Bounds {
    int64_t minimum, maximum;
  };
  std::map<std::string, Bounds> dims;
};

/// An argument of the model's call.
struct Input {
  enum class Kind : uint8_t {
    tensor,
    number,   ///< an int that may change from call to call
    constant  ///< was fixed when the model was exported: `value`
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

/// What a node of the graph gave, as soon as it is there: later nodes may overwrite the elements.
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

/// One model of an archive.
class Model : public nn::Module {
 public:
  /// Maps the file, checks it completely and reads its weights where they lie: they are copied
  /// only where they are written. Throws io::FileError for damage and for files of another kind,
  /// ExportError that lists every operator and dtype that Taper does not have.
  static Model load(const std::filesystem::path& path, const LoadOptions& options = {});
  /// The same over bytes in memory, which `owner` keeps alive; `name` stands in front of messages.
  static Model parse(std::span<std::byte> file, std::shared_ptr<const void> owner,
                     const std::string& name, const LoadOptions& options = {});
  /// The models in an archive.
  static std::vector<std::string> models(const std::filesystem::path& path);

  /// All arguments in the order of the call, constants included.
  const std::vector<Input>& inputs() const;
  const std::vector<Output>& outputs() const;
  /// The symbols of its sizes, those that depend on data ("u0") included.
  std::vector<std::string> symbols() const;
  /// What PyTorch assumed about a call's sizes and nobody checks here, in Python: of forms that are
  /// not understood. A call that does not meet one may give wrong results.
  const std::vector<std::string>& unread_guards() const;
  /// torch's version that wrote the file: "2.15.0".
  const std::string& torch_version() const;

  /// Runs the model on its tensor and number inputs, in order (constants are left out; numbers are
  /// 0-dim i64 tensors). Gives one tensor for each output: of a number a 0-dim one, of None an
  /// undefined one. Buffers that the model changes, and inputs that it writes, are changed. May be
  /// traced: buffers that it changes become states, and inputs that it writes are given as further
  /// outputs, called "NAME_mutated". Throws EagerError naming node, module and line where arguments
  /// do not fit. `observer` sees every tensor that an operator gives, in the order of the graph,
  /// those of branches and bodies of loops, too.
  std::vector<nn::Tensor> forward(const std::vector<nn::Tensor>& inputs,
                                  const Observer& observer = {});

  /// The arguments that the model was exported with, as `forward` takes them; nothing if the file
  /// does not hold them. Throws io::FileError where they cannot be read, or are not what the model
  /// takes.
  std::optional<std::vector<nn::Tensor>> example_inputs() const;

  /// For Exporter::method: what to trace, and between which inputs and outputs. Outputs that are
  /// None are left out, and inputs that the model writes are further outputs, in a trace or not.
  std::function<std::vector<nn::Tensor>(const std::vector<nn::Tensor>&)> function();
  std::vector<taper::InputSpec> input_specs() const;
  std::vector<std::string> output_names() const;

  void visit_members(nn::Members& members) override;

 private:
  struct Data;
  explicit Model(std::shared_ptr<Data> data) : data_(std::move(data)) {}
  std::shared_ptr<Data> data_;
};

}  // namespace taper::pt2
