#include "taper/exporter/io/internal/torch_pickle.h"

#include <string_view>

namespace taper::io::internal {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t max_rank_read = 64;

/// A plain tensor to which somebody gave attributes: _rebuild_from_type_v2(function, class,
/// arguments, attributes).
bool has_attributes(const PickleValue& v) {
  return v.is_call_of("torch._tensor _rebuild_from_type_v2") && v.arguments().size() >= 4 &&
         v.arguments()[0]->is_global("torch._utils _rebuild_tensor_v2") &&
         v.arguments()[1]->is_global("torch Tensor") && v.arguments()[2]->is(Kind::tuple);
}

/// Whether a tensor is a lazy conjugate or negative of what its storage holds. That stands in a
/// dict behind the arguments of _rebuild_tensor_v2.
bool is_lazy(const std::vector<PickleValue*>& arguments) {
  if (arguments.size() < 7 || !arguments[6]->is(Kind::dict)) return false;
  const std::vector<PickleValue*>& notes = arguments[6]->items;
  for (size_t i = 0; i + 1 < notes.size(); i += 2)
    if ((notes[i]->text == "conj" || notes[i]->text == "neg") && notes[i + 1]->integer != 0)
      return true;
  return false;
}

struct StorageType {
  std::string_view global;
  DType dtype;
};
constexpr StorageType storage_types[] = {
    {"torch FloatStorage", DType::f32},        {"torch DoubleStorage", DType::f64},
    {"torch HalfStorage", DType::f16},         {"torch LongStorage", DType::i64},
    {"torch BFloat16Storage", DType::bf16},    {"torch IntStorage", DType::i32},
    {"torch ShortStorage", DType::i16},        {"torch CharStorage", DType::i8},
    {"torch ByteStorage", DType::u8},          {"torch BoolStorage", DType::boolean},
    {"torch ComplexFloatStorage", DType::c64}, {"torch.storage UntypedStorage", DType::u8},
};
/// The dtypes without a class of storages. Their tensors name them: _rebuild_tensor_v3.
constexpr StorageType named_types[] = {
    {"torch float8_e4m3fn", DType::f8_e4m3fn},
    {"torch float8_e5m2", DType::f8_e5m2},
    {"torch uint16", DType::u16},
    {"torch uint32", DType::u32},
    {"torch uint64", DType::u64},
};
const StorageType* named_type(const PickleValue& v) {
  for (const StorageType& type : named_types)
    if (v.is(Kind::global) && v.text == type.global) return &type;
  return nullptr;
}

}  // namespace

void TorchPickle::fail(const std::string& what) const { throw FileError(name_ + ": " + what); }

// A storage's element type stands in the persistent ids: ("storage", class, key, location, count,
// view).
std::map<std::string, TorchPickle::Storage>& TorchPickle::collect_storages() {
  for (const PickleValue& v : reader_.values()) {
    if (!v.is(Kind::persistent)) continue;
    const PickleValue& id = *v.items[0];
    if (!id.is(Kind::tuple) || id.items.size() < 5 || id.items[0]->text != "storage" ||
        !is_text(*id.items[2]))
      fail("a persistent id that is not a storage");
    if (id.items.size() > 5 && !id.items[5]->is(Kind::none))
      fail("storages that are views of others are not read");
    for (const StorageType& type : storage_types) {
      if (!id.items[1]->is(Kind::global) || id.items[1]->text != type.global) continue;
      const auto [entry, added] = storages_.insert({id.items[2]->text, {type.dtype, {}}});
      if (!added && entry->second.dtype != type.dtype)
        fail("storage " + entry->first + " has two element types");
    }
  }
  return storages_;
}

/// What a parameter holds; other values as they are.
const PickleValue* TorchPickle::without_parameter(const PickleValue* v) {
  const bool parameter = v->is_call_of("torch._utils _rebuild_parameter") ||
                         v->is_call_of("torch._utils _rebuild_parameter_with_state") ||
                         v->is_call_of("torch.nn.parameter Parameter");
  return parameter && !v->arguments().empty() ? v->arguments()[0] : v;
}

const PickleValue* TorchPickle::as_tensor(const PickleValue* v) const {
  v = without_parameter(v);
  const bool tensor = v->is_call_of("torch._utils _rebuild_tensor") ||
                      v->is_call_of("torch._utils _rebuild_tensor_v2") ||
                      v->is_call_of("torch._utils _rebuild_tensor_v3") || has_attributes(*v);
  return tensor ? v : nullptr;
}

// _rebuild_from_type_v2(function, class, arguments, state)
void TorchPickle::add_parts(const PickleValue* object, const std::string& prefix, int depth,
                            std::map<std::string, StoredTensor>& parts) const {
  constexpr int max_depth = 4;
  constexpr size_t max_parts = 256;
  if (depth > max_depth) fail("its tensor subclasses are nested too deeply");
  const auto& arguments = object->arguments();
  if (arguments.size() < 4 || !arguments[3]->is(Kind::dict))
    fail("a tensor subclass without a dict of its parts");
  const std::vector<PickleValue*>& state = arguments[3]->items;
  for (size_t i = 0; i + 1 < state.size(); i += 2) {
    if (!is_text(*state[i])) continue;
    const std::string name = prefix + state[i]->text;
    const PickleValue* const value = without_parameter(state[i + 1]);
    if (parts.size() > max_parts) fail("a tensor subclass has too many parts");
    if (const PickleValue* tensor = as_tensor(value))
      parts[name] = tensor_of(*tensor, name);
    else if (value->is_call_of("torch._tensor _rebuild_from_type_v2"))
      add_parts(value, name + ".", depth + 1, parts);
  }
}

std::map<std::string, StoredTensor> TorchPickle::parts_of_subclass(
    const PickleValue* object) const {
  object = without_parameter(object);
  if (!object->is_call_of("torch._tensor _rebuild_from_type_v2"))
    fail("not a tensor subclass whose parts are known");
  std::map<std::string, StoredTensor> parts;
  add_parts(object, "", 0, parts);
  return parts;
}

const PickleValue* TorchPickle::find_state(const PickleValue* v) const {
  constexpr std::string_view usual[] = {"state_dict", "model_state_dict", "model",
                                        "net",        "params",           "ema"};
  constexpr int max_depth = 4;
  for (int depth = 0; depth < max_depth && v->is(Kind::dict); ++depth) {
    const PickleValue* inner = nullptr;
    for (size_t i = 0; i + 1 < v->items.size(); i += 2) {
      if (as_tensor(v->items[i + 1]) != nullptr) return v;
      for (const std::string_view key : usual)
        if (inner == nullptr && v->items[i]->text == key && v->items[i + 1]->is(Kind::dict))
          inner = v->items[i + 1];
    }
    if (inner == nullptr) break;
    v = inner;
  }
  fail("holds no dict of tensors");
}

std::vector<int64_t> TorchPickle::integers(const PickleValue& v, const std::string& tensor) const {
  const PickleValue& tuple =
      v.is_call_of("torch Size") && v.arguments().size() == 1 ? *v.arguments()[0] : v;
  if (!tuple.is(Kind::tuple) || tuple.items.size() > max_rank_read)
    fail("tensor '" + tensor + "' is damaged");
  std::vector<int64_t> numbers;
  for (const PickleValue* item : tuple.items) {
    if (!item->is(Kind::integer) || item->integer < 0) fail("tensor '" + tensor + "' is damaged");
    numbers.push_back(item->integer);
  }
  return numbers;
}

// _rebuild_tensor(storage, offset, sizes, strides, …), all in elements. _rebuild_tensor_v3 has a
// storage of bytes, and its seventh argument is the dtype.
StoredTensor TorchPickle::tensor_of(const PickleValue& call, const std::string& tensor) const {
  const auto& arguments = has_attributes(call) ? call.arguments()[2]->items : call.arguments();
  if (arguments.size() < 4 || !arguments[0]->is(Kind::persistent) ||
      !arguments[1]->is(Kind::integer))
    fail("tensor '" + tensor + "' is damaged");
  if (is_lazy(arguments))
    fail("tensor '" + tensor + "' is a lazy conjugate; save x.resolve_conj().resolve_neg()");
  const auto found = storages_.find(arguments[0]->items[0]->items[2]->text);
  if (found == storages_.end())
    fail("tensor '" + tensor + "' is of a dtype that Taper does not have");
  const Storage& storage = found->second;
  DType dtype = storage.dtype;
  if (call.is_call_of("torch._utils _rebuild_tensor_v3")) {
    const StorageType* type = arguments.size() > 6 ? named_type(*arguments[6]) : nullptr;
    if (type == nullptr || dtype != DType::u8)
      fail("tensor '" + tensor + "' is of a dtype that Taper does not have");
    dtype = type->dtype;
  }
  const StoredTensor stored{dtype, integers(*arguments[2], tensor), integers(*arguments[3], tensor),
                            arguments[1]->integer, storage.bytes};
  if (const std::string wrong = stored.check(); !wrong.empty())
    fail("tensor '" + tensor + "' reaches outside its storage, or is damaged: " + wrong);
  return stored;
}

std::map<std::string, StoredTensor> TorchPickle::tensors_of(const PickleValue* object) const {
  std::map<std::string, StoredTensor> tensors;
  if (object->is(Kind::dict) && object->items.empty()) return tensors;
  const PickleValue* state = find_state(object);
  for (size_t i = 0; i + 1 < state->items.size(); i += 2) {
    const PickleValue &key = *state->items[i], *tensor = as_tensor(state->items[i + 1]);
    if (tensor != nullptr && is_text(key)) tensors[key.text] = tensor_of(*tensor, key.text);
  }
  return tensors;
}

}  // namespace taper::io::internal
