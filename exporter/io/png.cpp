#include "taper/exporter/io/png.h"

#include <png.h>

#include <csetjmp>
#include <cstring>

namespace taper::io {
namespace {

constexpr uint64_t max_samples = uint64_t{1} << 28;

struct Source {
  const std::byte* at;
  const std::byte* end;
};

/// libpng reports errors by longjmp, which must not cross C++ objects with destructors: the
/// functions between a setjmp and libpng hold plain data only.
struct Failure {
  std::jmp_buf jump;
  char message[128];
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto* failure = static_cast<Failure*>(png_get_error_ptr(png));
  std::strncpy(failure->message, text, sizeof(failure->message) - 1);
  std::longjmp(failure->jump, 1);
}
void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (static_cast<size_t>(source->end - source->at) < count)
    png_error(png, "the file is cut short");
  std::memcpy(to, source->at, count);
  source->at += count;
}
void append_bytes(png_structp png, png_bytep from, size_t count) {
  auto* out = static_cast<Bytes*>(png_get_io_ptr(png));
  const auto* begin = reinterpret_cast<const std::byte*>(from);
  out->insert(out->end(), begin, begin + count);
}
void no_flush(png_structp) {}

struct Extents {
  uint32_t height, width, channels;
};

/// Everything up to the first row: sets the conversions to 8 bit samples. False after an error.
bool read_extents(png_structp png, png_infop info, Failure& failure, Extents& out) {
  if (setjmp(failure.jump) != 0) return false;
  png_read_info(png, info);
  png_set_expand(png);  // palette → RGB, low depths → 8 bit, tRNS → alpha
  png_set_scale_16(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  out = {png_get_image_height(png, info), png_get_image_width(png, info),
         png_get_channels(png, info)};
  return true;
}
bool read_rows(png_structp png, png_bytep* rows, Failure& failure) {
  if (setjmp(failure.jump) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}
bool write_rows(png_structp png, png_infop info, png_bytep* rows, Extents e, Failure& failure) {
  if (setjmp(failure.jump) != 0) return false;
  constexpr int colour[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, e.width, e.height, 8, colour[e.channels], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_rows(png, info, rows);
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  return true;
}

std::vector<png_bytep> row_pointers(std::byte* data, Extents e) {
  std::vector<png_bytep> rows(e.height);
  for (size_t y = 0; y < rows.size(); ++y)
    rows[y] = reinterpret_cast<png_bytep>(data + y * e.width * e.channels);
  return rows;
}

struct Reader {
  Failure failure{};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
  png_infop info = png_create_info_struct(png);
  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};
struct Writer {
  Failure failure{};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
  png_infop info = png_create_info_struct(png);
  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { png_destroy_write_struct(&png, &info); }
};

}  // namespace

bool has_png() { return true; }

Array parse_png(std::span<const std::byte> file, const std::string& name) {
  if (file.size() < 8 || png_sig_cmp(reinterpret_cast<png_const_bytep>(file.data()), 0, 8) != 0)
    throw FileError(name + ": not a PNG file");
  Reader reader;
  Source source{file.data(), file.data() + file.size()};
  png_set_read_fn(reader.png, &source, read_bytes);
  Extents e{};
  if (!read_extents(reader.png, reader.info, reader.failure, e))
    throw FileError(name + ": damaged PNG: " + reader.failure.message);
  if (uint64_t{e.height} * e.width * e.channels > max_samples)
    throw FileError(name + ": the picture has more than 2^28 samples");
  Array picture = Array::zeros(DType::u8, {e.height, e.width, e.channels});
  std::vector<png_bytep> rows = row_pointers(picture.bytes.get(), e);
  if (!read_rows(reader.png, rows.data(), reader.failure))
    throw FileError(name + ": damaged PNG: " + reader.failure.message);
  return picture;
}

Array read_png(const std::filesystem::path& path) {
  return parse_png(read_file(path), path.string());
}

void write_png(const std::filesystem::path& path, const Array& picture) {
  const size_t rank = picture.sizes.size();
  const bool shape = (rank == 2 || (rank == 3 && picture.sizes[2] >= 1 && picture.sizes[2] <= 4)) &&
                     picture.numel() > 0;
  if (picture.dtype != DType::u8 || !shape)
    throw FileError(path.string() +
                    ": a PNG is written from u8 (height, width, 1 to 4 channels), not from " +
                    picture.describe());
  const Extents e{static_cast<uint32_t>(picture.sizes[0]), static_cast<uint32_t>(picture.sizes[1]),
                  rank == 3 ? static_cast<uint32_t>(picture.sizes[2]) : 1};
  Writer writer;
  Bytes file;
  png_set_write_fn(writer.png, &file, append_bytes, no_flush);
  std::vector<png_bytep> rows = row_pointers(picture.bytes.get(), e);
  if (!write_rows(writer.png, writer.info, rows.data(), e, writer.failure))
    throw FileError(path.string() + ": libpng: " + writer.failure.message);
  write_file(path, file);
}

}  // namespace taper::io
