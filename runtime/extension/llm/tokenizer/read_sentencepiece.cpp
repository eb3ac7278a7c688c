// The file of SentencePiece is a message of Protocol Buffers (sentencepiece_model.proto):
//   1  pieces: 1 text, 2 score, 3 type     2  training: 3 model type, 40 to 42 ids of <unk>, <s>,
//   </s> 3  normalizer: 2 character map, 3 adds a prefix, 4 removes extra blanks
#include <cstring>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/pieces.h"

namespace taper::llm {
namespace {

// The fields of one message, in the order of the file.
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  // Goes to the next field. False at the end.
  bool next() {
    if (bytes_.empty()) return false;
    const uint64_t tag = varint();
    field_ = tag >> 3;
    switch (tag & 7) {
      case 0:
        number_ = varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        text_ = take(varint());
        break;
      case 5: {
        const std::string_view four = take(4);
        std::memcpy(&real_, four.data(), 4);
        break;
      }
      default:
        refuse("this is not a SentencePiece model: a field has the wire type " +
               std::to_string(tag & 7));
    }
    return true;
  }

  uint64_t field() const { return field_; }
  uint64_t number() const { return number_; }
  std::string_view text() const { return text_; }
  float real() const { return real_; }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    refuse("this is not a SentencePiece model: a number is too long");
  }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size()) refuse("the SentencePiece model ends too early");
    const std::string_view taken = bytes_.substr(0, static_cast<size_t>(count));
    bytes_.remove_prefix(static_cast<size_t>(count));
    return taken;
  }

  std::string_view bytes_, text_;
  uint64_t field_ = 0, number_ = 0;
  float real_ = 0;
};

void read_piece(std::string_view bytes, Pieces& pieces) {
  std::string token;
  float score = 0;
  auto type = static_cast<int32_t>(PieceType::normal);
  for (Message message(bytes); message.next();) {
    if (message.field() == 1) token = message.text();
    if (message.field() == 2) score = message.real();
    if (message.field() == 3) type = static_cast<int32_t>(message.number());
  }
  pieces.tokens.push_back(std::move(token));
  pieces.scores.push_back(score);
  pieces.types.push_back(type);
}

void read_training(std::string_view bytes, Pieces& pieces) {
  for (Message message(bytes); message.next();) {
    const auto id = static_cast<TokenId>(message.number());
    switch (message.field()) {
      case 3:
        if (id != 1 && id != 2) leave_out("SentencePiece models of words and characters");
        pieces.unigram = id == 1;
        break;
      case 40:
        pieces.unknown = id;
        break;
      case 41:
        pieces.begin = id;
        break;
      case 42:
        pieces.end = id;
        break;
      default:
        break;
    }
  }
}

void read_normalizer(std::string_view bytes, Pieces& pieces) {
  for (Message message(bytes); message.next();) {
    if (message.field() == 2) pieces.character_map = message.text();
    if (message.field() == 3) pieces.adds_prefix = message.number() != 0;
    if (message.field() == 4) pieces.removes_extra_blanks = message.number() != 0;
  }
}

TokenId known_or_none(TokenId id, const Pieces& pieces) {
  return id >= 0 && static_cast<size_t>(id) < pieces.tokens.size() ? id : no_token;
}

}  // namespace

Pipeline read_sentencepiece(std::string_view bytes) {
  Pieces pieces;
  // what a file leaves out has the defaults of the format
  pieces.unigram = true;
  pieces.removes_extra_blanks = true;
  pieces.unknown = 0;
  pieces.begin = 1;
  pieces.end = 2;
  for (Message message(bytes); message.next();) {
    if (message.field() == 1) read_piece(message.text(), pieces);
    if (message.field() == 2) read_training(message.text(), pieces);
    if (message.field() == 3) read_normalizer(message.text(), pieces);
  }
  pieces.unknown = known_or_none(pieces.unknown, pieces);
  pieces.begin = known_or_none(pieces.begin, pieces);
  pieces.end = known_or_none(pieces.end, pieces);
  return pipeline_of(std::move(pieces));
}

}  // namespace taper::llm
