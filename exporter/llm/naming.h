#pragma once
#include <string>

#include "taper/exporter/base/error.h"
#include "taper/exporter/io/array.h"

namespace taper::llm {

/// Calls `make`. Its errors name the model, unless they name a file already.
template <class Make>
auto naming(const std::string& path, const Make& make) {
  try {
    return make();
  } catch (const io::FileError&) {
    throw;
  } catch (const ExportError& e) {
    throw ExportError(path + ": " + e.what());
  }
}

}  // namespace taper::llm
