// What the exporter asks of a delegate: which nodes it takes, and what it makes of them.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/runtime/device/backend.h"

namespace taper::partition {

/// A part of a graph, compiled.
struct Compiled {
  struct Constant {
    std::string path;  ///< of the weight that it was made from; may be empty
    std::shared_ptr<const ir::Payload> payload;
  };
  std::vector<std::byte> blob;
  /// The instruction hands them to the backend, behind the operands. Equal ones are stored once.
  std::vector<Constant> constants;
  /// Operands and results that the backend copies, because it lays images out in another way.
  int border_transposes = 0;
};

/// What the nodes of a part took in one call, in order.
struct NodeTime {
  std::string name;    ///< the library's: "Fully Connected (NC, F32) GEMM"
  std::string source;  ///< the model's: "linear at net.py:14 (fc1)"; "" if it is not known
  double us = 0;
};
using TakeNodeTimes = std::function<void(const std::vector<NodeTime>&)>;

/// Nodes of a graph, each behind those that it reads.
using Group = std::vector<ir::Node*>;

/// The host side of a backend.
class Delegate {
 public:
  virtual ~Delegate() = default;

  /// The name of its backend, which programs store.
  virtual std::string name() const = 0;
  /// The version of the blobs that `compile` makes.
  virtual uint32_t version() const = 0;
  /// What the backend may round the numbers of f32 to while it computes: f16, or f32, which is no
  /// rounding. Results of programs are compared with the tolerance of this dtype.
  virtual DType rounds_to() const { return DType::f32; }

  /// Writes nodes in another way that the backend takes, before it is asked for each node. The
  /// graph computes the same then.
  virtual void prepare(ir::Graph&) const {}
  /// Why the backend does not take the node: "its weight is no constant". Empty: it takes it.
  virtual std::string refuses(const ir::Node& node) const = 0;
  /// Whether it computes all results of nodes that have several. If not, it gets only such nodes of
  /// which the first result alone is used.
  virtual bool computes_all_results() const { return true; }
  /// Groups of nodes that the backend takes only as a whole, such as a product and what rounds its
  /// input. Each computes the result of its last node. A group becomes one `delegate` node before
  /// operators are taken apart. `refuses` gets this node later, and takes it.
  virtual std::vector<Group> groups(ir::Graph&) const { return {}; }
  /// Whether the node becomes a part of its own, of which no other node is a member.
  virtual bool stands_alone(const ir::Node&) const { return false; }
  /// Whether a part of these nodes is faster with the backend. The nodes are in order, and views
  /// are among them.
  virtual bool pays(const std::vector<const ir::Node*>& part) const = 0;
  /// Compiles the body of a delegate. It consists of nodes that were taken.
  virtual Compiled compile(const ir::Graph& body) const = 0;

  /// Runs its blobs on this machine; nullptr: only other machines can.
  virtual Backend* backend() const = 0;
  /// Calls `take` after each call of a part, of programs that are loaded from now on. Empty: no
  /// more. A backend that times no nodes does nothing.
  virtual void time_nodes(TakeNodeTimes) const {}
};

/// Tells the exporter and the command of a delegate and its backend (io/backends.h). The delegate
/// must outlive them. Call it from `main`.
void hand_in(const Delegate& delegate);
/// Those that were handed in.
std::span<const Delegate* const> delegates();
/// Throws ExportError if no delegate of this name was handed in.
const Delegate& find_delegate(std::string_view name);

}  // namespace taper::partition
