#pragma once
#include "taper/runtime/program/program.h"

namespace taper {

namespace internal {
struct SessionData;
}

struct SessionOptions {
  const Threads* threads =
      nullptr;  ///< shared by the session's methods; nullptr: the caller's thread alone
  Span<const Span<std::byte>> device_memory;  ///< element i: memory of space i + 1
  /// The memory holds zeros, as a system gives it, so states without a first value are not written.
  /// Pages of a long cache are then taken as they are used.
  bool zeroed = false;
  ErrorInfo* info = nullptr;  ///< where and why `create` failed; may be nullptr
};

/// A state in memory: dense, of fixed size.
struct StateView {
  const char* path = nullptr;
  void* data = nullptr;  ///< an opaque address if the state lies on a device: use `read_state` and
                         ///< `write_state`
  DType dtype = DType::f32;
  Span<const int64_t> sizes;
  size_t size_bytes = 0;
  bool on_host = true;
};

/// The states of one use of a program: weights in training, caches, random numbers, an optimizer.
/// Its methods read and write them. A second conversation, or a second training run, needs a second
/// Session. One thread at a time.
///
/// A Session is a handle on the memory given to `create`, which must outlive it, or `close`. A
/// closed session whose memory is intact has no states, and its calls return invalid_argument.
class Session {
 public:
  /// Places the states in `memory` (`program.session_bytes()`) and gives them their initial values.
  /// The rest of the memory serves methods that are created without memory of their own. They have
  /// given it back when the last open method is closed. Errors: out_of_memory; not_supported if an
  /// initial value is not in the file; invalid_argument if the program is closed.
  static Result<Session> create(const Program& program, Span<std::byte> memory,
                                const SessionOptions& options = {});

  /// Ends the session. Then you may free its memory, and the program has one open session less.
  /// Devices of the program are told. Errors: as for `Program::close`, if methods are open.
  Error close(ErrorInfo* info = nullptr);

  Program program() const;

  index_t state_count() const;
  /// State `i`, below `state_count()`; another `i` gives an empty one.
  StateView state(index_t i) const;
  /// The index of the state with this path. invalid_argument: there is none.
  Result<index_t> find_state(const char* path) const;

  /// Copies a state out or in. `bytes` has exactly `state(i).size_bytes` bytes, dense. No method
  /// may run meanwhile.
  Error read_state(index_t i, Span<std::byte> bytes) const;
  Error write_state(index_t i, Span<const std::byte> bytes);

  /// Gives all states their initial values again.
  Error reset();
  /// Copies all states of another session of the same program.
  Error copy_states(const Session& other);

  internal::SessionData& data() const { return *data_; }

 private:
  explicit Session(internal::SessionData* data) : data_(data) {}
  internal::SessionData* data_;
};

}  // namespace taper
