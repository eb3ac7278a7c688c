#include "taper/exporter/compare/compare.h"

#include <algorithm>
#include <cstring>

#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/tolerance.h"

namespace taper::compare {
namespace {

std::string outputs_text(const Run& run) {
  std::vector<std::string> texts;
  for (const Output& o : run.outputs)
    texts.push_back((o.name.empty() ? "" : o.name + ": ") + o.value.describe());
  return run.title + " has " + (texts.empty() ? "none" : io::joined(texts));
}

using OutputPairs = std::vector<std::pair<const Output*, const Output*>>;

/// Pairs the outputs that have the same name, or the same slot.
OutputPairs pairs_by(std::string Output::*key, const Run& want, const Run& got) {
  OutputPairs pairs;
  for (const Output& w : want.outputs)
    for (const Output& g : got.outputs)
      if (w.*key == g.*key) pairs.emplace_back(&w, &g);
  return pairs;
}

OutputPairs pairs_by_order(const Run& want, const Run& got) {
  OutputPairs pairs;
  if (want.outputs.size() == got.outputs.size())
    for (size_t i = 0; i < want.outputs.size(); ++i)
      pairs.emplace_back(&want.outputs[i], &got.outputs[i]);
  return pairs;
}

bool knows_slots(const Run& run) {
  return std::ranges::none_of(run.outputs, [](const Output& o) { return o.slot.empty(); });
}

OutputPairs output_pairs(const Run& want, const Run& got) {
  OutputPairs pairs;
  if (want.by_name || got.by_name)
    pairs = pairs_by(&Output::name, want, got);
  else if (knows_slots(want) && knows_slots(got))
    pairs = pairs_by(&Output::slot, want, got);
  else
    pairs = pairs_by_order(want, got);
  const bool none_expected = want.outputs.empty() && got.outputs.empty();
  if (pairs.empty() && !none_expected)
    throw ExportError("the outputs cannot be matched: " + outputs_text(want) + "; " +
                      outputs_text(got));
  return pairs;
}

double usual_tolerance(const Run& want, const Run& got) {
  io::Tolerance tolerance;
  for (const Run* run : {&want, &got}) {
    for (const Result& r : run->nodes) tolerance.add(r.value.dtype);
    for (const Output& o : run->outputs) tolerance.add(o.value.dtype);
  }
  return tolerance.value();
}

/// Of the outputs; for runs without outputs, of the nodes.
double scale_of(const Run& run) {
  io::Scale scale;
  for (const Output& o : run.outputs) scale.add(o.value);
  if (run.outputs.empty())
    for (const Result& r : run.nodes) scale.add(r.value);
  return scale.value();
}

/// The same image with channels first.
io::Array channels_first(const io::Array& image) {
  const int64_t n = image.sizes[0], plane = image.sizes[1] * image.sizes[2], c = image.sizes[3];
  io::Array turned = io::Array::zeros(image.dtype, {n, c, image.sizes[1], image.sizes[2]});
  const size_t bytes = size_bytes(image.dtype);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t p = 0; p < plane; ++p)
      for (int64_t k = 0; k < c; ++k)
        std::memcpy(turned.bytes.get() + static_cast<size_t>((i * c + k) * plane + p) * bytes,
                    image.bytes.get() + static_cast<size_t>((i * plane + p) * c + k) * bytes,
                    bytes);
  return turned;
}

/// In one order of dimensions.
Measure measure_results(const Result& got, const Result& want) {
  if (!are_turned(got, want)) return measure(got.value, want.value);
  if (got.has_channels_last) return measure(channels_first(got.value), want.value);
  return measure(got.value, channels_first(want.value));
}

bool is_worse(const Pair& a, const Pair& b) {
  const auto differs = [](const Pair& p) { return !p.measure.difference.other.empty(); };
  if (differs(a) != differs(b)) return differs(a);
  return a.measure.difference.relative > b.measure.difference.relative;
}

}  // namespace

const Pair* Comparison::first_beyond() const {
  const auto at =
      std::ranges::find_if(nodes, [&](const Pair& p) { return p.measure.exceeds(tolerance); });
  return at == nodes.end() ? nullptr : &*at;
}

std::vector<const Pair*> Comparison::worst(size_t count) const {
  std::vector<const Pair*> list;
  for (const Pair& p : nodes) list.push_back(&p);
  std::ranges::stable_sort(list, [](const Pair* a, const Pair* b) { return is_worse(*a, *b); });
  list.resize(std::min(list.size(), count));
  return list;
}

bool Comparison::fits() const {
  const std::vector<Pair>& decisive = outputs.empty() ? nodes : outputs;
  return std::ranges::none_of(decisive,
                              [&](const Pair& p) { return p.measure.exceeds(tolerance); });
}

Comparison compare(const Run& want, const Run& got, std::optional<double> tolerance) {
  Comparison c{want.title, got.title, tolerance.value_or(usual_tolerance(want, got)), {}, {}, 0, 0};
  for (const auto& [w, g] : output_pairs(want, got)) {
    std::string name = w->name.empty() ? g->name : w->name;
    if (name.empty()) name = w->slot.empty() ? "output" : w->slot;
    c.outputs.push_back({nullptr, nullptr, name, measure(g->value, w->value)});
  }
  const std::vector<const Result*> counterparts = match(want, got);
  for (size_t i = 0; i < counterparts.size(); ++i)
    if (const Result* other = counterparts[i])
      c.nodes.push_back(
          {&want.nodes[i], other, want.nodes[i].name, measure_results(*other, want.nodes[i])});
  const double scale = scale_of(want);
  for (std::vector<Pair>* pairs : {&c.outputs, &c.nodes})
    for (Pair& p : *pairs) p.measure.scale = scale;
  // a recording with names has no order
  if (want.by_name) std::ranges::stable_sort(c.nodes, {}, &Pair::got);
  const int pairs = static_cast<int>(c.nodes.size());
  c.only_in_want = static_cast<int>(want.nodes.size()) - pairs;
  c.only_in_got = static_cast<int>(got.nodes.size()) - pairs;
  return c;
}

}  // namespace taper::compare
