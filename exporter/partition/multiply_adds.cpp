#include "taper/exporter/partition/multiply_adds.h"

#include "taper/exporter/ir/call.h"

namespace taper::partition {
namespace {

using ir::Value;

double size(const Value& v, int dim) {
  return static_cast<double>(v.type.sizes[dim < 0 ? dim + v.type.rank : dim].lower());
}
double elements(const Value& v) {
  double product = 1;
  for (int d = 0; d < v.type.rank; ++d) product *= size(v, d);
  return product;
}

/// Of a product whose result is summed over `depth` elements.
double of_product(const ir::Node& node, double depth) { return elements(*node.result()) * depth; }

double of_convolution(const ir::Node& node) {
  const ir::Call<ops::convolution> c(node);
  const Value &x = *c.get<"input">(), &weight = *c.get<"weight">();
  const double filter = elements(weight) / size(weight, 0);
  return (c.get<"transposed">() ? elements(x) : elements(*node.result())) * filter;
}

/// Queries times keys, and weights times values. Hidden keys count, too.
template <const Operator& op>
double of_attention(const ir::Node& node) {
  const ir::Call<op> c(node);
  const Value &query = *c.template get<"query">(), &key = *c.template get<"key">();
  const Value& value = *c.template get<"value">();
  return elements(query) * size(key, -2) * (1 + size(value, -1) / size(query, -1));
}

}  // namespace

double multiply_adds(const ir::Node& node) {
  if (node.op == &ops::convolution) return of_convolution(node);
  if (node.op == &ops::linear)
    return of_product(node, size(*ir::Call<ops::linear>(node).get<"weight">(), -1));
  if (node.op == &ops::addmm)
    return of_product(node, size(*ir::Call<ops::addmm>(node).get<"mat1">(), -1));
  if (node.op == &ops::mm)
    return of_product(node, size(*ir::Call<ops::mm>(node).get<"self">(), -1));
  if (node.op == &ops::bmm)
    return of_product(node, size(*ir::Call<ops::bmm>(node).get<"self">(), -1));
  if (node.op == &ops::scaled_dot_product_attention)
    return of_attention<ops::scaled_dot_product_attention>(node);
  if (node.op == &ops::taper_attention) return of_attention<ops::taper_attention>(node);
  return 0;
}

}  // namespace taper::partition
