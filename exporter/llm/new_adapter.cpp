#include "taper/exporter/llm/new_adapter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "taper/exporter/base/error.h"
#include "taper/exporter/io/file.h"
#include "taper/runtime/extension/llm/adapter_file.h"

namespace taper::llm {

using eager::Tensor;

namespace {

std::string without_weight(const std::string& name) {
  const std::string end = ".weight";
  return name.ends_with(end) ? name.substr(0, name.size() - end.size()) : name;
}
/// "model.layers.0.self_attn.q_proj" → "q_proj"
std::string last_part(const std::string& module) {
  const size_t dot = module.rfind('.');
  return dot == std::string::npos ? module : module.substr(dot + 1);
}

}  // namespace

NewAdapter::NewAdapter(NewAdapterOptions options) : options_(std::move(options)) {
  if (options_.rank < 1)
    throw ExportError("an adapter has a rank from 1 on, not " + std::to_string(options_.rank));
  if (!std::isfinite(options_.alpha))
    throw ExportError("the adapter's alpha is " + std::to_string(options_.alpha));
}

LowRank NewAdapter::of(const std::string& name, const std::string& in_file, int64_t out,
                       int64_t in) {
  if (in_file.empty() || name.find("layers.") == std::string::npos) return {};
  const std::string module = without_weight(in_file), part = last_part(without_weight(name)),
                    part_in_file = last_part(module);
  parts_.insert(part == part_in_file ? part : part + " (" + part_in_file + ")");
  const auto is_target = [&](const std::string& target) {
    return target == part || target == part_in_file;
  };
  const auto target = std::ranges::find_if(options_.targets, is_target);
  if (target == options_.targets.end() && !options_.targets.empty()) return {};
  if (target != options_.targets.end()) used_.insert(*target);

  eager::Generator generator(options_.seed * 1000003 + pairs_.size());
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  Pair pair{module, (eager::rand({options_.rank, in}, DType::f32, generator) * 2 - 1) * bound,
            eager::zeros({out, options_.rank})};
  pair.down.set_requires_grad(), pair.up.set_requires_grad();
  pairs_.push_back(pair);
  return {pair.down, pair.up, nullptr, options_.alpha / static_cast<double>(options_.rank)};
}

void NewAdapter::require_all_used() const {
  std::string parts;
  for (const std::string& part : parts_) parts += (parts.empty() ? "" : ", ") + part;
  for (const std::string& target : options_.targets)
    if (!used_.contains(target))
      throw ExportError("no layer has a product called " + target + "; there are " + parts);
  if (pairs_.empty()) throw ExportError("the model has no layers with products to train");
}

std::vector<Tensor> NewAdapter::parameters() const {
  std::vector<Tensor> all;
  for (const Pair& pair : pairs_)
    for (const auto& [tensor, end] :
         {std::pair(pair.down, ".lora_A.weight"), std::pair(pair.up, ".lora_B.weight")}) {
      Tensor named = tensor;
      named.set_name(pair.name + end);
      all.push_back(named);
    }
  return all;
}

io::Asset NewAdapter::asset() const {
  AdapterFile file;
  file.alpha = options_.alpha, file.architecture = architecture_;
  return io::text_asset(trained_adapter_asset, "text/plain", trained_adapter_text(file));
}

void NewAdapter::write(const std::filesystem::path& path) const {
  AdapterFile file;
  file.alpha = options_.alpha, file.architecture = architecture_;
  for (const Pair& pair : pairs_)
    file.matrices.push_back({pair.name, options_.rank, pair.down.size(1).value(),
                             pair.up.size(0).value(), pair.down.data<float>(),
                             pair.up.data<float>()});
  if (const std::string why = write_adapter(path.string(), file); !why.empty())
    throw io::FileError(path.string() + ": " + why);
}

}  // namespace taper::llm
