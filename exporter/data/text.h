// A text as a sequence of tokens or of characters, for language models.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "taper/exporter/data/dataset.h"

namespace taper::data {

/// Every window of `context` bytes of a text, and the same window one byte later as the target: a
/// batch is (i64 (batch, context), i64 (batch, context)). Tokens number the different bytes of the
/// text in rising order.
class Characters : public Dataset {
 public:
  /// Throws std::invalid_argument if the text is not longer than the context.
  Characters(std::string_view text, int64_t context);
  /// Reads the text from a file. Throws io::FileError.
  static Characters from_file(const std::filesystem::path& path, int64_t context);

  int64_t size() const override { return static_cast<int64_t>(tokens_.size()) - context_; }
  Batch batch(std::span<const int64_t> examples, uint64_t seed) const override;

  /// The part of the text from `begin` to `end`, fractions in [0, 1], with the vocabulary of the
  /// whole.
  Characters part(double begin, double end) const;

  int64_t vocabulary_size() const { return static_cast<int64_t>(vocabulary_.size()); }
  /// Throws std::invalid_argument for a byte that the text does not have.
  std::vector<int64_t> encode(std::string_view text) const;
  /// Throws std::out_of_range for a token outside [0, vocabulary_size()).
  std::string decode(std::span<const int64_t> tokens) const;

 private:
  std::vector<uint8_t> tokens_;
  std::string vocabulary_;
  int64_t context_;
};

/// Tokens of any tokenizer, cut into windows of `context` of them: a batch is as that of
/// Characters. What is left at the end is no whole window.
class Tokens : public Dataset {
 public:
  /// Throws std::invalid_argument if there is no whole window.
  Tokens(std::vector<int64_t> tokens, int64_t context);

  int64_t size() const override { return (static_cast<int64_t>(tokens_->size()) - 1) / context_; }
  Batch batch(std::span<const int64_t> examples, uint64_t seed) const override;

 private:
  std::shared_ptr<const std::vector<int64_t>> tokens_;
  int64_t context_;
};

}  // namespace taper::data
