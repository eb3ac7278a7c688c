#include "taper/exporter/io/gzip.h"

#include <zlib.h>

namespace taper::io {
namespace {

struct Inflater {
  z_stream stream{};
  explicit Inflater(const std::string& name) {
    if (inflateInit2(&stream, 15 + 16) != Z_OK)
      throw FileError(name + ": cannot start zlib");  // 15 + 16: gzip headers only
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

}  // namespace

Bytes gunzip(std::span<const std::byte> compressed, const std::string& name, size_t limit) {
  // zlib counts in unsigned int; larger streams would need a loop over the input as well.
  if (compressed.size() > 0xffffffffu)
    throw FileError(name + ": gzip streams above 4 GiB are not read");
  Inflater inflater(name);
  z_stream& z = inflater.stream;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(compressed.data()));
  z.avail_in = static_cast<uInt>(compressed.size());
  Bytes out;
  constexpr size_t piece = size_t{1} << 18;
  for (;;) {
    const size_t used = out.size();
    out.resize(used + piece);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    z.avail_out = static_cast<uInt>(piece);
    const int status = inflate(&z, Z_NO_FLUSH);
    out.resize(used + piece - z.avail_out);
    if (out.size() > limit)
      throw FileError(name + ": expands to more than the limit of " + std::to_string(limit) +
                      " bytes");
    if (status == Z_STREAM_END) {
      if (z.avail_in == 0) return out;
      inflateReset(&z);  // the next member of the stream
    } else if (status == Z_BUF_ERROR || (status == Z_OK && z.avail_in == 0 && z.avail_out != 0)) {
      throw FileError(name + ": the gzip stream ends too early; the file is cut short");
    } else if (status != Z_OK) {
      throw FileError(name + ": damaged gzip stream" +
                      (z.msg ? std::string(" (") + z.msg + ")" : ""));
    }
  }
}

}  // namespace taper::io
