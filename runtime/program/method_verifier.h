// What the verification of a method's tables (verify_method.cpp) and that of its instructions
// (verify_instructions.cpp) share.
#pragma once
#include "taper/runtime/program/tables.h"

namespace taper::internal {

/// Whether an index, or a range of them, lies in a table.
template <class T>
bool within(uint64_t index, Span<const T> s) {
  return index < static_cast<uint64_t>(s.size());
}
template <class T>
bool within(uint64_t first, uint64_t count, Span<const T> s) {
  return first <= static_cast<uint64_t>(s.size()) &&
         count <= static_cast<uint64_t>(s.size()) - first;
}

class MethodVerifier {
 public:
  MethodVerifier(const ProgramData& p, const format::Method& table, ErrorInfo& info)
      : p_(p), table_(table), m_(table), info_(info) {}

 protected:
#ifdef TAPER_NO_MESSAGES
  Error wrong(const char*, int64_t = 0, int64_t = 0) { return damaged(); }
  Error damaged();
#else
  Error wrong(const char* message, int64_t a = 0, int64_t b = 0);
#endif

  bool is_expression(uint64_t i, format::NumberType type) const {
    return within(i, m_.expressions) && m_.expressions[static_cast<index_t>(i)].type() == type;
  }
  bool is_size(uint64_t i) const { return is_expression(i, format::NumberType::i64); }

  const format::Input* input_at(uint64_t i) const {
    return i < static_cast<uint64_t>(count_of(table_.inputs()))
               ? table_.inputs()->Get(static_cast<uint32_t>(i))
               : nullptr;
  }

  bool is_io(const format::Value& v) const {
    return v.storage() == format::Storage::buffer &&
           m_.buffers[v.storage_index()].region() == format::Region::io;
  }

  // The buffers of inputs belong to the caller; constants to everybody.
  bool may_be_written(const format::Value& v) const {
    if (v.storage() == format::Storage::constant) return false;
    if (!is_io(v)) return true;
    for (index_t i = 0; i < count_of(table_.inputs()); ++i) {
      const uint32_t input = input_at(static_cast<uint64_t>(i))->value();
      if (input != none && m_.values[input].storage_index() == v.storage_index()) return false;
    }
    return true;
  }

  const ProgramData& p_;
  const format::Method& table_;
  const MethodView m_;
  ErrorInfo& info_;
};

/// Of a method whose other tables are in order.
Error verify_instructions(const MethodVerifier& method);

}  // namespace taper::internal
