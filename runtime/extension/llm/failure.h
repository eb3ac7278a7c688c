#pragma once
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "taper/runtime/core/result.h"

namespace taper::llm {

/// What readers of tokenizers, templates and grammars throw. It never leaves the library: the
/// public functions catch it with `guarded`.
struct Failure {
  Error error;
  std::string why;
};

[[noreturn]] inline void refuse(std::string why) {
  throw Failure{Error::invalid_argument, std::move(why)};
}
[[noreturn]] inline void leave_out(std::string why) {
  throw Failure{Error::not_supported, std::move(why)};
}

/// Calls `make`, and turns what it throws into an error and a text.
template <class T, class Make>
Result<T> guarded(std::string* message, Make make) {
  Failure failure{Error::invalid_argument, ""};
  try {
    return make();
  } catch (Failure& thrown) {
    failure = std::move(thrown);
  } catch (const std::bad_alloc&) {
    failure = {Error::out_of_memory, "there is not enough memory"};
  } catch (const std::exception& thrown) {
    failure.why = thrown.what();
  }
  if (message != nullptr) *message = std::move(failure.why);
  return failure.error;
}

}  // namespace taper::llm
