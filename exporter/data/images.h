// Pictures with labels: MNIST, CIFAR-10.
#pragma once
#include <filesystem>
#include <vector>

#include "taper/exporter/data/dataset.h"
#include "taper/exporter/io/array.h"

namespace taper::data {

/// Labelled pictures, held in memory as bytes. A batch is (f32 (batch, channels, height, width),
/// i64 (batch)); pixels are divided by 255. The functions below give a changed copy, which shares
/// the pixels:
///
///   auto train = data::cifar10("data_batch_1.bin")
///                    .random_crop(4)
///                    .random_flip()
///                    .normalize({.49, .48, .45}, {.25, .24, .26});
class Images : public Dataset {
 public:
  /// `pixels`: u8 (count, channels, height, width); `labels`: i64 (count). Throws
  /// std::invalid_argument if they do not fit.
  Images(io::Array pixels, io::Array labels);

  int64_t size() const override { return end_ - begin_; }
  Batch batch(std::span<const int64_t> examples, uint64_t seed) const override;

  /// (x / 255 - mean) / deviation, one number a channel.
  Images normalize(std::vector<float> mean, std::vector<float> deviation) const;
  /// Moves each picture by up to `padding` pixels in x and y. New pixels are 0 before
  /// normalisation.
  Images random_crop(int64_t padding) const;
  /// Mirrors each picture with probability 1/2.
  Images random_flip() const;
  /// Examples [begin, end), renumbered from 0.
  Images range(int64_t begin, int64_t end) const;

  int64_t channels() const { return pixels_.sizes[1]; }
  int64_t height() const { return pixels_.sizes[2]; }
  int64_t width() const { return pixels_.sizes[3]; }
  int64_t label(int64_t example) const;

 private:
  struct Placement {
    int64_t dy = 0, dx = 0;
    bool flip = false;
  };
  void write_picture(int64_t example, Placement placement, float* out) const;

  io::Array pixels_, labels_;
  int64_t begin_ = 0, end_ = 0, padding_ = 0;
  bool flip_ = false;
  std::vector<float> mean_, deviation_;
};

/// MNIST or a set of the same form: `<stem>-images-idx3-ubyte[.gz]` and
/// `<stem>-labels-idx1-ubyte[.gz]`, 28 x 28 grey. `data::mnist("mnist/train")`,
/// `data::mnist("mnist/t10k")`. Throws io::FileError for missing or damaged files.
Images mnist(const std::filesystem::path& stem);

/// CIFAR-10 in its binary form, plain or gzip: records of a label byte and 3 x 32 x 32 bytes, red
/// plane first. Several files are joined. Throws io::FileError.
Images cifar10(const std::vector<std::filesystem::path>& files);
inline Images cifar10(const std::filesystem::path& file) { return cifar10(std::vector{file}); }

}  // namespace taper::data
