// Python pickles as plain data. Nothing is imported, constructed or called: a global stays a pair
// of names, a call stays a node with its callable and arguments, and the reader of a particular
// format decides what they mean.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace taper::io::internal {

/// One object of a pickle. Owned by its Pickle; objects may share parts, and hostile pickles may
/// contain cycles.
struct PickleValue {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    real,
    text,        ///< str
    bytes,       ///< bytes, and str of Python 2
    tuple,       ///< items
    list,        ///< items
    set,         ///< items
    dict,        ///< items: key, value, key, value, …
    global,      ///< text: "module name"
    call,        ///< items: callable, argument tuple
    persistent,  ///< items: the id
  };
  Kind kind = Kind::none;
  int64_t integer = 0;  ///< boolean and integer
  double real = 0;
  std::string text;
  std::vector<PickleValue*> items;

  bool is(Kind k) const { return kind == k; }
  bool is_global(const char* name) const { return kind == Kind::global && text == name; }
  /// Whether this is a call of the global of that name.
  bool is_call_of(const char* name) const {
    return kind == Kind::call && items[0]->is_global(name);
  }
  /// A call's arguments.
  const std::vector<PickleValue*>& arguments() const { return items[1]->items; }
};

/// Reads the pickles that stand behind each other in a file.
class PickleReader {
 public:
  /// Which objects a pickle may hold: those of tensors in containers, or any class's. Of a class
  /// stays its name, of an object what it was made with; what was set afterwards is dropped.
  enum class Objects : uint8_t { tensors, any };

  /// `name` stands in front of messages.
  PickleReader(std::span<const std::byte> file, std::string name,
               Objects objects = Objects::tensors)
      : file_(file), name_(std::move(name)), objects_(objects) {}

  /// The next pickle's object; valid as long as this reader. Throws FileError for opcodes and
  /// globals that tensors do not need, for damage, and at limits on depth, size and count of
  /// operations.
  PickleValue* next();

  /// Every object read so far, in the order of making.
  const std::deque<PickleValue>& values() const { return values_; }
  /// Where the next byte stands.
  size_t position() const { return at_; }

 private:
  using Kind = PickleValue::Kind;
  [[noreturn]] void fail(const std::string& what) const;
  std::span<const std::byte> take(uint64_t count);
  template <class T>
  T number();
  double big_endian_real();
  std::string line();
  PickleValue* make(Kind kind);
  PickleValue* make_integer(int64_t value);
  PickleValue* make_bytes(Kind kind, uint64_t count);
  PickleValue* make_long(uint64_t count);
  PickleValue* make_global(const std::string& module, const std::string& name);
  void push(PickleValue* value);
  PickleValue* pop();
  std::vector<PickleValue*> pop_to_mark();
  PickleValue* top(Kind kind);
  void make_tuple(size_t count);
  void set_items(std::vector<PickleValue*> items);
  void remember(uint64_t index);
  PickleValue* recall(uint64_t index) const;
  void call();
  /// Executes one opcode; false at STOP.
  bool step();
  bool step_constant(uint8_t opcode);
  bool step_container(uint8_t opcode);

  std::span<const std::byte> file_;
  std::string name_;
  Objects objects_;
  size_t at_ = 0;
  std::deque<PickleValue> values_;
  std::vector<PickleValue*> stack_, memo_;  // nullptr in the stack is a mark
};

}  // namespace taper::io::internal
