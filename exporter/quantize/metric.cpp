#include "taper/exporter/quantize/metric.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/quantize/static/output_errors.h"
#include "taper/exporter/quantize/static/run_examples.h"

namespace taper::quantize {
namespace {

using eager::Tensor;

constexpr std::array<const char*, 4> names = {"top-1", "perplexity", "cosine", "command"};
constexpr size_t most_kept_bytes = size_t{256} << 20;

/// The rows of the first output.
struct Rows {
  Rows(const ir::Interpretation& run, const char* metric) {
    const bool fits = !run.outputs.empty() && run.outputs[0].defined() &&
                      run.outputs[0].dtype() == DType::f32 && run.outputs[0].rank() > 0;
    if (!fits)
      throw ExportError(std::string(metric) + " needs a model whose first output is f32 scores");
    values = run.outputs[0].to_vector<float>();
    width = static_cast<size_t>(run.outputs[0].size(-1).value());
    count = width == 0 ? 0 : values.size() / width;
  }
  std::span<const float> row(size_t i) const { return std::span(values).subspan(i * width, width); }

  std::vector<float> values;
  size_t width, count;
};

/// -log softmax(row)[id]
double surprise(std::span<const float> row, size_t id) {
  const double peak = *std::ranges::max_element(row);
  double sum = 0;
  for (const float x : row) sum += std::exp(x - peak);
  return peak + std::log(sum) - row[id];
}

/// Adds up over calls.
class Sum {
 public:
  Sum(Metric metric, const std::vector<int64_t>& labels) : metric_(metric), labels_(labels) {}

  void add(const std::vector<Tensor>& inputs, const ir::Interpretation& run) {
    if (metric_ == Metric::top_1) add_answers(Rows(run, "top-1"));
    if (metric_ == Metric::perplexity) add_surprises(inputs, Rows(run, "perplexity"));
  }
  /// NaN without anything to measure.
  double value() const {
    const double mean = sum_ / static_cast<double>(count_);
    return metric_ == Metric::perplexity ? std::exp(mean) : mean;
  }

  void require_complete() const {
    if (metric_ == Metric::perplexity && count_ == 0)
      throw ExportError("perplexity: no text of the data has two tokens");
    if (metric_ == Metric::top_1 && count_ != labels_.size())
      throw ExportError("top-1: the data have " + std::to_string(labels_.size()) + " labels for " +
                        std::to_string(count_) + " rows of the first output");
  }

 private:
  void add_answers(const Rows& scores) {
    for (size_t i = 0; i < scores.count; ++i, ++count_) {
      if (count_ >= labels_.size()) continue;  // `require_complete` tells
      if (labels_[count_] < 0 || static_cast<size_t>(labels_[count_]) >= scores.width)
        throw ExportError("top-1: the label " + std::to_string(labels_[count_]) +
                          " is none of the " + std::to_string(scores.width) +
                          " classes of the first output");
      const std::span<const float> row = scores.row(i);
      const auto best = std::ranges::max_element(row) - row.begin();
      sum_ += best == labels_[count_] ? 1 : 0;
    }
  }

  /// Each position but the last predicts the token behind it.
  void add_surprises(const std::vector<Tensor>& inputs, const Rows& logits) {
    const bool has_tokens = !inputs.empty() && is_integral(inputs[0].dtype());
    if (!has_tokens || inputs[0].rank() != 2 ||
        static_cast<size_t>(inputs[0].numel().value()) != logits.count)
      throw ExportError(
          "perplexity needs a model that takes tokens (texts, tokens) and gives the logits of "
          "each; "
          "language models have them with --all-logits");
    const std::vector<int64_t> ids = inputs[0].to(DType::i64).to_vector<int64_t>();
    const auto length = static_cast<size_t>(inputs[0].size(1).value());
    for (size_t i = 0; i < ids.size(); ++i) {
      if ((i + 1) % length == 0) continue;
      if (ids[i + 1] < 0 || static_cast<size_t>(ids[i + 1]) >= logits.width)
        throw ExportError("perplexity: the token " + std::to_string(ids[i + 1]) +
                          " is outside the vocabulary of " + std::to_string(logits.width));
      sum_ += surprise(logits.row(i), static_cast<size_t>(ids[i + 1]));
      ++count_;
    }
  }

  Metric metric_;
  const std::vector<int64_t>& labels_;
  double sum_ = 0;
  size_t count_ = 0;
};

void require_finite(const std::vector<Numbers>& outputs, size_t example) {
  for (const Numbers& n : outputs)
    if (!std::ranges::all_of(n, [](float x) { return std::isfinite(x); }))
      throw ExportError("example " + std::to_string(example) +
                        ": the model's outputs are not finite, so they measure nothing");
}

size_t bytes_of(const std::vector<Numbers>& outputs) {
  size_t bytes = 0;
  for (const Numbers& n : outputs) bytes += n.size() * sizeof(float);
  return bytes;
}

}  // namespace

struct Meter::Parts {
  Metric metric;
  TestData data;
  std::vector<std::vector<Numbers>> kept;  ///< outputs of the first calls
};

Meter::Meter(Metric metric, TestData data, const ir::Graph& unchanged, const Progress& progress)
    : parts_(std::make_unique<Parts>(Parts{metric, std::move(data), {}})) {
  const Examples& examples = parts_->data.examples;
  Sum sum(metric, parts_->data.labels);
  size_t bytes = 0;
  for (size_t i = 0; i < examples.count; ++i) {
    const ir::Interpretation run = run_example(unchanged, examples, i);
    sum.add(examples.at(i), run);
    std::vector<Numbers> outputs = float_outputs(run);
    require_finite(outputs, i);
    bytes += bytes_of(outputs);
    if (bytes <= most_kept_bytes) parts_->kept.push_back(std::move(outputs));
    if (progress) progress(i + 1, examples.count);
  }
  sum.require_complete();
}
Meter::~Meter() = default;

Score Meter::run(const ir::Graph& graph) const {
  const Examples& examples = parts_->data.examples;
  Sum sum(parts_->metric, parts_->data.labels);
  OutputErrors errors;
  const bool needs_all = parts_->metric == Metric::top_1 || parts_->metric == Metric::perplexity;
  for (size_t i = 0; i < (needs_all ? examples.count : parts_->kept.size()); ++i) {
    const ir::Interpretation run = run_example(graph, examples, i);
    sum.add(examples.at(i), run);
    if (i < parts_->kept.size()) errors.add(float_outputs(run), parts_->kept[i]);
  }
  Score score{0, errors.noise()};
  if (needs_all) score.metric = sum.value();
  if (parts_->metric == Metric::cosine) score.metric = errors.cosine();
  return score;
}

const char* name_of(Metric metric) { return names[static_cast<size_t>(metric)]; }
std::optional<Metric> find_metric(std::string_view name) {
  for (size_t i = 0; i + 1 < names.size(); ++i)
    if (name == names[i]) return static_cast<Metric>(i);
  return {};
}

}  // namespace taper::quantize
