// A PyTorch model that runs in eager, with the graph as it is in the file. It needs no bounds of
// sizes, and also runs models that cannot be exported.
#include <algorithm>
#include <map>

#include "taper/exporter/cli/callable.h"
#include "taper/exporter/cli/import_model.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/tolerance.h"

namespace taper::cli {
namespace {

using eager::Tensor;

class EagerModelCall : public Callable {
 public:
  explicit EagerModelCall(pt2::Model model) : model_(std::move(model)) {
    for (const pt2::Input& input : model_.inputs())
      if (input.kind != pt2::Input::Kind::constant) inputs_.push_back(describe(input));
    tensors_.resize(inputs_.size());
    for (const auto& [path, tensor] : model_.state_dict())
      versions_[path] = tensor.impl()->storage->version();
  }

  std::string name() const override { return "forward"; }

  void set_input(index_t i, const io::Array& array) override {
    const Input& input = inputs_.at(static_cast<size_t>(i));
    if (array.dtype != input.dtype || array.sizes.size() != input.sizes.size())
      throw mismatch(i, array);
    const io::Array copy = array.clone();
    copy.settle_bools();
    tensors_[static_cast<size_t>(i)] = eager::tensor_of(copy);
  }
  void set_number(index_t i, int64_t number) override {
    set_input(i, io::Array::of<int64_t>({}, std::span(&number, 1)));
  }
  void set_number(index_t i, double) override {
    throw ExportError("input " + inputs_.at(static_cast<size_t>(i)).text + " needs an integer");
  }

  std::vector<Output> call() override {
    const eager::NoGrad guard;
    const std::vector<std::string> names = model_.output_names();
    for (const Input& input : inputs_) tolerance_.add(input.dtype);
    const std::vector<Tensor> results =
        model_.function([this](const pt2::Computed& c) { count(c); })(tensors_);
    std::vector<Output> outputs;
    for (size_t i = 0; i < results.size(); ++i)
      outputs.push_back({names.at(i), eager::array_of(results[i])});
    return outputs;
  }

  double tolerance() const override { return tolerance_.value(); }

  bool has_state(const std::string& path) override { return model_.state_dict().contains(path); }
  io::Array state(const std::string& path) override { return eager::array_of(tensor(path)); }

  void load_states(const std::filesystem::path& path) override {
    const io::ArrayMap arrays = io::read_safetensors(path).tensors;
    eager::NamedTensors values;
    for (const auto& [name, array] : arrays) {
      const Tensor& state = tensor(name);
      const Shape& shape = *state.ref({}).shape;
      require_state(path, name, array, state.dtype(), {shape.sizes, shape.sizes + shape.rank});
      array.settle_bools();
      values[name] = eager::tensor_of(array);
    }
    model_.load_state_dict(values, /*strict=*/false);
  }

  /// Saves the states that were written since the model was loaded.
  void save_states(const std::filesystem::path& path) override {
    io::SafeTensors content;
    for (const auto& [name, tensor] : model_.state_dict())
      if (tensor.impl()->storage->version() != versions_.at(name))
        content.tensors[name] = eager::array_of(tensor);
    io::write_safetensors(path, content);
  }

 private:
  /// Views compute nothing. An example: a run that computes in f32 may read int8 weights.
  void count(const pt2::Computed& computed) {
    if (computed.value.impl()->view == nullptr) tolerance_.add(computed.value.dtype());
  }

  static Input describe(const pt2::Input& input) {
    Input described;
    described.name = input.name;
    described.is_number = input.kind == pt2::Input::Kind::number;
    described.dtype = described.is_number ? DType::i64 : input.dtype;
    constexpr int64_t max_extent = int64_t{1} << 40;  // a larger bound counts as none
    std::vector<std::string> extents;
    for (const Dim size : input.sizes) {
      if (const Symbol* s = size.as_symbol())
        described.ranges += "; " + s->name + " must lie in " + std::to_string(s->minimum) + ".." +
                            (s->maximum < max_extent ? std::to_string(s->maximum) : "");
      extents.push_back(size.to_string());
      described.sizes.push_back(size.is_constant() ? size.value() : any_extent);
    }
    described.text = input.name + ": " +
                     (described.is_number ? "integer"
                                          : std::string(taper::name_of(input.dtype)) + "[" +
                                                io::joined(extents) + "]");
    return described;
  }

  Tensor tensor(const std::string& path) {
    const eager::NamedTensors all = model_.state_dict();
    const auto at = all.find(path);
    if (at == all.end()) throw ExportError("the model has no parameter or buffer " + path);
    return at->second;
  }

  pt2::Model model_;
  std::vector<Tensor> tensors_;  ///< one for each of inputs_
  std::map<std::string, uint64_t> versions_;
  io::Tolerance tolerance_;  ///< for the dtypes that calls have computed so far
};

}  // namespace

std::unique_ptr<Callable> open_eager(const std::filesystem::path& path,
                                     const ImportChoice& choice) {
  pt2::Model model = import_model(path, choice);
  UnknownDims unknown;
  unknown.add(model);
  unknown.require_none();
  return std::make_unique<EagerModelCall>(std::move(model));
}

}  // namespace taper::cli
