// Cuts tensors into pieces, which are views.
#include <optional>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager::decompositions {
namespace {

int64_t dim_to_cut(const Tensor& self, int64_t dim, std::string_view op) {
  if (self.rank() == 0)
    throw EagerError(std::string(op) + ": a tensor without dimensions cannot be split");
  return checked_dim(dim, self.rank(), op, self);
}

Results split_to(const Tensor& self, const Dims& sizes, int64_t dim, std::string_view op) {
  dim = dim_to_cut(self, dim, op);
  Dim total = 0;
  for (const Dim& s : sizes) {
    if (proves_less(s, Dim(0)))
      throw EagerError(std::string(op) + ": size " + s.to_string() + " is negative");
    total = total + s;
  }
  const Dim extent = self.size(dim);
  const std::string message = std::string(op) + ": the sizes add up to " + total.to_string() +
                              ", dim " + std::to_string(dim) + " of " + to_string(self.sizes()) +
                              " has " + extent.to_string();
  if (proves_different(total, extent)) throw EagerError(message);
  // for sizes that are known only at run time, the program checks this
  if (Recorder* r = recorder(); r != nullptr && !proves_equal(total, extent))
    r->assume({Comparison::equal, total, extent, message});
  Results parts;
  Dim from = 0;
  for (const Dim& s : sizes) {
    parts.push_back(slice(self, dim, from, from + s));
    from = from + s;
  }
  return parts;
}
/// Pieces of one size; the last may be smaller.
Results split_evenly(const Tensor& self, Dim size, int64_t dim, std::string_view op) {
  dim = dim_to_cut(self, dim, op);
  const int64_t extent = self.size(dim).value(), step = size.value();
  if (step < 0 || (step == 0 && extent != 0))
    throw EagerError(std::string(op) + ": pieces of size " + std::to_string(step) +
                     " do not make up a size of " + std::to_string(extent));
  Dims sizes;
  for (int64_t at = 0; at < extent; at += step) sizes.push_back(std::min(step, extent - at));
  if (sizes.empty()) sizes.push_back(0);
  return split_to(self, sizes, dim, op);
}

/// `sections` pieces that differ by at most one element: the larger ones come first.
Results split_nearly_evenly(const Tensor& self, Dim sections, int64_t dim) {
  dim = dim_to_cut(self, dim, "tensor_split");
  if (!sections.is_constant())
    throw EagerError("tensor_split: how many pieces there are depends on " + sections.to_string() +
                     "; sections must be a number");
  const int64_t count = sections.value();
  if (count < 1)
    throw EagerError("tensor_split: sections must be 1 or more, got " + std::to_string(count));
  const Dim extent = self.size(dim);
  Results parts;
  Dim from = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Dim to = from + (extent + (count - 1 - i)) / count;
    parts.push_back(slice(self, dim, from, to));
    from = to;
  }
  return parts;
}
/// Pieces that end before each index, and the rest. Indices are those of a slice: negative ones
/// count from the end. A piece whose end lies before its start is empty.
Results split_before(const Tensor& self, const Dims& indices, int64_t dim) {
  dim = dim_to_cut(self, dim, "tensor_split");
  Results parts;
  std::optional<Dim> from;
  for (const Dim& index : indices) {
    parts.push_back(slice(self, dim, from, index));
    from = index;
  }
  parts.push_back(slice(self, dim, from));
  return parts;
}

}  // namespace

TAPER_DECOMPOSITION(split_with_sizes) {
  return split_to(a.tensor<"self">(), a.dims<"split_sizes">(), a.integer<"dim">(), "split");
}
TAPER_DECOMPOSITION(split_sizes) {
  return split_to(a.tensor<"self">(), a.dims<"split_size">(), a.integer<"dim">(), "split");
}
TAPER_DECOMPOSITION(split_Tensor) {
  return split_evenly(a.tensor<"self">(), a.dim<"split_size">(), a.integer<"dim">(), "split");
}
TAPER_DECOMPOSITION(chunk) {
  const Tensor self = a.tensor<"self">();
  const int64_t chunks = a.integer<"chunks">();
  if (chunks < 1)
    throw EagerError("chunk: chunks must be 1 or more, got " + std::to_string(chunks));
  if (self.rank() == 0) throw EagerError("chunk: a tensor without dimensions cannot be split");
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "chunk", self);
  const Dim extent = self.size(dim);
  if (same(extent % chunks, Dim(0)))
    return split_to(self, Dims(static_cast<size_t>(chunks), extent / chunks), dim, "chunk");
  if (!extent.is_constant())
    throw EagerError("chunk: how many pieces there are depends on the size " + extent.to_string() +
                     ", which may be no multiple of chunks " + std::to_string(chunks) +
                     "; make it " + std::to_string(chunks) + " times a symbol, or call split");
  return split_evenly(self, (extent - 1) / chunks + 1, dim, "chunk");
}
TAPER_DECOMPOSITION(unbind_int) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() == 0) throw EagerError("unbind: a tensor without dimensions has no rows");
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "unbind", self);
  Results rows;
  for (int64_t i = 0; i < self.size(dim).value(); ++i) rows.push_back(select(self, dim, i));
  return rows;
}
// The pieces are views. PyTorch calls this unsafe because its autograd does not follow writes to
// them.
TAPER_DECOMPOSITION(unsafe_split_Tensor) {
  return split_evenly(a.tensor<"self">(), a.dim<"split_size">(), a.integer<"dim">(),
                      "unsafe_split");
}

TAPER_DECOMPOSITION(tensor_split_sections) {
  return split_nearly_evenly(a.tensor<"self">(), a.dim<"sections">(), a.integer<"dim">());
}
TAPER_DECOMPOSITION(tensor_split_indices) {
  return split_before(a.tensor<"self">(), a.dims<"indices">(), a.integer<"dim">());
}
// In a trace, indices become symbols that the program reads. There, they must not be negative.
TAPER_DECOMPOSITION(tensor_split_tensor_indices_or_sections) {
  const Tensor self = a.tensor<"self">(), given = a.tensor<"tensor_indices_or_sections">();
  const int64_t dim = dim_to_cut(self, a.integer<"dim">(), "tensor_split");
  if (given.dtype() != DType::i64 || given.rank() > 1)
    throw EagerError(
        "tensor_split: tensor_indices_or_sections must be one i64 or a vector of "
        "them, got " +
        to_string(given.sizes()) + " " + taper::name_of(given.dtype()));
  if (given.rank() == 0) {
    need_elements(given, "tensor_split");
    return split_nearly_evenly(self, given.item<int64_t>(), dim);
  }
  Dims indices;
  if (given.is_traced())
    for (int64_t i = 0; i < given.size(0).value(); ++i)
      indices.push_back(element_as_dim(select(given, 0, i), 0, self.size(dim).upper()));
  else
    for (const int64_t index : given.to_vector<int64_t>()) indices.push_back(index);
  return split_before(self, indices, dim);
}

namespace {

/// Cuts along `dim`, or along dim 0 if self is a vector (hsplit).
template <const Operator& op>
Results cut(const Arguments<op>& a, int needed, int64_t dim, const char* name) {
  const Tensor self = a.template tensor<"self">();
  if (self.rank() < needed)
    throw EagerError(std::string(name) + ": needs at least " + std::to_string(needed) +
                     " dimensions, not " + to_string(self.sizes()));
  dim = std::min<int64_t>(dim, self.rank() - 1);
  if constexpr (schema<op>.find("indices") >= 0) {
    const Ints indices = a.template integers<"indices">();
    return split_before(self, Dims(indices.begin(), indices.end()), dim);
  } else {
    const int64_t sections = a.template integer<"sections">();
    if (sections < 1 || proves_different(self.size(dim) % sections, Dim(0)))
      throw EagerError(std::string(name) + ": dim " + std::to_string(dim) + " of " +
                       to_string(self.sizes()) + " cannot be cut into " + std::to_string(sections) +
                       " equal parts");
    return split_nearly_evenly(self, sections, dim);
  }
}

}  // namespace

TAPER_DECOMPOSITION(hsplit_int) { return cut(a, 1, 1, "hsplit"); }
TAPER_DECOMPOSITION(hsplit_array) { return cut(a, 1, 1, "hsplit"); }
TAPER_DECOMPOSITION(vsplit_int) { return cut(a, 2, 0, "vsplit"); }
TAPER_DECOMPOSITION(vsplit_array) { return cut(a, 2, 0, "vsplit"); }
TAPER_DECOMPOSITION(dsplit_int) { return cut(a, 3, 2, "dsplit"); }
TAPER_DECOMPOSITION(dsplit_array) { return cut(a, 3, 2, "dsplit"); }

}  // namespace taper::eager::decompositions
