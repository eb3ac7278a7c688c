#include "taper/exporter/llm/weights.h"

#include <algorithm>
#include <cstring>

#include "taper/exporter/base/error.h"
#include "taper/exporter/llm/names.h"
#include "taper/runtime/extension/module/mapped_file.h"

namespace taper::llm {
namespace {

/// As a type of ggml, which has one for every dtype that weights have.
uint32_t type_of(DType dtype, const std::string& name) {
  if (dtype == DType::f32) return gguf::f32_id;
  if (dtype == DType::f16) return gguf::f16_id;
  if (dtype == DType::bf16) return gguf::bf16_id;
  throw ExportError("weight " + name + " has the dtype " + name_of(dtype) +
                    "; f32, f16 and bf16 are supported");
}

Tensor repacked_tensor(const huggingface::Repacked& weight, const Ints& sizes) {
  if (weight.layout != Layout::dense)
    return Tensor::stored(weight.bytes.get(), weight.layout, sizes, weight.bytes);
  return Tensor::borrow(const_cast<std::byte*>(weight.bytes.get()), weight.dtype, sizes,
                        weight.bytes);
}

/// Blocks lie one behind the other, so those of matrices do.
Tensor stack_of_blocks(const std::vector<Tensor>& all, int64_t rows, int64_t columns) {
  const Layout layout = all[0].layout();
  const BlockSize block = block_of(layout);
  const auto of_one = static_cast<size_t>(rows * columns / block.elements) * block.bytes;
  const auto bytes =
      std::make_shared<std::vector<std::byte>>(all.size() * of_one + readable_behind);
  for (size_t i = 0; i < all.size(); ++i)
    std::memcpy(bytes->data() + i * of_one, all[i].ref().data, of_one);
  return Tensor::stored(bytes->data(), layout, {static_cast<int64_t>(all.size()), rows, columns},
                        bytes);
}

bool is_plain(uint32_t type) {
  return type == gguf::f32_id || type == gguf::f16_id || type == gguf::bf16_id;
}

std::string text(const std::vector<int64_t>& sizes) {
  std::string t = "(";
  for (size_t i = 0; i < sizes.size(); ++i) t += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return t + ")";
}

/// Buffers that older versions of models saved, and that follow from the configuration.
bool is_derived(const std::string& name) {
  for (const char* end : {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                          ".attention.bias", ".attention.masked_bias", "embeddings.position_ids"})
    if (name.ends_with(end)) return true;
  return false;
}

}  // namespace

Checkpoint::Checkpoint(const huggingface::Folder& folder, const std::string& adapter) {
  std::map<std::string, huggingface::Tensor> tensors = folder.tensors();
  for (auto& [name, w] : huggingface::take_quantized(folder.config(), tensors)) {
    if (tensors.contains(name))
      throw ExportError("weight " + name +
                        " is in the folder twice: quantized, and as it was before");
    tensors_[name] = {0, w.sizes, {}, nullptr, nullptr, std::move(w.read)};
  }
  for (const auto& [name, t] : tensors) {
    if (is_derived(name)) continue;
    tensors_[name] = {type_of(t.dtype, name), t.sizes, t.bytes, t.owner, t.readable_end, {}};
  }
  add_adapter(adapter);
}

Checkpoint::Checkpoint(const gguf::File& file, const std::string& adapter) : is_gguf_(true) {
  const std::byte* const readable_end = file.mapping()->readable().end();
  for (const auto& [name, t] : file.content().tensors)
    tensors_[name] = {t.type, t.sizes, t.bytes, file.mapping(), readable_end, {}};
  add_adapter(adapter);
}

std::string Checkpoint::find(const std::string& name) const {
  for (const std::string& spelling : spellings(name))
    if (tensors_.contains(spelling)) return spelling;
  return "";
}

Tensor Checkpoint::read(const std::string& name, const Ints& sizes) {
  const std::string found = find(name);
  if (found.empty())
    throw ExportError("the checkpoint has no weight " + spellings(name)[0] +
                      " (or another name of " + name + ")");
  const Stored& stored = tensors_.at(found);
  if (stored.sizes != sizes)
    throw ExportError("weight " + found + " has the sizes " + text(stored.sizes) +
                      ", the configuration asks for " + text(sizes));
  read_.insert(found);
  return tensor_of(found, stored);
}

bool Checkpoint::Stored::has_slack() const {
  return static_cast<size_t>(readable_end - (bytes.data() + bytes.size())) >= readable_behind;
}

Tensor Checkpoint::blocks_of(const std::string& name, const Stored& stored) const {
  const Layout layout = gguf::find_type(stored.ggml_type)->layout;
  if (layout == Layout::dense)
    throw ExportError("weight " + name + " has the type " + gguf::type_name(stored.ggml_type) +
                      ", which is none of weights; quantize the model to another type");
  if (stored.has_slack())
    return Tensor::stored(stored.bytes.data(), layout, stored.sizes, stored.owner);
  const auto copy = std::make_shared<std::vector<std::byte>>(stored.bytes.size() + readable_behind);
  std::memcpy(copy->data(), stored.bytes.data(), stored.bytes.size());
  return Tensor::stored(copy->data(), layout, stored.sizes, copy);
}

Tensor Checkpoint::tensor_of(const std::string& name, const Stored& stored) const {
  if (stored.repack) return repacked_tensor(stored.repack(), stored.sizes);
  if (!is_plain(stored.ggml_type)) return blocks_of(name, stored);
  const DType dtype = stored.ggml_type == gguf::f32_id   ? DType::f32
                      : stored.ggml_type == gguf::f16_id ? DType::f16
                                                         : DType::bf16;
  const auto address = reinterpret_cast<uintptr_t>(stored.bytes.data());
  if (address % static_cast<size_t>(size_bytes(dtype)) != 0 || !stored.has_slack())
    return Tensor::from_bytes(stored.bytes.data(), stored.bytes.size(), dtype, stored.sizes);
  return Tensor::borrow(const_cast<std::byte*>(stored.bytes.data()), dtype, stored.sizes,
                        stored.owner);
}

void Checkpoint::add_adapter(const std::string& path) {
  if (path.empty()) return;
  adapter_ = std::make_unique<Adapter>(path);
  adapter_->require_kind(is_gguf_);
}

std::shared_ptr<Tensor> Checkpoint::add_adapters(const std::vector<NamedAdapter>& files) {
  if (files.empty()) return nullptr;
  if (adapter_ != nullptr)
    throw ExportError("an adapter without a name cannot stand beside those with names");
  by_name_ = std::make_unique<AdapterSet>(files);
  by_name_->require_kind(is_gguf_);
  return by_name_->chosen();
}

void Checkpoint::add_new_adapter(std::shared_ptr<NewAdapter> adapter) {
  if (adapter != nullptr && (adapter_ != nullptr || by_name_ != nullptr))
    throw ExportError("a new adapter cannot be trained on top of another one");
  new_adapter_ = std::move(adapter);
}

LowRank Checkpoint::low_rank(const std::string& name, int64_t out, int64_t in) {
  if (new_adapter_ != nullptr) return new_adapter_->of(name, find(name), out, in);
  if (by_name_ != nullptr) return by_name_->of(find(name), out, in);
  return adapter_ == nullptr ? LowRank() : adapter_->of(find(name), out, in);
}

void Checkpoint::ignore(const std::string& prefix) {
  for (auto at = tensors_.lower_bound(prefix);
       at != tensors_.end() && at->first.starts_with(prefix); ++at)
    read_.insert(at->first);
}

void Checkpoint::require_all_read() const {
  std::string left;
  int count = 0;
  for (const auto& [name, stored] : tensors_)
    if (!read_.contains(name) && ++count <= 3) left += (left.empty() ? "" : ", ") + name;
  if (count == 0) {
    if (adapter_ != nullptr) adapter_->require_all_used();
    if (by_name_ != nullptr) by_name_->require_all_used();
    return;
  }
  throw ExportError("the checkpoint has weights that a model of this family does not use: " + left +
                    (count > 3 ? ", … (" + std::to_string(count) + ")" : ""));
}

Weight Weights::matrix(int64_t rows, int64_t columns, const std::string& suffix) const {
  return Weight(checkpoint_->matrix(name_of(suffix), {rows, columns}));
}

Tensor Weights::vector(const Ints& sizes, const std::string& suffix) const {
  const Tensor stored = checkpoint_->read(name_of(suffix), sizes).unpacked();
  return stored.dtype() == DType::f32 ? stored : stored.to(DType::f32);
}

Tensor Weights::vector_if(const Ints& sizes, const std::string& suffix) const {
  return has(suffix) ? vector(sizes, suffix) : Tensor();
}

Weight Weights::stack(int64_t count, int64_t rows, int64_t columns) const {
  std::vector<Tensor> all;
  for (int64_t i = 0; i < count; ++i) all.push_back((*this)[i].matrix(rows, columns));
  const Layout layout = all.at(0).layout();
  const bool in_blocks = is_in_blocks(layout) && std::ranges::all_of(all, [&](const Tensor& t) {
                           return t.layout() == layout;
                         });
  return Weight(in_blocks ? stack_of_blocks(all, rows, columns) : eager::stack(all));
}

}  // namespace taper::llm
