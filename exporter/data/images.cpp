#include "taper/exporter/data/images.h"

#include <cstring>
#include <stdexcept>

#include "taper/exporter/io/gzip.h"

namespace taper::data {
namespace {

std::filesystem::path plain_or_gzip(const std::filesystem::path& path) {
  std::filesystem::path compressed = path;
  compressed += ".gz";
  return !std::filesystem::exists(path) && std::filesystem::exists(compressed) ? compressed : path;
}

/// An IDX file of unsigned bytes: two zero bytes, type 8, the rank, that many big-endian u32
/// extents, the elements.
io::Array read_idx(const std::filesystem::path& path, size_t rank) {
  const io::Bytes file = io::read_file_or_gzip(path);
  const size_t header = 4 + 4 * rank;
  const std::byte magic[] = {std::byte{0}, std::byte{0}, std::byte{8},
                             static_cast<std::byte>(rank)};
  if (file.size() < header || std::memcmp(file.data(), magic, sizeof magic) != 0)
    throw io::FileError(path.string() + ": not an IDX file of bytes with " + std::to_string(rank) +
                        " dimensions");
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < rank; ++d) {
    uint32_t size;
    std::memcpy(&size, file.data() + 4 + 4 * d, 4);
    sizes.push_back(__builtin_bswap32(size));
  }
  const int64_t expected = io::checked_numel(sizes, 1);
  if (expected < 0 || file.size() - header != static_cast<size_t>(expected))
    throw io::FileError(path.string() + ": holds " + std::to_string(file.size() - header) +
                        " elements, its header announces " + std::to_string(expected));
  io::Array array = io::Array::zeros(DType::u8, std::move(sizes));
  array.assign(std::span(file).subspan(header));
  return array;
}

io::Array labels_of(std::span<const uint8_t> bytes) {
  io::Array labels = io::Array::zeros(DType::i64, {static_cast<int64_t>(bytes.size())});
  std::copy(bytes.begin(), bytes.end(), labels.values<int64_t>().begin());
  return labels;
}

}  // namespace

Images::Images(io::Array pixels, io::Array labels)
    : pixels_(std::move(pixels)), labels_(std::move(labels)) {
  const bool fit = pixels_.dtype == DType::u8 && pixels_.sizes.size() == 4 &&
                   labels_.dtype == DType::i64 && labels_.sizes.size() == 1 &&
                   pixels_.sizes[0] == labels_.sizes[0];
  if (!fit)
    throw std::invalid_argument("data::Images: pixels " + pixels_.describe() + " and labels " +
                                labels_.describe() +
                                " are not u8 (count, channels, height, width) and i64 (count)");
  end_ = labels_.sizes[0];
  mean_.assign(static_cast<size_t>(channels()), 0.f);
  deviation_.assign(static_cast<size_t>(channels()), 1.f);
}

Images Images::normalize(std::vector<float> mean, std::vector<float> deviation) const {
  const auto expected = static_cast<size_t>(channels());
  if (mean.size() != expected || deviation.size() != expected)
    throw std::invalid_argument("data::Images::normalize: the pictures have " +
                                std::to_string(expected) + " channels, mean and deviation " +
                                std::to_string(mean.size()) + " and " +
                                std::to_string(deviation.size()));
  Images changed = *this;
  changed.mean_ = std::move(mean), changed.deviation_ = std::move(deviation);
  return changed;
}

Images Images::random_crop(int64_t padding) const {
  if (padding < 0)
    throw std::invalid_argument("data::Images::random_crop: padding " + std::to_string(padding) +
                                " is negative");
  Images changed = *this;
  changed.padding_ = padding;
  return changed;
}

Images Images::random_flip() const {
  Images changed = *this;
  changed.flip_ = true;
  return changed;
}

Images Images::range(int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > size())
    throw std::out_of_range("data::Images::range: [" + std::to_string(begin) + ", " +
                            std::to_string(end) + ") is outside [0, " + std::to_string(size()) +
                            ")");
  Images changed = *this;
  changed.begin_ = begin_ + begin, changed.end_ = begin_ + end;
  return changed;
}

int64_t Images::label(int64_t example) const {
  if (example < 0 || example >= size())
    throw std::out_of_range("data::Images: example " + std::to_string(example) +
                            " is outside [0, " + std::to_string(size()) + ")");
  return labels_.values<int64_t>()[static_cast<size_t>(begin_ + example)];
}

void Images::write_picture(int64_t example, Placement place, float* out) const {
  const int64_t h = height(), w = width();
  const uint8_t* picture =
      pixels_.values<uint8_t>().data() + (begin_ + example) * channels() * h * w;
  for (int64_t c = 0; c < channels(); ++c) {
    const float mean = mean_[static_cast<size_t>(c)],
                deviation = deviation_[static_cast<size_t>(c)];
    for (int64_t y = 0; y < h; ++y) {
      const int64_t from_y = y + place.dy;
      for (int64_t x = 0; x < w; ++x) {
        const int64_t from_x = (place.flip ? w - 1 - x : x) + place.dx;
        const bool inside = from_y >= 0 && from_y < h && from_x >= 0 && from_x < w;
        const float value =
            inside ? static_cast<float>(picture[(c * h + from_y) * w + from_x]) / 255.f : 0.f;
        *out++ = (value - mean) / deviation;
      }
    }
  }
}

Batch Images::batch(std::span<const int64_t> examples, uint64_t seed) const {
  const auto count = static_cast<int64_t>(examples.size());
  const int64_t picture = channels() * height() * width();
  Tensor inputs = Tensor::empty({count, channels(), height(), width()}),
         targets = Tensor::empty({count}, DType::i64);
  float* out = inputs.data<float>();
  int64_t* label_out = targets.data<int64_t>();
  for (const int64_t example : examples) {
    *label_out++ = label(example);
    Random random(seed, static_cast<uint64_t>(example));
    Placement place;
    if (padding_ > 0)
      place.dy = random.below(2 * padding_ + 1) - padding_,
      place.dx = random.below(2 * padding_ + 1) - padding_;
    if (flip_) place.flip = random.below(2) == 1;
    write_picture(example, place, out);
    out += picture;
  }
  return {inputs, targets};
}

Images mnist(const std::filesystem::path& stem) {
  std::filesystem::path pictures = stem, names = stem;
  io::Array pixels = read_idx(plain_or_gzip(pictures += "-images-idx3-ubyte"), 3);
  const io::Array labels = read_idx(plain_or_gzip(names += "-labels-idx1-ubyte"), 1);
  if (pixels.sizes[0] != labels.sizes[0])
    throw io::FileError(stem.string() + ": " + std::to_string(pixels.sizes[0]) + " images and " +
                        std::to_string(labels.sizes[0]) + " labels");
  pixels.sizes.insert(pixels.sizes.begin() + 1, 1);  // one channel
  return Images(pixels, labels_of(labels.values<uint8_t>()));
}

Images cifar10(const std::vector<std::filesystem::path>& files) {
  constexpr int64_t channels = 3, side = 32, classes = 10;
  constexpr size_t picture = channels * side * side, record = 1 + picture;
  std::vector<uint8_t> labels;
  io::Bytes pixels;
  for (const std::filesystem::path& path : files) {
    const io::Bytes file = io::read_file_or_gzip(path);
    if (file.empty() || file.size() % record != 0)
      throw io::FileError(path.string() + ": " + std::to_string(file.size()) +
                          " bytes are no whole number of CIFAR-10 records of 3073");
    for (size_t at = 0; at < file.size(); at += record) {
      const auto label = std::to_integer<uint8_t>(file[at]);
      if (label >= classes)
        throw io::FileError(path.string() + ": label " + std::to_string(label) +
                            " is not in 0..9; CIFAR-100 files are not read");
      labels.push_back(label);
      const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at + 1);
      pixels.insert(pixels.end(), begin, begin + static_cast<std::ptrdiff_t>(picture));
    }
  }
  io::Array array =
      io::Array::zeros(DType::u8, {static_cast<int64_t>(labels.size()), channels, side, side});
  array.assign(pixels);
  return Images(array, labels_of(labels));
}

}  // namespace taper::data
