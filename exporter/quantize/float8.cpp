#include "taper/exporter/quantize/float8.h"

#include <algorithm>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/interpreter.h"

namespace taper::quantize {
namespace {

using eager::Tensor;

constexpr double largest = 448;

}  // namespace

Float8Weight round_to_float8(const ir::Payload& weight, int64_t dim) {
  const eager::NoGrad guard;
  const auto payload = std::make_shared<const ir::Payload>(weight);
  const Tensor w = ir::tensor_of(payload).to(DType::f32);
  eager::Ints others;
  for (int64_t d = 0; d < w.rank(); ++d)
    if (d != dim) others.push_back(d);
  const Tensor most = others.empty() ? eager::abs(w) : eager::amax(eager::abs(w), others, true);
  // a slice of zeros may have any scale
  const Tensor scale = eager::where(most > 0.0, most / largest, eager::ones_like(most));
  const Tensor elements = (w / scale).to(DType::f8_e4m3fn);
  return {ir::payload_of(elements), ir::payload_of(scale),
          (elements.to(DType::f32) * scale).to_vector<float>()};
}

void read_float8(ir::Graph& graph, ir::Constant& constant, const Float8Weight& weight) {
  ir::Value* old = constant.value.get();
  const std::string path = constant.path;
  ir::Node* first = nullptr;  // the reader that comes first
  for (ir::Node& node : graph.nodes())
    if (first == nullptr && std::ranges::find(old->users, &node) != old->users.end()) first = &node;
  const auto insert = [&](const Operator& op, std::vector<ir::Argument> arguments) {
    return ir::insert_before(graph, first, op, std::move(arguments), first->location, first->module)
        ->result();
  };
  ir::Value* wide = insert(ops::_to_copy, {graph.add_constant(path, weight.elements), DType::f32});
  ir::Value* scales = graph.add_constant(path + ".scales", weight.scales);
  graph.replace_uses(old, insert(ops::mul_Tensor, {wide, scales}));
}

}  // namespace taper::quantize
