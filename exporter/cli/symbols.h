// The names of the functions of this program.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace taper::cli {

class Symbols {
 public:
  /// Reads the table of the running program's file. It is empty on systems without ELF, and if the
  /// file is stripped.
  static Symbols of_this_program();

  bool empty() const { return functions_.empty(); }
  /// The C++ name of the function that `place` lies in; "" outside the program, as in libc.
  std::string name_of(const void* place) const;

 private:
  struct Function {
    uintptr_t begin, end;
    std::string name;  ///< as the linker writes it
  };
  std::vector<Function> functions_;  ///< by `begin`
};

}  // namespace taper::cli
