// A program as C++ sources for a firmware: a table of exactly the kernels that the program needs,
// and the file as an array.
#pragma once
#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "taper/exporter/target/target.h"

namespace taper::cli {

/// The memory of a method, enough for 32-bit and 64-bit processors.
struct LinkedMethod {
  std::string name;
  size_t bytes;  ///< for Method::create
};

/// The content of the sources.
struct LinkedProgram {
  std::string file_name;         ///< "lenet.taper", for comments
  std::string name;              ///< "lenet": the prefix of the variables; an identifier
  std::vector<std::byte> bytes;  ///< of the file, without its tests
  std::vector<const Kernel*>
      kernels;          ///< every record that a loader may choose, in order of preference
  std::string outside;  ///< a constant that lies in another file; "": none does
  size_t load_bytes, session_bytes;  ///< for Program::load (metadata) and Session::create
  std::vector<LinkedMethod> methods;
};

/// Reads and verifies a program. Takes the kernels for every machine that `target` includes, even
/// if this one has another CPU. If `name` is empty, the file's name is used. Throws ExportError,
/// also if `name` is not an identifier.
LinkedProgram linked_program(const std::filesystem::path& path, const std::string& name,
                             const Target& target);

/// Writes `<name>_kernels`. It is linked with the kernel libraries; the linker drops all other
/// kernels.
void write_kernel_table(std::ostream& out, const LinkedProgram& program);
/// Writes `<name>_taper`: the file's bytes without its tests, aligned to 64.
void write_array(std::ostream& out, const LinkedProgram& program);
/// Writes the declarations of both, and the sizes of the memory that the program needs.
void write_header(std::ostream& out, const LinkedProgram& program);

}  // namespace taper::cli
