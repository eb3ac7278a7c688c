#include "taper/exporter/llm/adapter_set.h"

#include <algorithm>
#include <set>

#include "taper/exporter/base/error.h"

namespace taper::llm {

using eager::Tensor;

AdapterSet::AdapterSet(const std::vector<NamedAdapter>& files) {
  std::set<std::string> names;
  for (const NamedAdapter& file : files) {
    if (file.name.empty() || !names.insert(file.name).second)
      throw ExportError("two adapters have the name `" + file.name + "`");
    adapters_.emplace_back(file.path);
  }
}

void AdapterSet::require_kind(bool is_gguf) const {
  for (const Adapter& adapter : adapters_) adapter.require_kind(is_gguf);
}

LowRank AdapterSet::of(const std::string& name, int64_t out, int64_t in) {
  std::vector<LowRank> parts;
  int64_t rank = 0;
  for (Adapter& adapter : adapters_) {
    parts.push_back(adapter.of(name, out, in));
    if (parts.back().down.defined()) rank = std::max(rank, parts.back().down.size(0).value());
  }
  if (rank == 0) return {};
  std::vector<Tensor> downs = {eager::zeros({rank, in})}, ups = {eager::zeros({out, rank})};
  for (const LowRank& part : parts) {
    const int64_t own = part.down.defined() ? part.down.size(0).value() : 0, rest = rank - own;
    const Tensor no_down = eager::zeros({rest, in}), no_up = eager::zeros({out, rest});
    downs.push_back(own == 0    ? no_down
                    : rest == 0 ? part.down
                                : eager::cat({part.down, no_down}, 0));
    ups.push_back(own == 0 ? no_up : rest == 0 ? part.up : eager::cat({part.up, no_up}, 1));
  }
  return {eager::stack(downs, 0), eager::stack(ups, 0), chosen_, 1};
}

void AdapterSet::require_all_used() const {
  for (const Adapter& adapter : adapters_) adapter.require_all_used();
}

}  // namespace taper::llm
