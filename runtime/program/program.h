#pragma once
#include <cstring>

#include "taper/kernels/kernel.h"
#include "taper/runtime/core/result.h"
#include "taper/runtime/device/backend.h"
#include "taper/runtime/device/device.h"
#include "taper/runtime/platform/cpu.h"

namespace taper {

namespace format {
struct Program;
}
namespace internal {
struct ProgramData;
}

/// A constant that is not in the file: a slot, which the application fills, or a constant in
/// another file.
struct GivenConstant {
  /// For the constant with this slot.
  GivenConstant(const char* slot, Span<const std::byte> elements)
      : key(reinterpret_cast<const std::byte*>(slot), static_cast<index_t>(std::strlen(slot))),
        bytes(elements) {}
  /// For the external constant whose elements have this SHA-256, of 32 bytes. The runtime does not
  /// compute the hash: it believes the caller. `layout`: that of the weights file, one with
  /// strides.
  GivenConstant(Span<const std::byte> sha256, Span<const std::byte> elements,
                Layout layout = Layout::dense)
      : key(sha256), bytes(elements), layout(layout) {}

  Span<const std::byte> key;
  /// The elements, and `slack_bytes` behind them that kernels may read and never use. They
  /// start at a multiple of the size of an element, and must outlive the program.
  Span<const std::byte> bytes;
  Layout layout = Layout::dense;
};

/// Options of `Program::load`.
struct LoadOptions {
  /// The features that kernels may need; by default all features of this machine. The default asks
  /// the processor. If you load many programs, keep the set.
  CpuFeatures cpu = cpu_features();
  /// Devices, found by the names of the program's memory spaces, and the memory of each for
  /// constants.
  Span<Device* const> devices;
  Span<const Span<std::byte>> device_memory;
  /// Backends, found by the names in the program. They outlive it.
  Span<Backend* const> backends;
  /// Constants that are not in the file. If one is missing, `Method::create` fails, or
  /// `Session::create` if the first value of a state needs it.
  Span<const GivenConstant> constants;
  /// Constants in the layouts of these kernels, as `pack` wrote them (runtime/packing/packing.h).
  /// They replace those in the file and must outlive the program. Empty: kernels pack in each call.
  Span<const std::byte> packed;
  /// Where and why `load` failed; may be nullptr.
  ErrorInfo* info = nullptr;
};

/// The memory that a method needs with every symbol at its maximum. All pieces are 64-byte aligned.
/// Weights that are packed at load belong to the program: `find_packed` (runtime/packing/packing.h)
/// and `Module::requirements` tell their bytes.
struct MethodRequirements {
  size_t metadata = 0;  ///< tables and plans of kernels
  size_t activations = 0;
  size_t scratch = 0;
  size_t io = 0;
  size_t device[max_spaces] = {};  ///< activations and io of space i > 0

  /// The bytes of one piece of memory for everything on the host.
  size_t total() const { return metadata + activations + scratch + io; }
};

/// A verified file with its kernels. It is immutable; threads and any number of sessions share it.
///
/// A Program is a handle: copies refer to the same tables. The file and the metadata must outlive
/// it and everything that is made from it, or `close`. A closed program whose metadata is intact
/// has no methods, its calls return invalid_argument, and its sizes are 0.
class Program {
 public:
  /// Verifies the file and finds its kernels.
  ///
  ///   file       the whole program, at an address that is a multiple of 16; used where it lies
  ///   kernels    for each kernel of the program, the first record is taken that fits the
  ///              operator, its schema, the dtypes and the machine's CPU
  ///   metadata   `metadata_bytes(file)` bytes
  ///
  /// Allocates nothing. Errors: invalid_program (damaged, hostile, of an unknown version),
  /// missing_kernel (`info->subject` names the operator), not_supported, out_of_memory (`metadata`
  /// is too small), invalid_argument (a given constant has another size).
  static Result<Program> load(Span<const std::byte> file, KernelSet kernels,
                              Span<std::byte> metadata, const LoadOptions& options = {});
  /// The same for a program that is linked as an array, which `taper export --array` writes.
  template <size_t n>
  static Result<Program> load(const unsigned char (&file)[n], KernelSet kernels,
                              Span<std::byte> metadata, const LoadOptions& options = {}) {
    return load(
        Span<const std::byte>(reinterpret_cast<const std::byte*>(file), static_cast<index_t>(n)),
        kernels, metadata, options);
  }

  /// Ends the program. Then you may free its file and its metadata. Devices and backends that it
  /// uses are told. Call this before you free or reuse the memory, or if there are such devices or
  /// backends; otherwise you need not.
  ///
  /// Errors: busy if sessions are open (`info->values[0]` says how many; nothing was done);
  /// invalid_argument if it is closed already; device_failed if work that waited failed (it is
  /// closed nonetheless).
  Error close(ErrorInfo* info = nullptr);

  /// The bytes of `metadata` that `load` takes, alignment included. Verifies the file's structure
  /// first.
  static Result<size_t> metadata_bytes(Span<const std::byte> file);

  index_t method_count() const;
  /// The name of a method; nullptr: there is none at this index.
  const char* method_name(index_t i) const;
  /// The index of the method with this name. invalid_argument: there is none.
  Result<index_t> find_method(const char* name) const;

  /// What `Session::create` takes on the host: states and their tables.
  size_t session_bytes() const;
  /// The bytes that `Session::create` takes in space `space` > 0.
  size_t session_device_bytes(int space) const;

  /// The bytes of metadata that `Method::create` takes.
  Result<size_t> method_metadata_bytes(const char* name, ErrorInfo* info = nullptr) const;
  /// The memory that `Method::create` takes. To compute it, this function needs
  /// `method_metadata_bytes` of memory, because sizes come from shape rules and `prepare`.
  /// `threads` are those that the session will have: kernels keep scratch for each.
  Result<MethodRequirements> requirements(const char* name, Span<std::byte> workspace,
                                          ErrorInfo* info = nullptr,
                                          const Threads* threads = nullptr) const;

  /// Compares the checksums of all segments, weights included, with those in the file. This reads
  /// the whole file. invalid_program: `info->values[0]` is the damaged segment.
  Error verify_segments(ErrorInfo* info = nullptr) const;

  /// The file's tables, for tools: include taper/schema/program_generated.h to read them. A closed
  /// program has no tables and no kernels.
  const format::Program& table() const;
  Span<const std::byte> file() const;
  /// The record that was taken for entry `i` of the program's kernel table.
  const Kernel& kernel(index_t i) const;

  const internal::ProgramData& data() const { return *data_; }

 private:
  friend class Session;
  explicit Program(const internal::ProgramData* data) : data_(data) {}
  const internal::ProgramData* data_;
};

}  // namespace taper
