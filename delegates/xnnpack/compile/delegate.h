// The host side of XNNPACK: which nodes it takes, and what it makes of them.
#pragma once
#include "taper/delegates/xnnpack/runtime/backend.h"
#include "taper/exporter/partition/delegate.h"

namespace taper::delegates::xnnpack {

/// Networks of f32 and of integers. compile/table.h names the files with what is taken. Lines,
/// images and volumes have channels last inside a part.
class XnnpackDelegate final : public partition::Delegate {
 public:
  /// `backend`: runs parts on this machine, or nullptr. Programs name the backend of `precision`,
  /// which is that of `backend`, too.
  explicit XnnpackDelegate(XnnpackBackend* backend = nullptr, Precision precision = Precision::f32)
      : backend_(backend), precision_(precision) {}

  std::string name() const override;
  uint32_t version() const override;
  DType rounds_to() const override;
  void prepare(ir::Graph& graph) const override;
  std::string refuses(const ir::Node& node) const override;
  bool computes_all_results() const override { return false; }
  /// Products whose input is rounded to 8 bits, with what rounds it.
  std::vector<partition::Group> groups(ir::Graph& graph) const override;
  /// Products of a mixture of experts, whose numbers of rows the library's graphs cannot compute.
  bool stands_alone(const ir::Node& node) const override;
  /// A part with a convolution or a matrix product pays.
  bool pays(const std::vector<const ir::Node*>& part) const override;
  partition::Compiled compile(const ir::Graph& body) const override;
  Backend* backend() const override { return backend_; }
  void time_nodes(partition::TakeNodeTimes take) const override;

 private:
  /// Makes texts of host code of what the backend tells.
  struct Observer final : NodeObserver {
    void ran(const Node* nodes, size_t count) override;
    uint64_t now_us() const override;
    partition::TakeNodeTimes take;
  };
  XnnpackBackend* backend_;
  Precision precision_;
  mutable Observer observer_;
};

}  // namespace taper::delegates::xnnpack
