// The tables of a program as text: types, symbolic numbers, names. It reads only verified programs.
#pragma once
#include <cstdint>
#include <string>

#include "taper/runtime/program/program.h"
#include "taper/schema/program_generated.h"

namespace taper::inspect {

/// The texts of one method: names of symbols, and the texts of its debug table.
class MethodText {
 public:
  MethodText(const Program& program, index_t method);

  const format::Method& table() const { return *table_; }

  /// An expression as text: "batch", "batch * 16 + 4".
  std::string expression(uint32_t index) const;
  /// The name of a symbol in the file. If the file has none, its place: "x.0".
  std::string symbol(uint32_t index) const;
  /// "x.0": dimension 0 of input x; "n": the number in input n. "" if no input sets the symbol.
  std::string symbol_place(const format::Symbol& symbol) const;
  /// "dimension 0 of images": where a symbol gets its value.
  std::string symbol_source(const format::Symbol& symbol) const;
  /// "f32[batch, 10]".
  std::string type(uint32_t value) const;
  /// The value's name in the model's graph; "" if the program does not have it.
  std::string value_name(uint32_t value) const;
  /// The path of the constant or state that a value lies in; "" for a buffer.
  std::string storage_path(const format::Value& value) const;

  /// The operation of an instruction: "mm", "copy", "xnnpack".
  std::string instruction_name(const format::Instruction& instruction) const;
  /// "lenet.cpp:14", "conv1", or "".
  std::string instruction_source(uint32_t index) const;
  std::string instruction_module(uint32_t index) const;

 private:
  std::string debug_text(uint32_t text) const;
  const format::InstructionDebug* instruction_debug(uint32_t index) const;

  const format::Program* program_;
  const format::Method* table_;
  const format::Debug* debug_;
  const format::MethodDebug* method_debug_ = nullptr;
};

/// The kind of number that an input takes: "integer", "real" or "bool".
const char* type_text(format::NumberType type);
/// "f32[6, 1, 5, 5]".
std::string type_text(format::DType dtype, const flatbuffers::Vector<int64_t>* sizes);
/// The dtypes that a program needs of a kernel: "mm(f32, f32) -> f32". Absent arguments are "-".
std::string signature_text(const format::Kernel& kernel, int result_count);

}  // namespace taper::inspect
