// What both forms of PyTorch checkpoints share: a pickle whose persistent ids are storages, and
// tensors as calls that rebuild them.
#pragma once
#include <map>
#include <string>

#include "taper/exporter/io/internal/pickle.h"
#include "taper/exporter/io/stored_tensor.h"

namespace taper::io::internal {

class TorchPickle {
 public:
  struct Storage {
    DType dtype;
    std::span<const std::byte> bytes;
  };

  TorchPickle(std::span<const std::byte> file, const std::string& name,
              PickleReader::Objects objects = PickleReader::Objects::tensors)
      : name_(name), reader_(file, name, objects) {}

  PickleReader& reader() { return reader_; }

  /// The storages that the pickles read so far name, by key; their bytes are the caller's to fill
  /// in. Those of dtypes that Taper does not have are left out.
  std::map<std::string, Storage>& collect_storages();

  /// The dict of tensors that `object` is, or has under one of the usual keys.
  std::map<std::string, StoredTensor> tensors_of(const PickleValue* object) const;

  /// The plain tensors inside of a tensor subclass, by attribute; those of a subclass inside of it
  /// are called "outer.inner". Fails for what is no such object.
  std::map<std::string, StoredTensor> parts_of_subclass(const PickleValue* object) const;

  /// The call that rebuilds a tensor, or nullptr if the value is something else.
  const PickleValue* as_tensor(const PickleValue* v) const;
  /// What such a call rebuilds; `tensor` is its name in messages.
  StoredTensor tensor_of(const PickleValue& call, const std::string& tensor) const;

  [[noreturn]] void fail(const std::string& what) const;
  static bool is_text(const PickleValue& v) {
    return v.is(PickleValue::Kind::text) || v.is(PickleValue::Kind::bytes);
  }

 private:
  static const PickleValue* without_parameter(const PickleValue* v);
  void add_parts(const PickleValue* object, const std::string& prefix, int depth,
                 std::map<std::string, StoredTensor>& parts) const;
  const PickleValue* find_state(const PickleValue* v) const;
  std::vector<int64_t> integers(const PickleValue& v, const std::string& tensor) const;

  std::string name_;
  PickleReader reader_;
  std::map<std::string, Storage> storages_;
};

}  // namespace taper::io::internal
