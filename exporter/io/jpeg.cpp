#include "taper/exporter/io/jpeg.h"

#include <turbojpeg.h>

#include <memory>

namespace taper::io {
namespace {

constexpr int64_t max_samples = int64_t{1} << 28;

struct Destroyer {
  void operator()(void* handle) const { tjDestroy(handle); }
};

}  // namespace

Array parse_jpeg(std::span<const std::byte> file, const std::string& name) {
  const std::unique_ptr<void, Destroyer> decoder(tjInitDecompress());
  const auto require = [&](bool holds) {
    if (!holds)
      throw FileError(name + ": not a JPEG picture that can be read: " +
                      (decoder ? tjGetErrorStr2(decoder.get()) : "out of memory"));
  };
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  require(decoder != nullptr && tjDecompressHeader3(decoder.get(), bytes, file.size(), &width,
                                                    &height, &subsampling, &colours) == 0);
  if (int64_t{width} * height * 3 > max_samples)
    throw FileError(name + ": the picture is " + std::to_string(width) + "x" +
                    std::to_string(height) + ", larger than 2^28 samples");
  Array picture = Array::zeros(DType::u8, {height, width, 3});
  require(tjDecompress2(decoder.get(), bytes, file.size(), picture.values<uint8_t>().data(), width,
                        0, height, TJPF_RGB, TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) == 0);
  return picture;
}

Array read_jpeg(const std::filesystem::path& path) {
  return parse_jpeg(read_file(path), path.string());
}

}  // namespace taper::io
