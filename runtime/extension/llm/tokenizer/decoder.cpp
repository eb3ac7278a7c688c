#include "taper/runtime/extension/llm/tokenizer/decoder.h"

#include <utility>

#include "taper/runtime/extension/llm/tokenizer/normalizer.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"
#include "taper/runtime/extension/llm/tokenizer/vocabulary.h"

namespace taper::llm {
namespace {

using Kind = DecoderStep::Kind;

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  if (what.empty()) return;
  size_t at = 0;
  while ((at = text.find(what, at)) != std::string::npos) {
    text.replace(at, what.size(), by);
    at += by.size();
  }
}

// What BERT's tokenizer does to English text.
void clean_up(std::string& text) {
  static constexpr std::pair<const char*, const char*> rules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, by] : rules) replace_all(text, what, by);
}

}  // namespace

DecoderStream::DecoderStream(const std::vector<DecoderStep>& steps)
    : steps_(&steps), states_(steps.size()) {
  bool fused = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    states_[i].fused = fused;
    fused = fused || steps[i].kind == Kind::fuse;
  }
}

std::string DecoderStream::push(std::string token) {
  feed(0, std::move(token));
  return take_complete();
}

std::string DecoderStream::finish() {
  end(0);
  std::string rest = take_complete();
  if (!bytes_.empty()) rest += valid_utf8(bytes_);
  *this = DecoderStream(*steps_);
  return rest;
}

std::string DecoderStream::take_complete() {
  size_t done = 0;
  std::string text;
  while (done < bytes_.size()) {
    const int length = first_character(std::string_view(bytes_).substr(done));
    if (length == 0) break;
    if (length > 0) {
      text.append(bytes_, done, static_cast<size_t>(length));
    } else {
      text += "\uFFFD";
    }
    done += static_cast<size_t>(length > 0 ? length : -length);
  }
  bytes_.erase(0, done);
  return text;
}

void DecoderStream::feed(size_t step, std::string token) {
  if (step == steps_->size()) {
    bytes_ += token;
    return;
  }
  switch ((*steps_)[step].kind) {
    case Kind::byte_level:
      return byte_level(step, token);
    case Kind::byte_fallback:
      return byte_fallback(step, std::move(token));
    case Kind::fuse:
      return feed(step + 1, std::move(token));
    case Kind::strip:
      return strip(step, std::move(token));
    case Kind::replace:
      return replace(step, std::move(token));
    case Kind::metaspace:
      return metaspace(step, token);
    case Kind::word_piece:
      return word_piece(step, std::move(token));
    case Kind::suffix:
      return suffix(step, std::move(token));
    case Kind::words:
      if (std::exchange(states_[step].started, true)) token.insert(0, " ");
      return feed(step + 1, std::move(token));
  }
}

// No more tokens will come to this step.
void DecoderStream::end(size_t step) {
  if (step == steps_->size()) return;
  State& state = states_[step];
  const DecoderStep& now = (*steps_)[step];
  if (now.kind == Kind::byte_fallback) release_bytes(step);
  if (now.kind == Kind::suffix && state.started) {
    replace_all(state.held, now.text, "");
    feed(step + 1, std::move(state.held));
  }
  if (now.kind == Kind::strip && state.fused) {
    size_t stop = now.stop;
    while (stop-- > 0 && !now.text.empty() && ends_with(state.held, now.text)) {
      state.held.resize(state.held.size() - now.text.size());
    }
    feed(step + 1, std::move(state.held));
  }
  end(step + 1);
}

void DecoderStream::byte_level(size_t step, std::string_view token) {
  std::string bytes;
  for (size_t at = 0; at < token.size(); at += character_length(token[at])) {
    const int byte = byte_of_visible(character_at(token, at));
    if (byte < 0) return feed(step + 1, std::string(token));
    bytes += static_cast<char>(byte);
  }
  feed(step + 1, std::move(bytes));
}

void DecoderStream::byte_fallback(size_t step, std::string token) {
  const int byte = byte_of_token(token);
  if (byte >= 0) {
    states_[step].held += static_cast<char>(byte);
    return;
  }
  release_bytes(step);
  feed(step + 1, std::move(token));
}

void DecoderStream::release_bytes(size_t step) {
  std::string bytes = std::exchange(states_[step].held, {});
  if (bytes.empty()) return;
  if (is_valid_utf8(bytes)) return feed(step + 1, std::move(bytes));
  for (size_t i = 0; i < bytes.size(); ++i) feed(step + 1, "\uFFFD");
}

void DecoderStream::strip(size_t step, std::string token) {
  const DecoderStep& now = (*steps_)[step];
  State& state = states_[step];
  if (now.text.empty()) return feed(step + 1, std::move(token));
  if (!state.fused) state.started = false;
  if (!state.started) {
    if (!state.fused) state.count = 0;
    size_t at = 0;
    while (state.count < now.start && starts_with(std::string_view(token).substr(at), now.text)) {
      at += now.text.size();
      ++state.count;
    }
    token.erase(0, at);
    state.started = !token.empty() || state.count == now.start;
  }
  if (state.fused) {
    // what may be stripped from the end has to wait
    state.held += token;
    const size_t most = now.stop * now.text.size();
    if (state.held.size() <= most) return;
    const size_t ready = state.held.size() - most;
    token = state.held.substr(0, ready);
    state.held.erase(0, ready);
  } else {
    for (size_t i = 0; i < now.stop && ends_with(token, now.text); ++i) {
      token.resize(token.size() - now.text.size());
    }
  }
  feed(step + 1, std::move(token));
}

void DecoderStream::replace(size_t step, std::string token) {
  const DecoderStep& now = (*steps_)[step];
  if (!is_valid_utf8(token)) return feed(step + 1, std::move(token));  // a part of a character
  std::string made;
  size_t done = 0;
  Regex::Search search(*now.pattern, token);
  for (Range match; search.next(match); done = match.end) {
    made.append(token, done, match.begin - done);
    made += now.by;
  }
  made.append(token, done, std::string::npos);
  feed(step + 1, std::move(made));
}

void DecoderStream::metaspace(size_t step, std::string_view token) {
  const DecoderStep& now = (*steps_)[step];
  const bool first = !std::exchange(states_[step].started, true);
  std::string text(token);
  if (first && now.drops_first && starts_with(token, now.text)) text.erase(0, now.text.size());
  replace_all(text, now.text, " ");
  feed(step + 1, std::move(text));
}

void DecoderStream::word_piece(size_t step, std::string token) {
  const DecoderStep& now = (*steps_)[step];
  if (std::exchange(states_[step].started, true)) {
    if (starts_with(token, now.text)) {
      token.erase(0, now.text.size());
    } else {
      token.insert(0, " ");
    }
  }
  if (now.cleans_up) clean_up(token);
  feed(step + 1, std::move(token));
}

void DecoderStream::suffix(size_t step, std::string token) {
  State& state = states_[step];
  if (std::exchange(state.started, true)) {
    replace_all(state.held, (*steps_)[step].text, " ");
    feed(step + 1, std::move(state.held));
  }
  state.held = std::move(token);
}

}  // namespace taper::llm
