#include "taper/exporter/importers/pt2/aliases.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace taper::pt2 {
namespace {

struct Alias {
  std::string_view alias, name;  ///< name of all overloads or, with a '.', of one
  /// an argument that has another name there; empty: none
  std::string_view argument, argument_name;
};

// Names from the documentation of torch ("Alias for …"). Where PyTorch may return a view or a copy,
// the file shows that a view was possible there. Here tensors may lie differently in memory, and
// then the result is a copy. The list is sorted.
constexpr Alias aliases[] = {
    {"__iand__", "bitwise_and_", "", ""},
    {"__ior__", "bitwise_or_", "", ""},
    {"__ixor__", "bitwise_xor_", "", ""},
    {"arccos", "acos", "", ""},
    {"arccosh", "acosh", "", ""},
    {"arcsin", "asin", "", ""},
    {"arcsinh", "asinh", "", ""},
    {"arctan", "atan", "", ""},
    {"arctan2", "atan2", "", ""},
    {"arctanh", "atanh", "", ""},
    {"bernoulli_.float", "bernoulli_.p", "", ""},
    {"concat", "cat", "", ""},
    {"concatenate", "cat", "", ""},
    {"det", "linalg_det", "self", "A"},
    {"divide.Scalar", "div.Scalar", "", ""},
    {"divide.Scalar_mode", "div.Scalar_mode", "", ""},
    {"divide.Tensor_mode", "div.Tensor_mode", "", ""},
    {"fix", "trunc", "", ""},
    {"ger", "outer", "", ""},
    {"greater", "gt", "", ""},
    {"greater_equal", "ge", "", ""},
    {"inverse", "linalg_inv", "self", "A"},
    {"less", "lt", "", ""},
    {"less_equal", "le", "", ""},
    {"linalg_matmul", "matmul", "", ""},
    {"matrix_exp", "linalg_matrix_exp", "", ""},
    {"matrix_power", "linalg_matrix_power", "", ""},
    {"moveaxis", "movedim", "", ""},
    {"multiply.Scalar", "mul.Scalar", "", ""},
    {"negative", "neg", "", ""},
    {"normal_", "normal_functional_", "", ""},
    {"not_equal", "ne", "", ""},
    {"pdist", "_pdist_forward", "", ""},
    {"row_stack", "vstack", "", ""},
    {"slogdet", "linalg_slogdet", "self", "A"},
    {"special_digamma", "digamma", "", ""},
    {"special_erf", "erf", "", ""},
    {"special_erfc", "erfc", "", ""},
    {"special_erfinv", "erfinv", "", ""},
    {"special_exp2", "exp2", "", ""},
    {"special_expit", "sigmoid", "", ""},
    {"special_expm1", "expm1", "", ""},
    {"special_gammaln", "lgamma", "", ""},
    {"special_log1p", "log1p", "", ""},
    {"special_log_softmax", "log_softmax.int", "", ""},
    {"special_logit", "logit", "", ""},
    {"special_logsumexp", "logsumexp", "", ""},
    {"special_modified_bessel_i0", "i0", "", ""},
    {"special_modified_bessel_i1", "special_i1", "", ""},
    {"special_multigammaln", "mvlgamma", "", ""},
    {"special_psi", "digamma", "", ""},
    {"special_sinc", "sinc", "", ""},
    {"special_softmax", "softmax.int", "", ""},
    {"subtract.Scalar", "sub.Scalar", "", ""},
    {"swapdims", "transpose.int", "", ""},
    {"trapz", "trapezoid", "", ""},
    {"true_divide.Scalar", "div.Scalar", "", ""},
    {"unsafe_chunk", "chunk", "", ""},
    {"view.default", "reshape", "size", "shape"},
};
static_assert(std::ranges::is_sorted(aliases, {}, &Alias::alias));

const Alias* find_alias(std::string_view name) {
  const auto* at = std::ranges::lower_bound(aliases, name, {}, &Alias::alias);
  return at != std::end(aliases) && at->alias == name ? at : nullptr;
}

/// "greater_.Tensor" in its two parts.
struct OperatorName {
  std::string base, overload;
  explicit OperatorName(std::string_view text)
      : base(text.substr(0, text.find('.'))),
        overload(text.substr(std::min(base.size() + 1, text.size()))) {}
  bool is_in_place() const { return base.size() > 1 && base.ends_with('_'); }
};

constexpr std::string_view aten = "torch.ops.aten.";

/// Assertions that take and give a token, which only puts calls in order. The nodes have that order
/// already, so the plain assertion takes their place, and a number the place of the first token.
void drop_token(Node& node, std::string_view name) {
  if (name == "_functional_assert_async.msg") {
    node.target = std::string(aten) + "_assert_async.msg";
    std::erase_if(node.inputs, [](const NamedArgument& a) { return a.name == "dep_token"; });
    node.outputs = {};
  } else if (name == "_make_dep_token.default") {
    node.target = std::string(aten) + "scalar_tensor.default";
    node.inputs = {{"s", 0.0}};
  }
}

}  // namespace

void resolve_alias(Node& node) {
  if (!node.target.starts_with(aten)) return;
  const std::string text = node.target.substr(aten.size());
  drop_token(node, text);
  const OperatorName name(text);
  const Alias* const by_overload = find_alias(text);
  const Alias* const by_name = by_overload != nullptr ? by_overload : find_alias(name.base);
  const Alias* const found = by_name != nullptr || !name.is_in_place()
                                 ? by_name
                                 : find_alias(name.base.substr(0, name.base.size() - 1));
  if (found == nullptr) return;
  node.gives_view = name.base == "view";

  OperatorName real(found->name);
  if (by_name == nullptr) real.base += '_';
  if (real.overload.empty()) real.overload = by_overload != nullptr ? "default" : name.overload;
  node.target = std::string(aten) + real.base + '.' + real.overload;
  for (NamedArgument& input : node.inputs)
    if (!found->argument.empty() && input.name == found->argument)
      input.name = found->argument_name;
}

}  // namespace taper::pt2
