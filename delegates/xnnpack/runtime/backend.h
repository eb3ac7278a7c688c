// Runs parts of programs with XNNPACK.
#pragma once
#include "taper/delegates/xnnpack/runtime/node_observer.h"
#include "taper/delegates/xnnpack/runtime/pack_store.h"
#include "taper/delegates/xnnpack/runtime/precision.h"
#include "taper/delegates/xnnpack/runtime/workspace.h"
#include "taper/runtime/device/backend.h"

namespace taper::delegates::xnnpack {

inline constexpr const char* name_of(Precision precision) {
  return precision == Precision::f16 ? "xnnpack-f16" : "xnnpack";
}
/// Version 1 has no rounded rows, version 2 no products of f32 with integers, and version 3 no
/// grouped products.
inline constexpr uint32_t blob_version = 4;

/// The backend. What the library and the backend allocate comes from `memory`, which outlives it.
/// Threads are those of the session.
///
/// With Precision::f16, parts of f32 round what they compute to f16. So they do if the processor
/// has f16 and the library has kernels for all nodes of a part. Other parts compute in f32.
///
/// The library packs weights once: sessions, methods and programs share equal ones, and they stay
/// until the last program that needs them is closed. What else an instance had is kept for the next
/// one: measuring a method costs nothing. Instances of a session share the memory for what they
/// compute on their way.
class XnnpackBackend final : public Backend {
 public:
  explicit XnnpackBackend(Memory& memory, Precision precision = Precision::f32)
      : store_(memory), workspaces_(memory), precision_(precision) {}

  /// Tells `observer` what nodes take, of methods that are created from now on. nullptr: nobody.
  /// Set it while no other thread uses the backend.
  void observe(NodeObserver* observer) { observer_ = observer; }

  /// Keeps large packed weights of parts that are created from now on in files, so that processes
  /// share them; nullptr: in memory. The files outlive the backend.
  void use_files(PackFiles* files) { store_.use_files(files); }

  const char* name() const override { return name_of(precision_); }
  bool reads(uint32_t version) const override { return version >= 1 && version <= blob_version; }
  Error load(Span<const std::byte> blob, Context& context, void*& loaded) override;
  void unload(void* loaded) override;
  size_t instance_bytes(const void* loaded) const override;
  Error create(void* loaded, void* memory, const DelegateArguments& arguments,
               Context& context) override;
  void release(void* instance) override;
  Error reshape(void* instance, const DelegateArguments& arguments, Context& context) override;
  void result(const void* instance, index_t i, DType& dtype, Shape& shape) const override;
  Error execute(void* instance, const Slot* arguments, Context& context) override;

 private:
  PackStore store_;
  Workspaces workspaces_;
  Precision precision_;
  NodeObserver* observer_ = nullptr;
};

}  // namespace taper::delegates::xnnpack
