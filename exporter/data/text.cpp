#include "taper/exporter/data/text.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "taper/exporter/io/file.h"

namespace taper::data {
namespace {

/// Windows of `context` tokens, and the same one token later. `place_of` gives the place of the
/// first token of an example.
template <class T, class PlaceOf>
Batch windows(const std::vector<T>& tokens, int64_t context, std::span<const int64_t> examples,
              int64_t size, const char* name, const PlaceOf& place_of) {
  const auto count = static_cast<int64_t>(examples.size());
  Tensor inputs = Tensor::empty({count, context}, DType::i64),
         targets = Tensor::empty({count, context}, DType::i64);
  int64_t *in = inputs.data<int64_t>(), *out = targets.data<int64_t>();
  for (const int64_t example : examples) {
    if (example < 0 || example >= size)
      throw std::out_of_range("data::" + std::string(name) + ": window " + std::to_string(example) +
                              " is outside [0, " + std::to_string(size) + ")");
    const T* window = tokens.data() + place_of(example);
    in = std::copy(window, window + context, in);
    out = std::copy(window + 1, window + 1 + context, out);
  }
  return {inputs, targets};
}

}  // namespace

Characters::Characters(std::string_view text, int64_t context) : context_(context) {
  if (context < 1 || static_cast<int64_t>(text.size()) <= context)
    throw std::invalid_argument("data::Characters: a text of " + std::to_string(text.size()) +
                                " bytes has no window of " + std::to_string(context) +
                                " bytes and one more");
  std::array<bool, 256> seen{};
  for (const char c : text) seen[static_cast<uint8_t>(c)] = true;
  for (int byte = 0; byte < 256; ++byte)
    if (seen[static_cast<size_t>(byte)]) vocabulary_ += static_cast<char>(byte);
  const std::vector<int64_t> tokens = encode(text);
  tokens_.assign(tokens.begin(), tokens.end());
}

Characters Characters::from_file(const std::filesystem::path& path, int64_t context) {
  const io::Bytes file = io::read_file(path);
  return Characters({reinterpret_cast<const char*>(file.data()), file.size()}, context);
}

Batch Characters::batch(std::span<const int64_t> examples, uint64_t) const {
  return windows(tokens_, context_, examples, size(), "Characters", [](int64_t i) { return i; });
}

Characters Characters::part(double begin, double end) const {
  const auto n = static_cast<double>(tokens_.size());
  const auto from = static_cast<std::ptrdiff_t>(n * begin),
             to = static_cast<std::ptrdiff_t>(n * end);
  if (!(begin >= 0 && end <= 1) || to - from <= context_)
    throw std::invalid_argument("data::Characters::part: this part has no whole window");
  Characters changed = *this;
  changed.tokens_.assign(tokens_.begin() + from, tokens_.begin() + to);
  return changed;
}

std::vector<int64_t> Characters::encode(std::string_view text) const {
  std::array<int64_t, 256> token_of;
  token_of.fill(-1);
  for (size_t i = 0; i < vocabulary_.size(); ++i)
    token_of[static_cast<uint8_t>(vocabulary_[i])] = static_cast<int64_t>(i);
  std::vector<int64_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) {
    const int64_t token = token_of[static_cast<uint8_t>(c)];
    if (token < 0)
      throw std::invalid_argument("data::Characters: byte " +
                                  std::to_string(static_cast<uint8_t>(c)) +
                                  " does not occur in the text it was made from");
    tokens.push_back(token);
  }
  return tokens;
}

std::string Characters::decode(std::span<const int64_t> tokens) const {
  std::string text;
  for (const int64_t token : tokens) {
    if (token < 0 || token >= vocabulary_size())
      throw std::out_of_range("data::Characters: token " + std::to_string(token) +
                              " is outside [0, " + std::to_string(vocabulary_size()) + ")");
    text += vocabulary_[static_cast<size_t>(token)];
  }
  return text;
}

Tokens::Tokens(std::vector<int64_t> tokens, int64_t context)
    : tokens_(std::make_shared<const std::vector<int64_t>>(std::move(tokens))), context_(context) {
  if (context < 1 || static_cast<int64_t>(tokens_->size()) <= context)
    throw std::invalid_argument("data::Tokens: a text of " + std::to_string(tokens_->size()) +
                                " tokens has no window of " + std::to_string(context) +
                                " tokens and one more");
}

Batch Tokens::batch(std::span<const int64_t> examples, uint64_t) const {
  return windows(*tokens_, context_, examples, size(), "Tokens",
                 [this](int64_t i) { return i * context_; });
}

}  // namespace taper::data
