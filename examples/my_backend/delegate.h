// The host side of the backend "mine": it takes nodes, and writes blobs.
#pragma once
#include <cstring>
#include <unordered_map>

#include "backend.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/partition/delegate.h"

namespace mine {

class MyDelegate final : public partition::Delegate {
 public:
  std::string name() const override { return "mine"; }
  uint32_t version() const override { return 1; }
  Backend* backend() const override { return &backend_; }

  std::string refuses(const ir::Node& node) const override {
    if (node.op != &taper::ops::add_Tensor && node.op != &taper::ops::mul_Tensor)
      return "the backend has no such operator";
    std::string reason;
    if (node.op == &taper::ops::add_Tensor) {
      const Scalar* alpha = ir::Call<taper::ops::add_Tensor>(node).get<"alpha">();
      if (alpha == nullptr || alpha->to<double>() != 1) reason = "alpha is not 1";
    }
    ir::for_each_value(node, [&](const ir::Value* v) {
      if (v->type.dtype != DType::f32) reason = "an argument is not f32";
      if (!ir::same_sizes(v->type, node.result()->type)) reason = "an argument is broadcast";
    });
    return reason;
  }

  // One node is no faster here than with its kernel.
  bool pays(const std::vector<const ir::Node*>& part) const override { return part.size() > 1; }

  partition::Compiled compile(const ir::Graph& body) const override {
    partition::Compiled compiled;
    std::unordered_map<const ir::Value*, uint32_t> index;
    const auto count = [&](const ir::Value* v) { index.emplace(v, index.size()); };
    for (const ir::Input& input : body.inputs()) count(input.value.get());
    for (const ir::Constant& c : body.constants()) {
      count(c.value.get());
      compiled.constants.push_back({c.path, c.payload});
    }
    std::vector<size_t> words = {index.size(), body.nodes().size(), body.outputs().size()};
    for (const ir::Node& node : body.nodes()) {
      words.push_back(node.op == &taper::ops::add_Tensor ? add : mul);
      ir::for_each_value(node, [&](const ir::Value* v) { words.push_back(index.at(v)); });
      count(node.result());
    }
    for (const ir::Output& output : body.outputs()) words.push_back(index.at(output.value));
    const std::vector<uint32_t> blob(words.begin(), words.end());
    compiled.blob.resize(blob.size() * sizeof(uint32_t));
    std::memcpy(compiled.blob.data(), blob.data(), compiled.blob.size());
    return compiled;
  }

 private:
  mutable MyBackend backend_;
};

}  // namespace mine
