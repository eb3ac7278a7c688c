// Whole files in and out of memory.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "taper/exporter/io/array.h"

namespace taper::io {

using Bytes = std::vector<std::byte>;

/// The file's bytes. Throws FileError: "weights.npy: cannot open: No such file or directory", or
/// what else it is if it is no file. A pipe is refused and not waited for.
Bytes read_file(const std::filesystem::path& path);

/// Writes a new file and gives it the target's name when it is complete and on the disk. A reader
/// never sees half a file; an error, a kill or a power failure leaves the old one. The next write
/// of a target removes what a killed program left beside it ("<target>.<number>.partial"). A
/// symbolic link stays, and the file that it leads to is replaced. What is no file (a device, a
/// pipe) is written to. Throws FileError: "x.npy: cannot write: No space left on device".
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
/// The same of pieces one behind the other.
void write_file(const std::filesystem::path& path,
                std::span<const std::span<const std::byte>> pieces);
/// Takes the bytes of a file, in order.
using Sink = std::function<void(std::span<const std::byte>)>;
/// The same of a file whose first `head_bytes` follow from the rest: `head`, which is asked for
/// when `rest` gave all bytes behind it. If the target is a device or a pipe, `rest` gives them
/// twice.
void write_file(const std::filesystem::path& path, size_t head_bytes,
                const std::function<Bytes()>& head, const std::function<void(const Sink&)>& rest);

}  // namespace taper::io
