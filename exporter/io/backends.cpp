#include "taper/exporter/io/backends.h"

#include <algorithm>

namespace taper::io {
namespace {

std::vector<Backend*>& all() {
  static std::vector<Backend*> list;
  return list;
}

}  // namespace

void add_backend(Backend& backend) {
  if (std::ranges::find(all(), &backend) == all().end()) all().push_back(&backend);
}

const std::vector<Backend*>& backends() { return all(); }

}  // namespace taper::io
