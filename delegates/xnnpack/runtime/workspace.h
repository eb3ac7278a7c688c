// Memory for the values that parts compute on their way.
#pragma once
#include <atomic>
#include <cstdint>

#include "taper/delegates/xnnpack/runtime/memory.h"

struct xnn_workspace;

namespace taper::delegates::xnnpack {

class Workspaces;

/// Such memory of one session, as large as the largest of its parts needs. The engines that use it
/// never run at the same time. The library has no lock for it: only the session makes them, gives
/// them other sizes and destroys them.
struct Workspace {
  Workspaces& all;
  Workspace* next;
  xnn_workspace* memory;  ///< of the library
  const void* session;    ///< nullptr: nobody has an instance
  uint32_t instances;     ///< of the session
  uint32_t engines;       ///< also those that nobody uses
};

/// The workspaces of a backend. Threads may call it at the same time.
class Workspaces {
 public:
  explicit Workspaces(Memory& memory) : memory_(memory) {}
  Workspaces(const Workspaces&) = delete;

  /// That of a session, which has one instance more from now on. A session without one gets
  /// `preferred`, if nobody has it, or a new one. nullptr: there is no memory.
  Workspace* join(const void* session, Workspace* preferred);
  /// Joins this one. False: another session has it.
  bool try_join(Workspace& workspace, const void* session);
  /// Ends an instance.
  void leave(Workspace& workspace);

  /// An engine uses the workspace from now on, until it is destroyed.
  void add_engine(Workspace& workspace);
  void remove_engine(Workspace& workspace);

 private:
  void lock();
  void unlock() { is_locked_.clear(std::memory_order_release); }
  bool has_taken(Workspace& workspace, const void* session);
  bool is_taken_out(Workspace& workspace);
  void destroy(Workspace& workspace);

  Memory& memory_;
  std::atomic_flag is_locked_ = ATOMIC_FLAG_INIT;
  Workspace* first_ = nullptr;
};

}  // namespace taper::delegates::xnnpack
