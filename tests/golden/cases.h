// Golden cases: calls of one ATen overload with arguments, results, gradients and errors that
// PyTorch gave, in one safetensors file an overload. `__metadata__.cases` holds the calls as JSON;
// tensors are named by key.
#pragma once
#include <deque>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"
#include "taper/exporter/eager/owned_arguments.h"
#include "taper/exporter/io/safetensors.h"

namespace taper::golden {

using Json = nlohmann::json;
using eager::Tensor;

/// A case uses what Taper does not have: a dtype, an operator. Counted, never
/// passed.
class NotHere : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One file.
struct CaseFile {
  std::string name;  ///< "add_.Tensor", "relu": PyTorch's, without "aten."
  io::SafeTensors content;
  std::vector<Json> cases;

  static CaseFile read(const std::filesystem::path& path);
  /// The row-major tensor under a key, copied.
  Tensor tensor(const std::string& key) const;
  /// The tensor that an argument or result names; a complex one is stored as its real view.
  Tensor tensor(const Json& value) const;
};

/// "aten.add.Tensor.safetensors" → "add.Tensor", "aten.relu.default.safetensors" → "relu",
/// "torchao.quantize_affine.default.safetensors" → "torchao::quantize_affine"
std::string overload_of(const std::filesystem::path& path);
DType parse_dtype(const std::string& name);  ///< "float32"
Scalar number_of(const Json& value);         ///< {"int": 3}, {"float": 2.5}, {"bool": true}

/// The arguments of one case in the row's order, boxed, with what they point to.
class Call {
 public:
  Call(const CaseFile& file, const Json& golden, const eager::OperatorInfo& info);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  eager::Boxed* boxed() { return boxed_.data(); }
  /// The tensor argument that a path names: "args.0", "args.0.1", "kwargs.out".
  Tensor& at(const std::string& path);
  bool has(const std::string& path) const { return paths_.count(path) != 0; }
  /// An integer argument, by its name in the schema.
  int64_t integer(std::string_view parameter) const;
  /// All tensor arguments by path, the way a traced function takes them as inputs.
  const std::map<std::string, Tensor*>& tensors() const { return paths_; }

 private:
  eager::Boxed box(const CaseFile& file, const Json& value, const Parameter& parameter,
                   const std::string& path);
  Tensor make_tensor(const CaseFile& file, const Json& value) const;

  /// A list of one that stands for n is repeated, as PyTorch does, but for the operator to refuse.
  bool repeats_lists_ = true;
  const eager::OperatorInfo& info_;
  std::vector<eager::Boxed> boxed_;
  std::map<std::string, Tensor*> paths_;
  std::deque<Tensor> tensors_;
  std::deque<std::vector<Tensor>> tensor_lists_;
  eager::OwnedArguments owned_;
};

}  // namespace taper::golden
