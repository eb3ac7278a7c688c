#include "taper/exporter/io/npy.h"

#include <cstring>
#include <string_view>

#include "taper/exporter/io/internal/strided_copy.h"

namespace taper::io {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr size_t max_header = size_t{1} << 20;
constexpr size_t max_dims = 64;  // NumPy 2's own limit

struct Code {
  std::string_view text;
  DType dtype;
};
constexpr Code codes[] = {
    {"|b1", DType::boolean}, {"|u1", DType::u8},  {"|i1", DType::i8},  {"<i2", DType::i16},
    {"<i4", DType::i32},     {"<i8", DType::i64}, {"<f2", DType::f16}, {"<f4", DType::f32},
    {"<f8", DType::f64},     {"<u2", DType::u16}, {"<u4", DType::u32}, {"<u8", DType::u64},
    {"<c8", DType::c64},
};

/// The header: a Python dict literal with the keys descr, fortran_order and shape, each once, in
/// any order.
struct Header {
  DType dtype = DType::f32;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Header parse() {
    Header header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !descr)
        header.dtype = dtype(), descr = true;
      else if (key == "fortran_order" && !order)
        header.fortran_order = boolean(), order = true;
      else if (key == "shape" && !shape)
        header.shape = tuple(), shape = true;
      else
        fail("unexpected key '" + std::string(key) + "' in the header");
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    blanks();
    if (at_ != text_.size()) fail("text behind the header's dict");
    if (!descr || !order || !shape) fail("the header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw FileError(name_ + ": " + what); }
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c))
      fail(std::string("expected '") + c + "' in the header at byte " + std::to_string(at_));
  }
  bool take(std::string_view word) {
    blanks();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::string_view string() {
    blanks();
    const char quote = take('\'') ? '\'' : (expect('"'), '"');
    const size_t begin = at_, end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("a string in the header has no end");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  bool boolean() {
    if (take(std::string_view("True"))) return true;
    if (!take(std::string_view("False"))) fail("fortran_order is neither True nor False");
    return false;
  }
  DType dtype() {
    if (take('[')) fail("structured arrays are not read; save one field at a time");
    const std::string_view descr = string();
    for (const Code& code : codes)
      if (descr == code.text ||
          (code.text[0] == '|' && descr.size() == 3 && descr.substr(1) == code.text.substr(1)))
        return code.dtype;
    if (!descr.empty() && descr[0] == '>')
      fail("'" + std::string(descr) + "' is big-endian; save with array.astype('<" +
           std::string(descr.substr(1)) + "')");
    if (descr == "|O") fail("pickled Python objects are not read");
    fail("Taper has no dtype '" + std::string(descr) +
         "'; it reads b1, u1, u2, u4, u8, i1, i2, i4, i8, f2, f4, f8 and c8");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> sizes;
    expect('(');
    while (!take(')')) {
      sizes.push_back(integer());
      if (sizes.size() > max_dims) fail("more than " + std::to_string(max_dims) + " dimensions");
      if (!take(',')) {
        if (sizes.size() == 1) fail("shape is not a tuple");  // (3) is a number in Python
        expect(')');
        break;
      }
    }
    return sizes;
  }
  int64_t integer() {
    blanks();
    int64_t value = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value))
        fail("an extent does not fit into 64 bits");
    if (at_ == begin) fail("shape holds something that is not a number");
    return value;
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

/// The strides of column-major elements.
std::vector<int64_t> fortran_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = 1; d < sizes.size(); ++d) strides[d] = strides[d - 1] * sizes[d - 1];
  return strides;
}

}  // namespace

Array parse_npy(std::span<const std::byte> file, const std::string& name) {
  const auto* text = reinterpret_cast<const char*>(file.data());
  if (file.size() < 10 || std::string_view(text, 6) != magic)
    throw FileError(name + ": not an .npy file");
  const auto byte = [&](size_t i) { return std::to_integer<size_t>(file[i]); };
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    throw FileError(name + ": .npy format version " + std::to_string(version) +
                    " is not known; 1 to 3 are");
  const size_t prefix = version == 1 ? 10 : 12;
  if (file.size() < prefix) throw FileError(name + ": ends inside the header");
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > max_header || length > file.size() - prefix)
    throw FileError(name + ": ends inside the header");

  const Header header = HeaderParser(std::string_view(text + prefix, length), name).parse();
  const std::span<const std::byte> data = file.subspan(prefix + length);
  const int64_t numel = checked_numel(header.shape, size_bytes(header.dtype));
  const size_t expected =
      static_cast<size_t>(numel) * static_cast<size_t>(size_bytes(header.dtype));
  if (numel < 0 || data.size() != expected)
    throw FileError(
        name + ": cut short or damaged: it holds " + std::to_string(data.size()) +
        " bytes of data, and its header says " +
        (numel < 0 ? std::string("more than 63 bits can count") : std::to_string(expected)));
  Array array = Array::zeros(header.dtype, header.shape);
  if (header.fortran_order && numel > 0)
    internal::copy_strided(data.data(), 0, fortran_strides(header.shape), array);
  else
    array.assign(data);
  array.settle_bools();
  return array;
}

Array read_npy(const std::filesystem::path& path) {
  return parse_npy(read_file(path), path.string());
}

Bytes format_npy(const Array& array) {
  std::string_view descr;
  for (const Code& code : codes)
    if (code.dtype == array.dtype) descr = code.text;
  if (descr.empty())
    throw FileError(std::string("NumPy has no dtype ") + name_of(array.dtype) +
                    ": convert to f32, or write safetensors");
  std::string header = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
  for (const int64_t size : array.sizes) header += std::to_string(size) + ", ";
  if (array.sizes.size() > 1)
    header.resize(header.size() - 2);
  else if (array.sizes.size() == 1)
    header.resize(header.size() - 1);  // (3,)
  header += "), }";
  constexpr size_t prefix = 10, alignment = 64;
  header.append(alignment - 1 - (prefix + header.size()) % alignment, ' ');
  header += '\n';

  Bytes file(prefix + header.size() + array.size_bytes());
  std::memcpy(file.data(), magic.data(), magic.size());
  file[6] = std::byte{1}, file[7] = std::byte{0};
  file[8] = static_cast<std::byte>(header.size() & 0xff),
  file[9] = static_cast<std::byte>(header.size() >> 8);
  std::memcpy(file.data() + prefix, header.data(), header.size());
  if (array.size_bytes() > 0)
    std::memcpy(file.data() + prefix + header.size(), array.bytes.get(), array.size_bytes());
  return file;
}

void write_npy(const std::filesystem::path& path, const Array& array) {
  write_file(path, format_npy(array));
}

}  // namespace taper::io
