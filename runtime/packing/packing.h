/// Packs constants once, in layouts that a program's kernels read faster than dense elements. An
/// example: the weights of matrix products. Without this, these kernels pack in every call. Results
/// have the same bits either way.
///
///   TAPER_LET(dense, Program::load(file, kernels, metadata));
///   alignas(64) static std::byte workspace[…], packed[…];
///   const size_t bytes = find_packed(dense, workspace);   // 0: nothing is worth packing
///   TAPER_TRY(pack(dense, workspace, packed));
///   LoadOptions options;
///   options.packed = packed;
///   TAPER_LET(program, Program::load(file, kernels, metadata, options));
///
/// A constant is packed if only kernels read it, and if all of them want the same layout through
/// the same view. Any other constant stays dense. So no weight is in memory twice: a packed
/// constant is no longer read from the file.
#pragma once
#include "taper/runtime/platform/threads.h"
#include "taper/runtime/program/program.h"

namespace taper {

/// Takes packed constants piece by piece, for example to a file. So they need not be in memory
/// twice.
struct PackedPieces {
  void* user = nullptr;
  /// Memory for the next piece of this thread, at a multiple of 64. nullptr: there is none.
  std::byte* (*memory)(void* user, size_t bytes) = nullptr;
  /// The piece is packed. It belongs at `place` of what `pack` would write to memory, which has
  /// zeros where no piece lies. Threads call this at the same time. False: stop.
  bool (*write)(void* user, size_t place, Span<const std::byte> piece) = nullptr;
};

/// Options of `pack`.
struct PackOptions {
  const Threads* threads = nullptr;  ///< they share the work; nullptr: one thread packs all
  /// nullptr: `pack` writes to its memory. Otherwise that memory only has to hold the table of the
  /// constants (packed_table_bytes).
  const PackedPieces* pieces = nullptr;
  /// Called when a part of a constant is packed, on the thread that packed it: `pack` does not read
  /// these dense elements again. So their pages can be given back while others are packed.
  void (*done)(void* user, Span<const std::byte> dense) = nullptr;
  void* user = nullptr;
};

/// The bytes of workspace for the functions below: at most 24 for each constant.
size_t packing_workspace(const Program& program);

/// Finds the constants to pack, and returns the bytes that `pack` needs. 0: there are none.
/// `workspace`: packing_workspace(program) bytes, at a multiple of 16. If it is smaller, the
/// function returns 0.
size_t find_packed(const Program& program, Span<std::byte> workspace);

/// The table of the packed constants, at the start of what `pack` writes.
size_t packed_table_bytes(const Program& program);

/// Packs the constants that `find_packed` noted in `workspace` into `memory`, which starts at a
/// multiple of 64. Give this memory to `LoadOptions::packed`; it also serves other loads of this
/// program with the same kernels. You may store it: it contains no address.
///
/// Errors: out_of_memory; invalid_argument if `memory` does not start at a multiple of 64;
/// limit_reached if `PackedPieces::write` returned false.
Error pack(const Program& program, Span<std::byte> workspace, Span<std::byte> memory,
           const PackOptions& options = {});

/// Whether `memory` has the form that `pack` would give it: for this program and its kernels, with
/// each constant in its layout and place. Does not look at elements. Use it for memory from
/// outside, such as a file, because `LoadOptions::packed` is trusted.
bool holds_packed(const Program& program, Span<std::byte> workspace, Span<const std::byte> memory);

}  // namespace taper
