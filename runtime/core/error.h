#pragma once
#include <cstdint>

namespace taper {

/// What went wrong. `ErrorInfo` says where. The caller must look at it; `Error::ok` is success.
enum class [[nodiscard]] Error : uint8_t{
    ok = 0,
    invalid_program =
        1,  ///< the file is damaged, hostile, or of a version this runtime cannot know
    invalid_argument =
        2,  ///< the caller gave a tensor, name, size or value that the program does not take
    missing_kernel = 3,  ///< no linked kernel fits an instruction (operator, dtypes, CPU features)
    out_of_memory = 4,   ///< a region that the caller handed over is too small
    not_supported = 5,  ///< a valid program asks for something this build of the runtime leaves out
    limit_reached = 6,  ///< `execute` stopped at a limit: steps, or a cancel flag
    device_failed = 7,  ///< a queue reported an error, possibly of an earlier instruction
    busy = 8,  ///< another thread is inside the object, or what was made from it is not closed;
               ///< nothing was done
};

/// The enumerator's name: "out_of_memory".
const char* name_of(Error error);

/// Where and why something failed. Plain data, kept by the object that returned the `Error`. Texts
/// are static; `source` and `subject` lie in the bytes of the program.
struct ErrorInfo {
  Error error = Error::ok;
  int32_t instruction = -1;  ///< index in the method's instruction list, -1: not in one
  int32_t argument =
      -1;  ///< index among the operator's arguments then results, -1: none in particular
  const char* message = nullptr;  ///< with up to three `{}` for `values`, or `{dtype}` for one that
                                  ///< is a DType; nullptr in builds without texts
  int64_t values[3] = {0, 0, 0};
  const char* source =
      nullptr;  ///< what the program's debug table says of the instruction, nullptr without one
  const char* subject = nullptr;  ///< what the message is about: an operator, an input, a backend;
                                  ///< nullptr: nothing by name
};

}  // namespace taper

/// Host builds keep the texts of errors. A build for a microcontroller leaves them out, so they
/// cost nothing there.
#ifdef TAPER_NO_MESSAGES
#define TAPER_TEXT(text) nullptr
#else
#define TAPER_TEXT(text) text
#endif

/// Returns the error of an expression of type `Error`, if it is one.
#define TAPER_TRY(...)                                                                         \
  do {                                                                                         \
    if (const ::taper::Error taper_error_ = (__VA_ARGS__); taper_error_ != ::taper::Error::ok) \
      return taper_error_;                                                                     \
  } while (0)

/// Returns `Error::error` unless the condition holds.
#define TAPER_REQUIRE(condition, error)             \
  do {                                              \
    if (!(condition)) return ::taper::Error::error; \
  } while (0)
