#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/passes/match.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;

/// x / sqrt(mean(x²) + eps) over the last dimension.
struct RmsNormPattern {
  match::Variable x, square, mean, sum, root;
  match::Pattern norm;

  RmsNormPattern() {
    const match::Pattern squares = either(
        match::call<ops::pow_Tensor_Scalar>(match::arg<"self">(any(x)),
                                            match::arg<"exponent">(match::number(2))),
        match::call<ops::mul_Tensor>(match::arg<"self">(any(x)), match::arg<"other">(any(x))));
    const match::Pattern means =
        as(mean, match::call<ops::mean_dim>(match::arg<"self">(as(square, squares)),
                                            match::arg<"keepdim">(match::number(1))));
    const match::Pattern sums =
        as(sum, match::call<ops::add_Scalar>(match::arg<"self">(means),
                                             match::arg<"alpha">(match::number(1))));
    const match::Pattern roots =
        either(match::call<ops::rsqrt>(match::arg<"self">(sums)),
               match::call<ops::pow_Tensor_Scalar>(match::arg<"self">(sums),
                                                   match::arg<"exponent">(match::number(-0.5))));
    norm = match::commutative<ops::mul_Tensor, "self", "other">(any(x), as(root, roots));
  }
};

/// Whether a mean is taken over the last dimension alone, in its argument's dtype.
bool is_over_rows(const Value* mean) {
  const ir::Call<ops::mean_dim> call(*mean->node);
  const std::vector<Dim>* dims = call.get<"dim">();
  const int last = mean->type.rank - 1;
  return last >= 0 && dims != nullptr && dims->size() == 1 &&
         (same((*dims)[0], -1) || same((*dims)[0], last)) && call.get<"dtype">() == nullptr;
}

/// The view of a dense tensor that exchanges dimensions other than the last; nullptr: `x` is
/// something else. It is normalised before the exchange, where its rows are dense.
Node* exchange_of(const Value* x) {
  Node* node = x->node;
  if (node == nullptr || node->op != &ops::transpose_int || ir::is_dense(x->type)) return nullptr;
  const ir::Call<ops::transpose_int> call(*node);
  for (const Dim& d : {call.get<"dim0">(), call.get<"dim1">()})
    if (same(d, -1) || same(d, x->type.rank - 1)) return nullptr;
  return ir::is_dense(call.get<"self">()->type) ? node : nullptr;
}

class RmsNormFuser {
 public:
  RmsNormFuser(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  int run() {
    int fused = 0;
    for (auto at = graph_.nodes().begin(); at != graph_.nodes().end();) fused += visit(*at++);
    if (fused > 0) remove_dead_code(graph_, context_);
    return fused;
  }

 private:
  bool visit(Node& node) {
    static const RmsNormPattern pattern;
    if (node.op != &ops::mul_Tensor) return false;
    const auto found = find(pattern.norm, node);
    if (!found || !is_over_rows((*found)[pattern.mean])) return false;
    Value *x = (*found)[pattern.x], *weight = nullptr;
    for (const match::Variable* part :
         {&pattern.square, &pattern.mean, &pattern.sum, &pattern.root})
      if (!has_one_reader(graph_, (*found)[*part])) {
        context_.declined(node, "its parts are used elsewhere, too");
        return false;
      }
    const Scalar* eps = ir::Call<ops::add_Scalar>(*(*found)[pattern.sum]->node).get<"other">();
    if (eps == nullptr || !ir::same_sizes(node.result()->type, x->type)) return false;
    Node* const scaled = product_with_weight(node, weight);
    Node* const last = scaled != nullptr ? scaled : &node;

    Node* const exchange = exchange_of(x);
    if (exchange != nullptr) x = ir::viewed(*exchange);
    const Dim width = x->type.sizes[x->type.rank - 1];
    const std::vector<Dim> shape = {width.is_constant() ? width : Dim(-1)};
    const ir::Argument weight_or_none = weight != nullptr ? ir::Argument(weight) : std::monostate();
    Node* norm = insert_if_it_runs(graph_, context_, *last, ops::_fused_rms_norm,
                                   {x, shape, weight_or_none, eps->to<double>()});
    if (norm == nullptr) return false;
    Value* result = norm->result();
    if (exchange != nullptr) {
      std::vector<ir::Argument> arguments = exchange->arguments;
      arguments[ir::Call<ops::transpose_int>::position<"self">] = result;
      result = ir::insert_before(graph_, last, *exchange->op, arguments, exchange->location,
                                 exchange->module)
                   ->result();
    }
    context_.did(*last, "is the end of an RMS norm");
    take_place_of(graph_, last->result(), result);
    return true;
  }

  /// The only reader of a norm, if it multiplies with a vector of the norm's width: `weight`.
  Node* product_with_weight(const Node& norm, Value*& weight) const {
    const Value* result = norm.result();
    if (!has_one_reader(graph_, result) || result->users[0]->op != &ops::mul_Tensor) return nullptr;
    Node* product = result->users[0];
    const ir::Call<ops::mul_Tensor> call(*product);
    weight = call.get<"self">() == result ? call.get<"other">() : call.get<"self">();
    const ir::Type &row = weight->type, &all = result->type;
    if (row.rank == 1 && row.dtype == all.dtype && same(row.sizes[0], all.sizes[all.rank - 1]))
      return product;
    weight = nullptr;
    return nullptr;
  }

  ir::Graph& graph_;
  PassContext& context_;
};

}  // namespace

int fuse_rms_norm(ir::Graph& graph, PassContext& context) {
  return RmsNormFuser(graph, context).run();
}

}  // namespace taper::passes
