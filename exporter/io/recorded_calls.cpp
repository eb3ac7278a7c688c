#include "taper/exporter/io/recorded_calls.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "taper/exporter/io/element.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/io/tolerance.h"
#include "taper/kernels/float8.h"

namespace taper::io {
namespace {

bool are_equal(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

std::optional<int> index_of(std::string_view text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// "set0.input.1" → 0, "input", "1"
struct Key {
  int call;
  std::string_view role, which;
};
std::optional<Key> parse_key(std::string_view key) {
  constexpr std::string_view set = "set";
  const size_t first = key.find('.'), second = key.find('.', first + 1);
  if (!key.starts_with(set) || first == key.npos || second == key.npos) return std::nullopt;
  const auto call = index_of(key.substr(set.size(), first - set.size()));
  if (!call) return std::nullopt;
  return Key{*call, key.substr(first + 1, second - first - 1), key.substr(second + 1)};
}

bool is_integer(DType d) { return !is_floating(d) && !is_complex(d) && !is_float8(d); }

}  // namespace

std::vector<RecordedCall> read_recorded_calls(const std::filesystem::path& path,
                                              const std::string& model) {
  const SafeTensors file = read_safetensors(path);
  std::map<int, RecordedCall> calls;
  const std::string prefix = model.empty() ? "" : model + ".";
  const bool of_model = std::ranges::any_of(
      file.tensors, [&](const auto& entry) { return entry.first.starts_with(prefix); });
  for (const auto& [full_name, array] : file.tensors) {
    if (of_model && !full_name.starts_with(prefix)) continue;
    const std::string name = of_model ? full_name.substr(prefix.size()) : full_name;
    const auto key = parse_key(name);
    const auto index = key ? index_of(key->which) : std::nullopt;
    if (key && key->role == "buffer")
      calls[key->call].buffers[std::string(key->which)] = array;
    else if (index && key->role == "input")
      calls[key->call].inputs[*index] = array;
    else if (index && key->role == "output")
      calls[key->call].outputs[*index] = array;
    else if (index && key->role == "mutated")
      calls[key->call].mutated[*index] = array;
    else if (!model.empty() && !of_model && !recorded_models(path).empty())
      throw FileError(path.string() + " records no call of " + model + "; it records calls of " +
                      joined(recorded_models(path)));
    else
      throw FileError(path.string() + ": \"" + name +
                      "\" is no part of a recorded call; expected set<k>.input.<i>, "
                      "set<k>.output.<i>, set<k>.buffer.<path> or set<k>.mutated.<i>");
  }
  std::vector<RecordedCall> list;
  for (auto& [k, call] : calls) {
    if (k != static_cast<int>(list.size()))
      throw FileError(path.string() + ": call " + std::to_string(list.size()) + " is left out");
    list.push_back(std::move(call));
  }
  return list;
}

std::vector<std::string> recorded_models(const std::filesystem::path& path) {
  std::set<std::string> models;
  for (const auto& [key, array] : read_safetensors(path).tensors) {
    if (parse_key(key)) continue;
    for (size_t dot = key.find('.'); dot != key.npos; dot = key.find('.', dot + 1))
      if (parse_key(std::string_view(key).substr(dot + 1))) {
        models.insert(key.substr(0, dot));
        break;
      }
  }
  return {models.begin(), models.end()};
}

double scale_of(const RecordedCall& call) {
  Scale scale;
  for (const auto& [i, want] : call.outputs) scale.add(want);
  for (const auto& [i, want] : call.mutated) scale.add(want);
  for (const auto& [path, want] : call.buffers) scale.add(want);
  return scale.value();
}

Difference difference(const Array& got, const Array& want) {
  Difference d;
  if (got.dtype != want.dtype || got.sizes != want.sizes) {
    d.other = got.describe() + ", not " + want.describe();
    d.absolute = d.relative = std::numeric_limits<double>::infinity();
    return d;
  }
  double largest = 0;
  for (int64_t i = 0; i < want.numel(); ++i) {
    const std::complex<double> x = complex_element(got, i), y = complex_element(want, i);
    if (const double size = std::abs(y); std::isfinite(size)) largest = std::max(largest, size);
    const bool equal = are_equal(x.real(), y.real()) && are_equal(x.imag(), y.imag());
    double distance = equal ? 0 : std::abs(x - y);
    if (!std::isfinite(distance)) distance = std::numeric_limits<double>::infinity();
    if (!equal && distance == 0) distance = 1;  // integers that a double does not tell apart
    if (distance <= d.absolute) continue;
    d.absolute = distance, d.element = i;
  }
  if (d.absolute > 0) d.got = element_text(got, d.element), d.want = element_text(want, d.element);
  d.relative = d.absolute == 0                          ? 0
               : is_integer(want.dtype) || largest == 0 ? d.absolute
                                                        : d.absolute / largest;
  return d;
}

}  // namespace taper::io
