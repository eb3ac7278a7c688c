#include "taper/runtime/core/error.h"

namespace taper {

const char* name_of(Error error) {
  switch (error) {
    case Error::ok:
      return "ok";
    case Error::invalid_program:
      return "invalid_program";
    case Error::invalid_argument:
      return "invalid_argument";
    case Error::missing_kernel:
      return "missing_kernel";
    case Error::out_of_memory:
      return "out_of_memory";
    case Error::not_supported:
      return "not_supported";
    case Error::limit_reached:
      return "limit_reached";
    case Error::device_failed:
      return "device_failed";
    case Error::busy:
      return "busy";
  }
  return "unknown";
}

}  // namespace taper
