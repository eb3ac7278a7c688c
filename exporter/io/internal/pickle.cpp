#include "taper/exporter/io/internal/pickle.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "taper/exporter/io/array.h"

// Opcodes: CPython's Lib/pickletools.py, which documents every one of them.
namespace taper::io::internal {
namespace {

constexpr size_t max_values = 1 << 22, max_stack = 1 << 20, max_memo = 1 << 22, max_line = 256;

// The globals of checkpoints that hold tensors and containers only. An unknown one might stand for
// anything.
constexpr std::string_view allowed_globals[] = {
    "collections OrderedDict",
    "torch FloatStorage",
    "torch DoubleStorage",
    "torch HalfStorage",
    "torch BFloat16Storage",
    "torch LongStorage",
    "torch IntStorage",
    "torch ShortStorage",
    "torch CharStorage",
    "torch ByteStorage",
    "torch BoolStorage",
    "torch ComplexFloatStorage",
    "torch.storage UntypedStorage",
    "torch float8_e4m3fn",
    "torch float8_e5m2",
    "torch uint16",
    "torch uint32",
    "torch uint64",
    "torch Size",
    "torch Tensor",
    "torch._tensor _rebuild_from_type_v2",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
    "torch.nn.parameter Parameter",
};

std::string hex(unsigned value) {
  constexpr char digits[] = "0123456789abcdef";
  return std::string("0x") + digits[value >> 4 & 15] + digits[value & 15];
}

}  // namespace

void PickleReader::fail(const std::string& what) const {
  throw FileError(name_ + ": pickle at byte " + std::to_string(at_) + ": " + what);
}

std::span<const std::byte> PickleReader::take(uint64_t count) {
  if (count > file_.size() - at_) fail("the file is cut short");
  const auto bytes = file_.subspan(at_, static_cast<size_t>(count));
  at_ += static_cast<size_t>(count);
  return bytes;
}

template <class T>
T PickleReader::number() {
  T value;
  std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
  return value;
}

double PickleReader::big_endian_real() {
  const uint64_t bits = __builtin_bswap64(number<uint64_t>());
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::string PickleReader::line() {
  std::string text;
  for (char c = number<char>(); c != '\n'; c = number<char>()) {
    if (text.size() == max_line) fail("a global's name has no end");
    text += c;
  }
  return text;
}

PickleValue* PickleReader::make(Kind kind) {
  if (values_.size() == max_values) fail("more than " + std::to_string(max_values) + " objects");
  values_.push_back({});
  values_.back().kind = kind;
  return &values_.back();
}

PickleValue* PickleReader::make_integer(int64_t value) {
  PickleValue* v = make(Kind::integer);
  v->integer = value;
  return v;
}

PickleValue* PickleReader::make_bytes(Kind kind, uint64_t count) {
  const auto bytes = take(count);
  PickleValue* v = make(kind);
  v->text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return v;
}

/// A two's complement little-endian integer. One of more than 8 bytes is kept as its bytes: only
/// file signatures are that long.
PickleValue* PickleReader::make_long(uint64_t count) {
  if (count > 8) return make_bytes(Kind::bytes, count);
  const auto bytes = take(count);
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
  if (negative && count < 8) value |= ~uint64_t{0} << (8 * count);
  return make_integer(static_cast<int64_t>(value));
}

PickleValue* PickleReader::make_global(const std::string& module, const std::string& name) {
  PickleValue* v = make(Kind::global);
  v->text = module + " " + name;
  if (objects_ == Objects::tensors &&
      std::find(std::begin(allowed_globals), std::end(allowed_globals), v->text) ==
          std::end(allowed_globals))
    fail("refusing the global \"" + module + "." + name +
         "\": only tensors, numbers, texts and containers of these are read (of a model save "
         "model.state_dict() instead)");
  return v;
}

void PickleReader::push(PickleValue* value) {
  if (stack_.size() == max_stack) fail("the stack is too deep");
  stack_.push_back(value);
}

PickleValue* PickleReader::pop() {
  if (stack_.empty() || stack_.back() == nullptr) fail("takes a value from an empty stack");
  PickleValue* value = stack_.back();
  stack_.pop_back();
  return value;
}

std::vector<PickleValue*> PickleReader::pop_to_mark() {
  const auto mark = std::find(stack_.rbegin(), stack_.rend(), nullptr);
  if (mark == stack_.rend()) fail("looks for a mark that is not there");
  std::vector<PickleValue*> items(mark.base(), stack_.end());
  stack_.erase(mark.base() - 1, stack_.end());
  return items;
}

PickleValue* PickleReader::top(Kind kind) {
  if (stack_.empty() || stack_.back() == nullptr || stack_.back()->kind != kind)
    fail("adds items to something that takes none");
  return stack_.back();
}

void PickleReader::make_tuple(size_t count) {
  PickleValue* tuple = make(Kind::tuple);
  tuple->items.resize(count);
  while (count-- > 0) tuple->items[count] = pop();
  push(tuple);
}

void PickleReader::set_items(std::vector<PickleValue*> items) {
  if (items.size() % 2 != 0) fail("a dict gets a key without a value");
  PickleValue* dict = top(Kind::dict);
  dict->items.insert(dict->items.end(), items.begin(), items.end());
}

void PickleReader::remember(uint64_t index) {
  if (stack_.empty() || stack_.back() == nullptr) fail("remembers a value that is not there");
  if (index >= max_memo) fail("the memo is too large");
  if (index >= memo_.size()) memo_.resize(static_cast<size_t>(index) + 1, nullptr);
  memo_[static_cast<size_t>(index)] = stack_.back();
}

PickleValue* PickleReader::recall(uint64_t index) const {
  if (index >= memo_.size() || memo_[static_cast<size_t>(index)] == nullptr)
    fail("recalls a value that was not remembered");
  return memo_[static_cast<size_t>(index)];
}

void PickleReader::call() {
  PickleValue* arguments = pop();
  PickleValue* callable = pop();
  if (!callable->is(Kind::global) || !arguments->is(Kind::tuple))
    fail("calls something that is not a global, or without a tuple");
  if (callable->is_global("collections OrderedDict") && arguments->items.empty())
    return push(make(Kind::dict));
  PickleValue* v = make(Kind::call);
  v->items = {callable, arguments};
  push(v);
}

PickleValue* PickleReader::next() {
  stack_.clear();
  memo_.clear();
  while (step()) {
  }
  PickleValue* result = pop();
  if (!stack_.empty()) fail("leaves values on the stack");
  return result;
}

bool PickleReader::step() {
  const auto opcode = number<uint8_t>();
  switch (opcode) {
    case 0x80:  // PROTO
      if (const auto version = number<uint8_t>(); version < 2 || version > 5)
        fail("protocol " + std::to_string(version) + " is not known");
      return true;
    case 0x95:
      number<uint64_t>();
      return true;  // FRAME: a hint
    case 0x2e:
      return false;  // STOP
    case 0x28:
      push(nullptr);
      return true;  // MARK
    case 0x30:
      pop();
      return true;  // POP
    case 0x31:
      pop_to_mark();
      return true;  // POP_MARK
    case 0x71:
      remember(number<uint8_t>());
      return true;  // BINPUT
    case 0x72:
      remember(number<uint32_t>());
      return true;  // LONG_BINPUT
    case 0x94:
      remember(memo_.size());
      return true;  // MEMOIZE
    case 0x68:
      push(recall(number<uint8_t>()));
      return true;  // BINGET
    case 0x6a:
      push(recall(number<uint32_t>()));
      return true;  // LONG_BINGET
    case 0x63: {    // GLOBAL
      const std::string module = line(), name = line();
      push(make_global(module, name));
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const PickleValue *name = pop(), *module = pop();
      push(make_global(module->text, name->text));
      return true;
    }
    case 0x52:
      call();
      return true;  // REDUCE
    case 0x81:
      if (objects_ == Objects::tensors) break;
      call();
      return true;  // NEWOBJ
    case 0x62: {    // BUILD: sets attributes, here only an OrderedDict's `_metadata`, which nobody
                    // needs
      pop();
      if (objects_ == Objects::tensors || stack_.empty() || stack_.back() == nullptr)
        top(Kind::dict);
      return true;
    }
    case 0x51: {  // BINPERSID
      PickleValue* v = make(Kind::persistent);
      v->items = {pop()};
      push(v);
      return true;
    }
    default:
      if (step_constant(opcode) || step_container(opcode)) return true;
  }
  fail("refusing the opcode " + hex(opcode) + ", which tensors do not need");
}

/// Opcodes that push a constant; false if `opcode` is none.
bool PickleReader::step_constant(uint8_t opcode) {
  switch (opcode) {
    case 0x4e:
      push(make(Kind::none));
      return true;  // NONE
    case 0x88:      // NEWTRUE
    case 0x89: {    // NEWFALSE
      PickleValue* v = make(Kind::boolean);
      v->integer = opcode == 0x88;
      push(v);
      return true;
    }
    case 0x4a:
      push(make_integer(number<int32_t>()));
      return true;  // BININT
    case 0x4b:
      push(make_integer(number<uint8_t>()));
      return true;  // BININT1
    case 0x4d:
      push(make_integer(number<uint16_t>()));
      return true;  // BININT2
    case 0x8a:
      push(make_long(number<uint8_t>()));
      return true;  // LONG1
    case 0x8b:
      push(make_long(number<uint32_t>()));
      return true;  // LONG4
    case 0x47: {    // BINFLOAT
      const double real = big_endian_real();
      PickleValue* v = make(Kind::real);
      v->real = real;
      push(v);
      return true;
    }
    case 0x58:
      push(make_bytes(Kind::text, number<uint32_t>()));
      return true;  // BINUNICODE
    case 0x8c:
      push(make_bytes(Kind::text, number<uint8_t>()));
      return true;  // SHORT_BINUNICODE
    case 0x8d:
      push(make_bytes(Kind::text, number<uint64_t>()));
      return true;  // BINUNICODE8
    case 0x55:
      push(make_bytes(Kind::bytes, number<uint8_t>()));
      return true;  // SHORT_BINSTRING
    case 0x54:
      push(make_bytes(Kind::bytes, number<uint32_t>()));
      return true;  // BINSTRING
    case 0x43:
      push(make_bytes(Kind::bytes, number<uint8_t>()));
      return true;  // SHORT_BINBYTES
    case 0x42:
      push(make_bytes(Kind::bytes, number<uint32_t>()));
      return true;  // BINBYTES
    case 0x8e:
      push(make_bytes(Kind::bytes, number<uint64_t>()));
      return true;  // BINBYTES8
    default:
      return false;
  }
}

/// Opcodes that make or fill a container; false if `opcode` is none.
bool PickleReader::step_container(uint8_t opcode) {
  switch (opcode) {
    case 0x29:
      make_tuple(0);
      return true;  // EMPTY_TUPLE
    case 0x85:
      make_tuple(1);
      return true;  // TUPLE1
    case 0x86:
      make_tuple(2);
      return true;  // TUPLE2
    case 0x87:
      make_tuple(3);
      return true;  // TUPLE3
    case 0x74: {    // TUPLE
      std::vector<PickleValue*> items = pop_to_mark();
      PickleValue* v = make(Kind::tuple);
      v->items = std::move(items);
      push(v);
      return true;
    }
    case 0x5d:
      push(make(Kind::list));
      return true;  // EMPTY_LIST
    case 0x7d:
      push(make(Kind::dict));
      return true;  // EMPTY_DICT
    case 0x8f:
      push(make(Kind::set));
      return true;  // EMPTY_SET
    case 0x61: {    // APPEND
      PickleValue* item = pop();
      top(Kind::list)->items.push_back(item);
      return true;
    }
    case 0x65:    // APPENDS
    case 0x90: {  // ADDITEMS
      const std::vector<PickleValue*> items = pop_to_mark();
      PickleValue* container = top(opcode == 0x65 ? Kind::list : Kind::set);
      container->items.insert(container->items.end(), items.begin(), items.end());
      return true;
    }
    case 0x73: {  // SETITEM
      PickleValue *value = pop(), *key = pop();
      set_items({key, value});
      return true;
    }
    case 0x75:
      set_items(pop_to_mark());
      return true;  // SETITEMS
    default:
      return false;
  }
}

}  // namespace taper::io::internal
