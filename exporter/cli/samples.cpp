#include "taper/exporter/cli/samples.h"

#include <algorithm>
#include <filesystem>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/io/recorded_calls.h"
#include "taper/exporter/io/safetensors.h"
#ifdef TAPER_HAS_TEXT_MODELS
#include "taper/exporter/llm/tokenizer_file.h"
#endif

namespace taper::cli {
namespace {

using eager::Tensor;
using quantize::Sample;

/// Rows that one call takes at most, where the graph leaves that open.
constexpr int64_t most_rows = 32;
constexpr int64_t most_tokens = 256;

/// The tensors of several samples, one for each input of the graph.
class Splitter {
 public:
  Splitter(const std::string& data, const ir::Graph& graph) : data_(data), graph_(graph) {}

  std::vector<Sample> split(std::vector<Tensor> inputs, int64_t most) const {
    int64_t samples = most;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ir::Type& type = type_of(i);
      // files hold token ids in small integers
      if (is_integral(inputs[i].dtype()) && is_integral(type.dtype))
        inputs[i] = inputs[i].to(type.dtype);
      require_fitting(inputs[i], type, i);
      if (type.rank > 0) samples = std::min(samples, count_of(inputs[i], type));
    }
    std::vector<Sample> result;
    for (int64_t s = 0; s < samples; ++s) {
      Sample& sample = result.emplace_back();
      for (size_t i = 0; i < inputs.size(); ++i) sample.push_back(part(inputs[i], i, s));
    }
    return result;
  }

 private:
  const ir::Type& type_of(size_t input) const {
    const auto& value = graph_.inputs()[input].value;
    if (value == nullptr)
      throw ExportError(data_ + ": input " + graph_.inputs()[input].name +
                        " is a number; give recorded calls");
    return value->type;
  }

  /// The rows of a tensor that one sample takes.
  static int64_t rows_of(const Tensor& t, const ir::Type& type) {
    return std::min({type.sizes[0].upper(), most_rows, t.size(0).value()});
  }
  /// How many samples a tensor holds.
  static int64_t count_of(const Tensor& t, const ir::Type& type) {
    const int64_t rows = rows_of(t, type);
    return rows < std::max<int64_t>(type.sizes[0].lower(), 1) ? 0 : t.size(0).value() / rows;
  }

  void require_fitting(const Tensor& t, const ir::Type& type, size_t input) const {
    bool fits = t.rank() == type.rank && t.dtype() == type.dtype;
    for (int d = 1; fits && d < type.rank; ++d) {
      const int64_t n = t.size(d).value();
      fits = n >= type.sizes[d].lower() && n <= type.sizes[d].upper();
    }
    if (fits) return;
    throw ExportError(data_ + ": " + eager::array_of(t).describe() + " does not fit input " +
                      graph_.inputs()[input].name + ", " + ir::to_string(type));
  }

  Tensor part(const Tensor& t, size_t input, int64_t sample) const {
    const ir::Type& type = type_of(input);
    if (type.rank == 0) return t;
    const int64_t rows = rows_of(t, type);
    return t.slice(0, sample * rows, (sample + 1) * rows).contiguous();
  }

  const std::string& data_;
  const ir::Graph& graph_;
};

/// Whether the graph is that of a language model: tokens, and the position of the first one.
bool takes_tokens(const ir::Graph& graph) {
  return graph.inputs().size() == 2 && graph.inputs()[0].name == "ids" &&
         graph.inputs()[1].name == "start";
}

Sample tokens_sample(const Tensor& ids) { return {ids, eager::zeros({ids.size(0)}, DType::i64)}; }

/// A tensor for the first input. A language model begins each text at position 0.
std::vector<Sample> first_input(const std::string& data, const ir::Graph& graph, const Tensor& t,
                                int64_t most) {
  const Splitter splitter(data, graph);
  if (!takes_tokens(graph)) {
    if (graph.inputs().size() != 1)
      throw ExportError(data + ": the model has " + std::to_string(graph.inputs().size()) +
                        " inputs; give a .safetensors file with their names");
    return splitter.split({t}, most);
  }
  std::vector<Sample> samples;
  const Tensor starts = eager::zeros({t.size(0)}, DType::i64);
  for (Sample& s : splitter.split({t, starts}, most)) samples.push_back(tokens_sample(s[0]));
  return samples;
}

std::vector<Sample> recorded(const std::string& data, const ir::Graph& graph, int64_t most) {
  std::vector<Sample> samples;
  for (const io::RecordedCall& call : io::read_recorded_calls(data)) {
    if (static_cast<int64_t>(samples.size()) == most) break;
    Sample& sample = samples.emplace_back();
    for (const auto& [index, array] : call.inputs) sample.push_back(eager::tensor_of(array));
    if (sample.size() != graph.inputs().size())
      throw ExportError(data + ": a call has " + std::to_string(sample.size()) +
                        " inputs, the model has " + std::to_string(graph.inputs().size()));
  }
  return samples;
}

std::vector<Sample> from_safetensors(const std::string& data, const ir::Graph& graph,
                                     int64_t most) {
  const io::SafeTensors file = io::read_safetensors(data);
  const auto is_recorded = [](const auto& entry) { return entry.first.starts_with("set"); };
  if (std::ranges::any_of(file.tensors, is_recorded)) return recorded(data, graph, most);
  std::vector<Tensor> inputs;
  for (const ir::Input& input : graph.inputs()) {
    if (takes_tokens(graph) && input.name == "start") continue;
    inputs.push_back(eager::tensor_of(file.at(input.name)));
  }
  if (takes_tokens(graph)) return first_input(data, graph, inputs[0], most);
  return Splitter(data, graph).split(inputs, most);
}

std::vector<Sample> from_text(const std::string& data, const std::string& model,
                              const ir::Graph& graph, int64_t most) {
#ifdef TAPER_HAS_TEXT_MODELS
  if (!takes_tokens(graph))
    throw ExportError(data + ": a text is for language models; give .npy or .safetensors");
  const llm::Tokenizer tokenizer = llm::read_tokenizer(model);
  const io::Bytes bytes = io::read_file(data);
  const std::vector<llm::TokenId> ids =
      tokenizer.encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto window =
      static_cast<size_t>(std::min(graph.inputs()[0].value->type.sizes[1].upper(), most_tokens));
  std::vector<Sample> samples;
  for (size_t at = 0; at < ids.size() && static_cast<int64_t>(samples.size()) < most;
       at += window) {
    const size_t count = std::min(window, ids.size() - at);
    const std::vector<int64_t> part(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                    ids.begin() + static_cast<std::ptrdiff_t>(at + count));
    samples.push_back(tokens_sample(Tensor::from(part, {1, static_cast<int64_t>(count)})));
  }
  return samples;
#else
  static_cast<void>(graph), static_cast<void>(most);
  throw ExportError(data + ": this build of Taper reads no texts for " + model);
#endif
}

/// "file.safetensors:name" as its two parts; the name is "" if there is none.
std::pair<std::string, std::string> file_and_name(const std::string& data) {
  const size_t colon = data.rfind(".safetensors:");
  if (colon == std::string::npos) return {data, ""};
  const size_t end = colon + std::string_view(".safetensors").size();
  return {data.substr(0, end), data.substr(end + 1)};
}

std::vector<Sample> read(const std::string& data, const std::string& model, const ir::Graph& graph,
                         int64_t most) {
  const auto [file, name] = file_and_name(data);
  const std::string kind = std::filesystem::path(file).extension().string();
  if (!name.empty())
    return first_input(data, graph, eager::tensor_of(io::read_safetensors(file).at(name)), most);
  if (kind == ".safetensors") return from_safetensors(data, graph, most);
  if (kind == ".npy") return first_input(data, graph, eager::load_npy(data), most);
  if (kind == ".txt") return from_text(data, model, graph, most);
  throw ExportError(data + ": calibration data is a .safetensors, .npy or .txt file");
}

}  // namespace

std::vector<Sample> read_samples(const std::string& data, const std::string& model,
                                 const ir::Graph& graph, int64_t most) {
  std::vector<Sample> samples = read(data, model, graph, most);
  if (samples.empty()) throw ExportError(data + ": it holds no sample for the model");
  return samples;
}

}  // namespace taper::cli
