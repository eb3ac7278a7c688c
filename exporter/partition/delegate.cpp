#include "taper/exporter/partition/delegate.h"

#include <algorithm>

#include "taper/exporter/base/error.h"
#include "taper/exporter/io/backends.h"

namespace taper::partition {
namespace {

std::vector<const Delegate*>& all() {
  static std::vector<const Delegate*> list;
  return list;
}

}  // namespace

void hand_in(const Delegate& delegate) {
  if (std::ranges::find(all(), &delegate) == all().end()) all().push_back(&delegate);
  if (Backend* backend = delegate.backend()) io::add_backend(*backend);
}

std::span<const Delegate* const> delegates() { return all(); }

const Delegate& find_delegate(std::string_view name) {
  std::string known;
  for (const Delegate* d : all()) {
    if (d->name() == name) return *d;
    known += (known.empty() ? "" : ", ") + d->name();
  }
  throw ExportError("there is no backend " + std::string(name) + " in this build; it has " +
                    (known.empty() ? "none" : known));
}

}  // namespace taper::partition
