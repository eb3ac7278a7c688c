// The weights of a checkpoint, by the names that modules use (names.h). A weight keeps the form in
// which the file holds it: f32, f16, bf16 and blocks lie in the mapped file and are not copied.
// Weights that other tools have quantized are packed anew (importers/huggingface/quantized.h).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/importers/gguf/gguf.h"
#include "taper/exporter/importers/huggingface/quantized.h"
#include "taper/exporter/llm/adapter_set.h"
#include "taper/exporter/llm/new_adapter.h"

namespace taper::llm {

using eager::Dims;
using eager::Ints;
using eager::Tensor;

/// The bytes that kernels may read behind a tensor.
inline constexpr size_t readable_behind = 64;

/// A matrix in its stored form. An export recognises `widened()` of a constant, and stores the
/// constant as it is.
struct Weight : Tensor {
  Weight() = default;
  explicit Weight(const Tensor& stored) : Tensor(stored) {}
  /// In f32, in which models compute.
  Tensor widened() const { return dtype() == DType::f32 ? Tensor(*this) : to(DType::f32); }
};

/// All tensors of a model's files.
class Checkpoint {
 public:
  /// Products add what the adapter of this path says; "": there is none. Throws ExportError if it
  /// is of the other kind of files.
  explicit Checkpoint(const huggingface::Folder& folder, const std::string& adapter = "");
  explicit Checkpoint(const gguf::File& file, const std::string& adapter = "");

  /// The file's name of a weight, or "" if there is none.
  std::string find(const std::string& name) const;
  /// The weight as it is stored; of the sizes given. Throws ExportError if it is missing, or has
  /// other sizes.
  Tensor read(const std::string& name, const Ints& sizes);
  bool is_gguf() const { return is_gguf_; }
  /// Texts choose one of these adapters. Returns where a call says which; nullptr: there are none.
  std::shared_ptr<Tensor> add_adapters(const std::vector<NamedAdapter>& files);
  /// Products with these parts of layers add what this adapter says, which is trained.
  void add_new_adapter(std::shared_ptr<NewAdapter> adapter);
  /// Changes how matrices are stored, as they are read.
  void store_matrices(std::function<Tensor(const Tensor&)> stored) { stored_ = std::move(stored); }
  /// `read`, and `store_matrices`.
  Tensor matrix(const std::string& name, const Ints& sizes) {
    const Tensor file = read(name, sizes);
    return stored_ ? stored_(file) : file;
  }
  /// What an adapter adds to the product with a matrix (out, in).
  LowRank low_rank(const std::string& name, int64_t out, int64_t in);
  /// Tensors whose names begin so may stay unread.
  void ignore(const std::string& prefix);
  /// Throws ExportError if a tensor was never read: the model is another one than this reader
  /// takes it for. The same if a part of the adapter was not.
  void require_all_read() const;

 private:
  struct Stored {
    uint32_t ggml_type;
    std::vector<int64_t> sizes;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
    const std::byte* readable_end;
    std::function<huggingface::Repacked()> repack;  ///< in place of `bytes`

    bool has_slack() const;
  };
  void add_adapter(const std::string& path);
  Tensor blocks_of(const std::string& name, const Stored& stored) const;
  Tensor tensor_of(const std::string& name, const Stored& stored) const;

  std::map<std::string, Stored> tensors_;
  std::set<std::string> read_;
  std::unique_ptr<Adapter> adapter_;
  std::unique_ptr<AdapterSet> by_name_;
  std::shared_ptr<NewAdapter> new_adapter_;
  std::function<Tensor(const Tensor&)> stored_;
  bool is_gguf_ = false;
};

/// A part of a checkpoint: `weights["layers.0"]["attention.q"].matrix(64, 32)`.
class Weights {
 public:
  explicit Weights(Checkpoint& checkpoint, std::string path = "")
      : checkpoint_(&checkpoint), path_(std::move(path)) {}

  Weights operator[](const std::string& part) const { return Weights(*checkpoint_, name_of(part)); }
  Weights operator[](int64_t index) const { return (*this)[std::to_string(index)]; }

  /// Whether the file has this weight: `has("bias")`.
  bool has(const std::string& suffix = "weight") const {
    return !checkpoint_->find(name_of(suffix)).empty();
  }
  /// The weight of a product or a look-up, in its stored form.
  Weight matrix(int64_t rows, int64_t columns, const std::string& suffix = "weight") const;
  /// What an adapter adds to the product with the matrix (rows, columns).
  LowRank low_rank(int64_t rows, int64_t columns) const {
    return checkpoint_->low_rank(name_of("weight"), rows, columns);
  }
  /// A weight of few numbers, in f32. `suffix`: "bias".
  Tensor vector(const Ints& sizes, const std::string& suffix = "weight") const;
  /// A weight of any number of dimensions, in its stored form.
  Tensor tensor(const Ints& sizes, const std::string& suffix) const {
    return checkpoint_->read(name_of(suffix), sizes);
  }
  /// Undefined if the file has none.
  Tensor vector_if(const Ints& sizes, const std::string& suffix) const;
  /// One matrix for each of `count` experts: (count, rows, columns).
  Weight stack(int64_t count, int64_t rows, int64_t columns) const;
  bool is_gguf() const { return checkpoint_->is_gguf(); }

 private:
  std::string name_of(const std::string& part) const {
    return path_.empty() ? part : path_ + "." + part;
  }
  Checkpoint* checkpoint_;
  std::string path_;
};

}  // namespace taper::llm
