#include "taper/exporter/importers/pt2/weights.h"

#include <algorithm>
#include <vector>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/runtime/program/format.h"

namespace taper::pt2 {
namespace {

using eager::Tensor;
using io::StoredTensor;

bool same_view(const StoredTensor& a, const StoredTensor& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides &&
         a.offset == b.offset && a.storage.data() == b.storage.data();
}

bool has_strange_bools(DType dtype, std::span<const std::byte> bytes) {
  return dtype == DType::boolean &&
         std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; });
}

class Maker {
 public:
  Maker(std::span<const std::byte> file, const std::shared_ptr<const void>& owner)
      : file_(file), owner_(owner) {}

  /// `count` elements of a storage from `offset` on, in row-major order.
  Tensor dense(const StoredTensor& s, int64_t offset, const std::vector<int64_t>& sizes) const {
    const auto item = static_cast<size_t>(size_bytes(s.dtype));
    const size_t bytes = static_cast<size_t>(io::checked_numel(sizes, 1)) * item;
    if (bytes == 0) return Tensor::empty(sizes, s.dtype);
    const std::span<const std::byte> elements =
        s.storage.subspan(static_cast<size_t>(offset) * item, bytes);
    if (may_stay(elements, item) && !has_strange_bools(s.dtype, elements))
      return Tensor::borrow(const_cast<std::byte*>(elements.data()), s.dtype, sizes, owner_);
    return copied({s.dtype, sizes, dense_strides(sizes), offset, s.storage});
  }

  Tensor copied(const StoredTensor& s) const {
    const io::Array array = s.to_array();
    return Tensor::from_bytes(array.raw().data(), array.size_bytes(), array.dtype, array.sizes);
  }

 private:
  static std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
    return strides;
  }
  /// Whether the elements may be used where they are: they lie in the file, and kernels need them
  /// aligned, and read up to 64 bytes behind the last one.
  bool may_stay(std::span<const std::byte> bytes, size_t item) const {
    const auto at = [](const std::byte* p) { return reinterpret_cast<uintptr_t>(p); };
    const uintptr_t begin = at(bytes.data()), end = begin + bytes.size(),
                    file_begin = at(file_.data()), file_end = file_begin + file_.size();
    return begin % item == 0 && begin >= file_begin && end <= file_end &&
           file_end - end >= slack_bytes;
  }

  std::span<const std::byte> file_;
  const std::shared_ptr<const void>& owner_;
};

std::vector<int64_t> flat_sizes(const StoredTensor& s) {
  return {static_cast<int64_t>(s.storage.size()) / size_bytes(s.dtype)};
}

bool is_whole(const StoredTensor& s) {
  return s.is_dense() && s.offset == 0 && io::checked_numel(s.sizes, 1) == flat_sizes(s)[0];
}

/// Whether a copy is at most as large as the storage. It is larger if a stride of 0 repeats
/// elements.
bool is_compact(const StoredTensor& s) {
  return io::checked_numel(s.sizes, 1) <=
         static_cast<int64_t>(s.storage.size()) / size_bytes(s.dtype);
}

}  // namespace

std::map<std::string, Tensor> make_tensors(const std::map<std::string, StoredTensor>& stored,
                                           std::span<const std::byte> file,
                                           const std::shared_ptr<const void>& owner) {
  const Maker maker(file, owner);
  using Entry = std::map<std::string, StoredTensor>::const_iterator;
  std::map<std::pair<const std::byte*, DType>, std::vector<Entry>> groups;
  std::map<std::string, Tensor> tensors;
  for (auto at = stored.begin(); at != stored.end(); ++at) {
    if (at->second.sizes.size() > static_cast<size_t>(max_rank))
      throw ExportError(at->first + " has " + std::to_string(at->second.sizes.size()) +
                        " dimensions, and at most " + std::to_string(max_rank) +
                        " are possible; store it with fewer, and reshape it where it is used");
    if (at->second.storage.empty())
      tensors[at->first] = Tensor::empty(at->second.sizes, at->second.dtype);
    else
      groups[{at->second.storage.data(), at->second.dtype}].push_back(at);
  }
  for (const auto& [key, entries] : groups) {
    const StoredTensor& first = entries[0]->second;
    const bool one =
        std::ranges::all_of(entries, [&](const Entry& e) { return same_view(e->second, first); });
    if (one && (first.is_dense() || is_compact(first))) {
      const Tensor tensor =
          first.is_dense() ? maker.dense(first, first.offset, first.sizes) : maker.copied(first);
      for (const Entry& e : entries) tensors[e->first] = tensor;
      continue;
    }
    // the base is the tensor that is the whole storage, if there is one; the others become views of
    // it
    const auto found =
        std::ranges::find_if(entries, [](const Entry& e) { return is_whole(e->second); });
    const bool whole = found != entries.end();
    const Tensor base = maker.dense(first, 0, whole ? (*found)->second.sizes : flat_sizes(first));
    base.set_name(whole ? (*found)->first : entries[0]->first + ".storage");
    for (const Entry& e : entries) {
      const StoredTensor& s = e->second;
      tensors[e->first] =
          whole && same_view(s, (*found)->second)
              ? base
              : eager::as_strided(base, eager::Dims(s.sizes.begin(), s.sizes.end()),
                                  eager::Dims(s.strides.begin(), s.strides.end()), s.offset);
    }
  }
  for (auto& [path, tensor] : tensors)
    if (tensor.name().empty()) tensor.set_name(path);
  return tensors;
}

}  // namespace taper::pt2
