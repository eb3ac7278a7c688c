#include "taper/exporter/inspect/program_text.h"

#include <cstring>

#include "taper/exporter/io/format_text.h"
#include "taper/runtime/program/tables.h"

namespace taper::inspect {
namespace {

using format::Operation;

std::string text_or(const flatbuffers::String* text, const char* otherwise) {
  return text == nullptr ? otherwise : text->str();
}

std::string dtype_text(format::DType dtype) { return name_of(static_cast<DType>(dtype)); }

std::string literal_text(const format::Expression& e) {
  if (e.type() == format::NumberType::boolean) return e.literal() != 0 ? "true" : "false";
  if (e.type() == format::NumberType::i64) return std::to_string(e.literal());
  double real;
  const int64_t bits = e.literal();
  std::memcpy(&real, &bits, sizeof real);
  return std::to_string(real);
}

// The sign between two operands; nullptr if the operation is written as a call.
const char* infix(Operation o) {
  switch (o) {
    case Operation::add:
      return " + ";
    case Operation::subtract:
      return " - ";
    case Operation::multiply:
      return " * ";
    case Operation::floor_divide:
      return " // ";
    case Operation::modulo:
      return " % ";
    case Operation::true_divide:
      return " / ";
    case Operation::power:
      return " ** ";
    case Operation::equal:
      return " == ";
    case Operation::not_equal:
      return " != ";
    case Operation::less:
      return " < ";
    case Operation::less_equal:
      return " <= ";
    case Operation::logical_and:
      return " and ";
    case Operation::logical_or:
      return " or ";
    default:
      return nullptr;
  }
}

int operand_count(Operation o) {
  switch (o) {
    case Operation::minimum:
    case Operation::maximum:
      return 2;
    case Operation::select:
      return 3;
    default:
      return 1;
  }
}

// Limits the depth: an operand is written out each time it is used, so a hostile file could ask for
// endless text.
constexpr int deepest = 8;

std::string written(const MethodText& method, uint32_t index, int depth) {
  const format::Expression& e = *method.table().expressions()->Get(index);
  if (e.operation() == Operation::literal) return literal_text(e);
  if (e.operation() == Operation::symbol) return method.symbol(e.a());
  if (depth == deepest) return "…";
  const auto operand = [&](uint32_t i) {
    const std::string text = written(method, i, depth + 1);
    const format::Expression& inner = *method.table().expressions()->Get(i);
    const bool product_in_sum =
        inner.operation() == Operation::multiply && e.operation() == Operation::add;
    return infix(inner.operation()) != nullptr && !product_in_sum ? "(" + text + ")" : text;
  };
  if (const char* sign = infix(e.operation())) return operand(e.a()) + sign + operand(e.b());
  if (e.operation() == Operation::negate) return "-" + operand(e.a());
  std::string text = std::string(format::EnumNameOperation(e.operation())) + "(";
  const uint32_t operands[] = {e.a(), e.b(), e.c()};
  for (int i = 0; i < operand_count(e.operation()); ++i)
    text += (i > 0 ? ", " : "") + written(method, operands[i], depth + 1);
  return text + ")";
}

}  // namespace

MethodText::MethodText(const Program& program, index_t method)
    : program_(&program.table()),
      table_(program_->methods()->Get(static_cast<uint32_t>(method))),
      debug_(program.data().debug) {
  // the debug segment is only for people, so the loader does not compare its lists with those of
  // the method
  if (debug_ != nullptr && method < internal::count_of(debug_->methods()))
    method_debug_ = debug_->methods()->Get(static_cast<uint32_t>(method));
}

std::string MethodText::expression(uint32_t index) const { return written(*this, index, 0); }

std::string MethodText::symbol(uint32_t index) const {
  const auto* names = table_->symbol_names();
  if (index < internal::count_of(names)) return names->Get(index)->str();
  const std::string place = symbol_place(*table_->symbols()->Get(index));
  return place.empty() ? "s" + std::to_string(index) : place;
}

std::string MethodText::symbol_place(const format::Symbol& symbol) const {
  const auto input_name = [&] { return table_->inputs()->Get(symbol.first())->name()->str(); };
  if (symbol.source() == format::SymbolSource::input_extent)
    return input_name() + "." + std::to_string(symbol.second());
  return symbol.source() == format::SymbolSource::input_number ? input_name() : "";
}

std::string MethodText::symbol_source(const format::Symbol& symbol) const {
  const auto input_name = [&] { return table_->inputs()->Get(symbol.first())->name()->str(); };
  switch (symbol.source()) {
    case format::SymbolSource::input_extent:
      return "dimension " + std::to_string(symbol.second()) + " of " + input_name();
    case format::SymbolSource::input_number:
      return "the number " + input_name();
    case format::SymbolSource::element:
      return "element " + std::to_string(symbol.second()) + " of " + value_name(symbol.first());
    case format::SymbolSource::kernel_extent:
      return "counted by a kernel in " + value_name(symbol.first());
    case format::SymbolSource::loop_counter:
      return "a loop's counter";
  }
  return "";
}

std::string MethodText::type(uint32_t value) const {
  const format::Value& v = *table_->values()->Get(value);
  const format::Shape& shape = *table_->shapes()->Get(v.shape());
  std::string text = dtype_text(v.dtype()) + "[";
  for (uint32_t i = 0; i < shape.rank(); ++i)
    text += (i > 0 ? ", " : "") + expression(table_->dims()->Get(shape.dims_first() + i));
  return text + "]";
}

std::string MethodText::value_name(uint32_t value) const {
  if (method_debug_ == nullptr || value >= internal::count_of(method_debug_->value_names()))
    return "";
  return debug_text(method_debug_->value_names()->Get(value));
}

std::string MethodText::storage_path(const format::Value& value) const {
  switch (value.storage()) {
    case format::Storage::buffer:
      return "";
    case format::Storage::constant:
      return text_or(program_->constants()->Get(value.storage_index())->path(), "constant");
    case format::Storage::state:
      return program_->states()->Get(value.storage_index())->path()->str();
  }
  return "";
}

std::string MethodText::instruction_name(const format::Instruction& instruction) const {
  if (instruction.kind() == format::InstructionKind::kernel)
    return program_->kernels()->Get(instruction.target())->op()->str();
  if (instruction.kind() == format::InstructionKind::delegate)
    return program_->delegates()->Get(instruction.target())->backend()->str();
  return format::EnumNameInstructionKind(instruction.kind());
}

std::string MethodText::instruction_source(uint32_t index) const {
  const format::InstructionDebug* d = instruction_debug(index);
  return d == nullptr ? "" : debug_text(d->source());
}

std::string MethodText::instruction_module(uint32_t index) const {
  const format::InstructionDebug* d = instruction_debug(index);
  return d == nullptr ? "" : debug_text(d->module_path());
}

std::string MethodText::debug_text(uint32_t text) const {
  return text < internal::count_of(debug_->texts()) ? debug_->texts()->Get(text)->str() : "";
}

const format::InstructionDebug* MethodText::instruction_debug(uint32_t index) const {
  if (method_debug_ == nullptr || index >= internal::count_of(method_debug_->instructions()))
    return nullptr;
  return method_debug_->instructions()->Get(index);
}

const char* type_text(format::NumberType type) {
  return type == format::NumberType::i64   ? "integer"
         : type == format::NumberType::f64 ? "real"
                                           : "bool";
}

std::string type_text(format::DType dtype, const flatbuffers::Vector<int64_t>* sizes) {
  std::vector<std::string> parts;
  for (const int64_t n : internal::span_of(sizes)) parts.push_back(std::to_string(n));
  return dtype_text(dtype) + "[" + io::joined(parts) + "]";
}

std::string signature_text(const format::Kernel& kernel, int result_count) {
  std::vector<std::string> names;
  for (const uint8_t d : internal::span_of(kernel.dtypes()))
    names.push_back(d == 255 ? "-" : name_of(static_cast<DType>(d)));
  const auto results = names.end() - std::min<std::ptrdiff_t>(
                                         result_count, static_cast<std::ptrdiff_t>(names.size()));
  return kernel.op()->str() + "(" + io::joined({names.begin(), results}) + ") -> " +
         io::joined({results, names.end()});
}

}  // namespace taper::inspect
