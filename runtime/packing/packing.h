/// Packs constants once, in the layouts that a program's kernels read faster than dense elements,
/// such as the weights of products. Without it these kernels pack in every call. Results have the
/// same bits either way.
///
///   TAPER_LET(dense, Program::load(file, kernels, metadata));
///   alignas(64) static std::byte workspace[…], packed[…];
///   const size_t bytes = find_packed(dense, workspace);   // 0: nothing is worth packing
///   TAPER_TRY(pack(dense, workspace, packed));
///   LoadOptions options;
///   options.packed = packed;
///   TAPER_LET(program, Program::load(file, kernels, metadata, options));
///
/// A constant is packed if all that reads it is kernels which want the same layout of it, through
/// the same view. One that something reads in another way too stays dense, so that no weight is in
/// memory twice: a packed constant is no longer read where it lies in the file.
#pragma once
#include "taper/runtime/program/program.h"

namespace taper {

/// What the functions below work in: 16 bytes for each constant.
size_t packing_workspace(const Program& program);

/// Finds the constants to pack, and gives the bytes that `pack` takes. 0: there are none.
/// `workspace`: packing_workspace(program) bytes, at a multiple of 16; less is as if there were no
/// constants.
size_t find_packed(const Program& program, Span<std::byte> workspace);

/// Packs what `find_packed` left in `workspace` into `memory`, at a multiple of 64. The memory is
/// what `LoadOptions::packed` takes, also of other loads of this program with the same kernels. It
/// may be stored: it contains no address.
///
/// Errors: out_of_memory, invalid_argument (the memory's place).
Error pack(const Program& program, Span<std::byte> workspace, Span<std::byte> memory);

/// Whether `memory` has the form that `pack` would give it: of this program and its kernels, with
/// each constant in its layout and place. Looks at no element. For memory from outside, such as a
/// file; `LoadOptions::packed` is trusted.
bool holds_packed(const Program& program, Span<std::byte> workspace, Span<const std::byte> memory);

}  // namespace taper
