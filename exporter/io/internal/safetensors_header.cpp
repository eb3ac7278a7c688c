#include "taper/exporter/io/internal/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>

#include "taper/exporter/io/array.h"

namespace taper::io::internal {
namespace {

struct Code {
  std::string_view text;
  DType dtype;
};
constexpr Code codes[] = {
    {"BOOL", DType::boolean},    {"U8", DType::u8},     {"I8", DType::i8},
    {"I16", DType::i16},         {"I32", DType::i32},   {"I64", DType::i64},
    {"F16", DType::f16},         {"BF16", DType::bf16}, {"F32", DType::f32},
    {"F64", DType::f64},         {"C64", DType::c64},   {"F8_E4M3", DType::f8_e4m3fn},
    {"F8_E5M2", DType::f8_e5m2}, {"U16", DType::u16},   {"U32", DType::u32},
    {"U64", DType::u64},
};

/// Receives the JSON piece by piece and accepts only what the format allows at that place, so that
/// a hostile header (deep nesting, millions of unrelated values, duplicate keys) stops at its first
/// wrong byte.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(Header& header, const std::string& file) : header_(header), file_(file) {}

  bool start_object(size_t) override {
    if (place_ == Place::file) return place_ = Place::names, true;
    if (place_ != Place::names || key_.empty()) return unexpected("an object");
    if (key_ == "__metadata__") return place_ = Place::metadata, true;
    header_.entries.push_back({});
    header_.entries.back().name = key_;
    place_ = Place::tensor;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    return true;
  }
  bool key(string_t& key) override {
    key_ = key;
    if (place_ == Place::names && !names_.insert(key).second)
      fail("'" + key + "' stands in the header twice");
    if (place_ == Place::metadata && header_.metadata.count(key) != 0)
      fail("metadata '" + key + "' stands in the header twice");
    if (place_ == Place::tensor) {
      bool* seen = key == "dtype"          ? &has_dtype_
                   : key == "shape"        ? &has_shape_
                   : key == "data_offsets" ? &has_offsets_
                                           : nullptr;
      if (seen == nullptr || *seen)
        fail(tensor() + (seen ? " has '" + key + "' twice" : " has an unknown key '" + key + "'"));
      *seen = true;
    }
    return true;
  }
  bool end_object() override {
    if (place_ == Place::tensor) {
      if (!has_dtype_ || !has_shape_ || !has_offsets_)
        fail(tensor() + " lacks dtype, shape or data_offsets");
      place_ = Place::names;
    } else if (place_ == Place::metadata) {
      place_ = Place::names;
    } else {
      place_ = Place::end;
    }
    return true;
  }
  bool start_array(size_t) override {
    if (place_ != Place::tensor || (key_ != "shape" && key_ != "data_offsets"))
      return unexpected("an array");
    place_ = Place::numbers;
    offsets_ = 0;
    return true;
  }
  bool end_array() override {
    if (key_ == "data_offsets" && offsets_ != 2)
      fail(tensor() + ": data_offsets must be [begin, end]");
    place_ = Place::tensor;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::numbers) return unexpected("a number");
    HeaderEntry& entry = header_.entries.back();
    if (key_ == "shape") {
      if (value > INT64_MAX || entry.shape.size() == max_dims)
        fail(tensor() + ": impossible shape");
      entry.shape.push_back(static_cast<int64_t>(value));
    } else {
      if (offsets_ == 2) fail(tensor() + ": data_offsets must be [begin, end]");
      (offsets_++ == 0 ? entry.begin : entry.end) = value;
    }
    return true;
  }
  bool string(string_t& value) override {
    if (place_ == Place::metadata) return header_.metadata[key_] = value, true;
    if (place_ != Place::tensor || key_ != "dtype") return unexpected("a string");
    for (const Code& code : codes)
      if (value == code.text) return header_.entries.back().dtype = code.dtype, true;
    fail(
        tensor() + ": Taper has no dtype '" + value +
        "'; it reads BOOL, U8, U16, U32, U64, I8, I16, I32, I64, F8_E4M3, F8_E5M2, F16, BF16, F32, "
        "F64 and C64");
  }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a fraction"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool null() override { return unexpected("null"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail("the header is not JSON at byte " + std::to_string(position));
  }

 private:
  enum class Place { file, names, metadata, tensor, numbers, end };
  static constexpr size_t max_dims = 64;

  [[noreturn]] void fail(const std::string& what) const { throw FileError(file_ + ": " + what); }
  bool unexpected(const char* what) const {
    fail(std::string("the header has ") + what + " in a wrong place, near '" + key_ + "'");
  }
  std::string tensor() const { return "tensor '" + header_.entries.back().name + "'"; }

  Header& header_;
  const std::string& file_;
  Place place_ = Place::file;
  std::string key_;
  std::set<std::string> names_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  int offsets_ = 0;
};

}  // namespace

Header parse_header(std::string_view json, const std::string& file) {
  Header header;
  HeaderReader reader(header, file);
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  return header;
}

std::string_view safetensors_name(DType dtype) {
  for (const Code& code : codes)
    if (code.dtype == dtype) return code.text;
  return "?";
}

}  // namespace taper::io::internal
