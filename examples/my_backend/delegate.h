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

  std::string refuses(const ir::Node& node) const override {
    if (node.op != &taper::ops::add_Tensor && node.op != &taper::ops::mul_Tensor)
      return "the backend has no such operator";
    if (node.op == &taper::ops::add_Tensor) {
      const Scalar* alpha = ir::Call<taper::ops::add_Tensor>(node).get<"alpha">();
      if (alpha == nullptr || alpha->is_real || alpha->integer != 1) return "alpha is not 1";
    }
    std::string reason;
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
    const auto number = [&](const ir::Value* v) {
      index.emplace(v, static_cast<uint32_t>(index.size()));
    };
    for (const ir::Input& input : body.inputs()) number(input.value.get());
    for (const ir::Constant& c : body.constants()) {
      number(c.value.get());
      compiled.constants.push_back({c.path, c.payload});
    }
    std::vector<uint32_t> words = {size(body.inputs()), size(body.constants()), size(body.nodes()),
                                   size(body.outputs())};
    for (const ir::Node& node : body.nodes()) {
      words.push_back(node.op == &taper::ops::add_Tensor ? add : mul);
      ir::for_each_value(node, [&](const ir::Value* v) { words.push_back(index.at(v)); });
      number(node.result());
    }
    for (const ir::Output& output : body.outputs()) words.push_back(index.at(output.value));
    compiled.blob.resize(words.size() * sizeof(uint32_t));
    std::memcpy(compiled.blob.data(), words.data(), compiled.blob.size());
    return compiled;
  }

  Backend* backend() const override { return &backend_; }

 private:
  template <class List>
  static uint32_t size(const List& list) {
    return static_cast<uint32_t>(list.size());
  }
  mutable MyBackend backend_;
};

}  // namespace mine
