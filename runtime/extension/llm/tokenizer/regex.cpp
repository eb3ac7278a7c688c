#include "taper/runtime/extension/llm/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>

#include "taper/runtime/extension/llm/failure.h"

namespace taper::llm {
namespace {

// A hostile pattern ends here instead of backtracking for years.
constexpr uint32_t match_limit = 1'000'000, heap_limit_kib = 16 * 1024;

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

Regex::Regex(const std::string& pattern) {
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, nullptr);
  if (compiled == nullptr) {
    refuse("the regular expression \"" + pattern + "\" is wrong at byte " + std::to_string(at) +
           ": " + message_of(code));
  }
  code_ = std::shared_ptr<const void>(
      compiled, [](void* freed) { pcre2_code_free(static_cast<pcre2_code*>(freed)); });
  // without a compiler for this processor, PCRE2 interprets the pattern
  static_cast<void>(pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE));

  pcre2_match_context* limits = pcre2_match_context_create(nullptr);
  if (limits == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(limits, match_limit);
  pcre2_set_heap_limit(limits, heap_limit_kib);
  limits_ = std::shared_ptr<const void>(limits, [](void* freed) {
    pcre2_match_context_free(static_cast<pcre2_match_context*>(freed));
  });
}

void Regex::Search::Freed::operator()(void* data) const {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(data));
}

Regex::Search::Search(const Regex& regex, std::string_view text)
    : regex_(&regex), text_(text), data_(pcre2_match_data_create(1, nullptr)) {
  if (data_ == nullptr) throw std::bad_alloc();
}

int Regex::Search::match(size_t from) {
  const auto run = [&](uint32_t options) {
    // PCRE2 keeps no state in a context; its interface lacks the const
    return pcre2_match(static_cast<const pcre2_code*>(regex_->code_.get()),
                       reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), from,
                       PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | options,
                       static_cast<pcre2_match_data*>(data_.get()),
                       static_cast<pcre2_match_context*>(const_cast<void*>(regex_->limits_.get())));
  };
  const int found = run(0);
  return found == PCRE2_ERROR_JIT_STACKLIMIT ? run(PCRE2_NO_JIT) : found;
}

bool Regex::Search::next(Range& match_range) {
  if (from_ >= text_.size() || match(from_) < 0) return false;
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(static_cast<pcre2_match_data*>(data_.get()));
  if (ends[1] <= ends[0] || ends[0] < from_) return false;  // \K may give such a range
  match_range = {ends[0], ends[1]};
  from_ = ends[1];
  return true;
}

std::string quoted_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool plain = static_cast<unsigned char>(c) >= 0x80 || (c >= '0' && c <= '9') ||
                       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!plain) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace taper::llm
