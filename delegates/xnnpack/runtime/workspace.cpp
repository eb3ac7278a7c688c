#include "taper/delegates/xnnpack/runtime/workspace.h"

#include <xnnpack.h>

#include <new>

namespace taper::delegates::xnnpack {

// Others hold the lock for a few instructions.
void Workspaces::lock() {
  while (is_locked_.test_and_set(std::memory_order_acquire)) {
  }
}

// The next three are called with the lock.
bool Workspaces::has_taken(Workspace& workspace, const void* session) {
  if (workspace.session != nullptr && workspace.session != session) return false;
  workspace.session = session, ++workspace.instances;
  return true;
}

// Whether nobody needs the workspace, so that it has left the list.
bool Workspaces::is_taken_out(Workspace& workspace) {
  if (workspace.instances > 0 || workspace.engines > 0) return false;
  Workspace** at = &first_;
  while (*at != &workspace) at = &(*at)->next;
  *at = workspace.next;
  return true;
}

void Workspaces::destroy(Workspace& workspace) {
  (void)xnn_release_workspace(workspace.memory);
  memory_.release(&workspace, sizeof(Workspace));
}

Workspace* Workspaces::join(const void* session, Workspace* preferred) {
  lock();
  Workspace* found = first_;
  while (found != nullptr && found->session != session) found = found->next;
  if (found == nullptr) found = preferred;
  const bool joined = found != nullptr && has_taken(*found, session);
  unlock();
  if (joined) return found;

  xnn_workspace_t memory = nullptr;
  if (xnn_create_workspace(&memory) != xnn_status_success) return nullptr;
  void* place = allocate(memory_, sizeof(Workspace));
  if (place == nullptr) return (void)xnn_release_workspace(memory), nullptr;
  lock();
  first_ = new (place) Workspace{*this, first_, memory, session, 1, 0};
  unlock();
  return static_cast<Workspace*>(place);
}

bool Workspaces::try_join(Workspace& workspace, const void* session) {
  lock();
  const bool joined = has_taken(workspace, session);
  unlock();
  return joined;
}

void Workspaces::leave(Workspace& workspace) {
  lock();
  if (--workspace.instances == 0) workspace.session = nullptr;
  const bool is_last = is_taken_out(workspace);
  unlock();
  if (is_last) destroy(workspace);
}

void Workspaces::add_engine(Workspace& workspace) {
  lock();
  ++workspace.engines;
  unlock();
}

void Workspaces::remove_engine(Workspace& workspace) {
  lock();
  --workspace.engines;
  const bool is_last = is_taken_out(workspace);
  unlock();
  if (is_last) destroy(workspace);
}

}  // namespace taper::delegates::xnnpack
