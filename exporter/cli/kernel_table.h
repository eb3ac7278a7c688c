// A program as C++ sources that a firmware links: the table of exactly the kernels that it needs,
// and the file as an array.
#pragma once
#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "taper/exporter/target/target.h"

namespace taper::cli {

/// Bytes of memory, enough for 32-bit and 64-bit processors.
struct LinkedMethod {
  std::string name;
  size_t bytes;  ///< what Method::create takes
};

/// What the sources say about a program.
struct LinkedProgram {
  std::string file_name;         ///< "lenet.taper", for comments
  std::string name;              ///< "lenet": what the variables begin with; an identifier
  std::vector<std::byte> bytes;  ///< of the file, without its tests
  std::vector<const Kernel*>
      kernels;          ///< every record that a loader may take, in the order of preference
  std::string outside;  ///< a constant that lies in another file; "": there is none
  size_t load_bytes, session_bytes;  ///< metadata of Program::load, memory of Session::create
  std::vector<LinkedMethod> methods;
};

/// Reads and verifies a program. Takes the kernels of every machine that `target` means, for other
/// CPUs than this one's, too. `name` may be empty: the file's name then. Throws ExportError,
/// also if `name` is no identifier.
LinkedProgram linked_program(const std::filesystem::path& path, const std::string& name,
                             const Target& target);

/// `<name>_kernels`: links with the kernel libraries, whose other kernels the linker drops.
void write_kernel_table(std::ostream& out, const LinkedProgram& program);
/// `<name>_taper`: the file's bytes, aligned to 64, without its tests.
void write_array(std::ostream& out, const LinkedProgram& program);
/// The declarations of both, and the memory that the program takes.
void write_header(std::ostream& out, const LinkedProgram& program);

}  // namespace taper::cli
