// A backend: a library or a processor that runs a whole part of a program as one instruction.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/runtime/core/error.h"

namespace taper {

/// The tensors of a delegated instruction. All are dense and lie in the host's memory. Each slot
/// holds a tensor, which stays at its address as long as the method lives.
struct DelegateArguments {
  Span<const Slot> operands;
  /// Of the program; `create` may read them. Their elements never change, and stay where they are
  /// until `unload`. Their shapes may depend on symbols.
  Span<const Slot> constants;
  Span<const Slot> results;
  /// Tells sessions apart. Instances of one session never run at the same time, and may share
  /// memory. While a method is measured, this is a session of its own. Never nullptr.
  const void* session;
};

/// The interface of a backend for programs. The caller hands it over in `LoadOptions`, and keeps it
/// until the programs that use it are closed.
///
/// A program holds a blob for each part that the backend compiled. A blob and the shapes are not to
/// be trusted: the backend checks every index and every number before it uses them.
///
///   load                                  once per blob, in Program::load
///     create, reshape                     for each instruction, in Method::create
///       reshape                           when a symbol changed a shape
///       execute                           in Method::execute
///     release                             in Method::close
///   unload                                in Program::close
///
/// What the backend must allocate, it allocates in `load` and `create`. `execute`, and `reshape` to
/// shapes that it has seen, allocate nothing. Calls for different instances may come from different
/// threads at the same time.
///
/// An error says why in `context.fail`. invalid_program: the blob and the arguments do not fit.
class Backend {
 public:
  /// The name that programs store: "xnnpack".
  virtual const char* name() const = 0;
  /// Whether it reads blobs of this version of its own format.
  virtual bool reads(uint32_t version) const = 0;

  /// Verifies a blob, which lies at a multiple of 16 and outlives `unload`. `loaded` is what the
  /// other calls get.
  virtual Error load(Span<const std::byte> blob, Context& context, void*& loaded) = 0;
  virtual void unload(void* loaded) = 0;

  /// The bytes that an instance takes from the method's memory.
  virtual size_t instance_bytes(const void* loaded) const = 0;
  /// Makes an instance in `memory`, at a multiple of 8 and filled with zeros. Compares the number
  /// of arguments and their dtypes with the blob. Constants have elements, other tensors do not.
  /// `context.threads` stay the same as long as the instance lives. A `create` that fails gives
  /// back what it took: `release` is not called.
  virtual Error create(void* loaded, void* memory, const DelegateArguments& arguments,
                       Context& context) = 0;
  virtual void release(void* instance) = 0;

  /// Takes the shapes of the operands, and asks for scratch with `context.need_scratch`. The
  /// scratch must not shrink when a shape grows. invalid_argument: the backend cannot compute these
  /// shapes.
  virtual Error reshape(void* instance, const DelegateArguments& arguments, Context& context) = 0;
  /// The type of result `i` for the shapes of the last `reshape`. The runtime compares it with the
  /// program's, so that the backend never writes behind a result.
  virtual void result(const void* instance, index_t i, DType& dtype, Shape& shape) const = 0;

  /// Computes the results. `arguments` are the operands, the constants and the results in a row,
  /// which may have moved since the last call. Scratch is in `context`.
  virtual Error execute(void* instance, const Slot* arguments, Context& context) = 0;

 protected:
  ~Backend() = default;
};

}  // namespace taper
