// Tensors in and out of files. Link taper::exporter_io.
#pragma once
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "taper/exporter/eager/named_tensors.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/safetensors.h"

namespace taper::eager {

/// The array as a tensor. Both share the memory: nothing is copied.
inline Tensor tensor_of(const io::Array& array) {
  return Tensor::borrow(array.bytes.get(), array.dtype, array.sizes, array.bytes);
}

/// The elements in row-major order, copied. Throws EagerError for a traced tensor, which has none.
inline io::Array array_of(const Tensor& tensor, Location here = Location::current()) {
  const Tensor dense = tensor.detach().contiguous(here);  // unpacked, too
  const TensorRef& ref = dense.ref(here);
  io::Array array =
      io::Array::zeros(ref.dtype, {ref.shape->sizes, ref.shape->sizes + ref.shape->rank});
  array.assign({static_cast<const std::byte*>(ref.data), static_cast<size_t>(ref.size_bytes())});
  return array;
}

inline Tensor load_npy(const std::filesystem::path& path) { return tensor_of(io::read_npy(path)); }
inline void save_npy(const std::filesystem::path& path, const Tensor& tensor) {
  io::write_npy(path, array_of(tensor));
}

/// Throws io::FileError; see io/safetensors.h for what is checked.
inline NamedTensors load_safetensors(const std::filesystem::path& path) {
  NamedTensors tensors;
  for (const auto& [name, array] : io::read_safetensors(path).tensors)
    tensors[name] = tensor_of(array);
  return tensors;
}
inline void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                             std::map<std::string, std::string> metadata = {}) {
  io::SafeTensors content;
  for (const auto& [name, tensor] : tensors) content.tensors[name] = array_of(tensor);
  content.metadata = std::move(metadata);
  io::write_safetensors(path, content);
}

}  // namespace taper::eager
