// Trains a LoRA adapter of a language model whose weights stay in 4 bits, and writes a program
// with which a device trains one.
//
//   finetune_lora MODEL TEXT_FILE ADAPTER [--rank 8] [--alpha 16] [--targets q,v] [--steps 100]
//                 [--rate 0.0002] [--context 128] [--batch 1] [--program FILE.taper]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>

#include "taper/exporter/exporter.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/llm/new_adapter.h"
#include "taper/exporter/llm/text_assets.h"
#include "taper/exporter/llm/text_loss.h"
#include "taper/exporter/llm/tokenizer_file.h"
#include "taper/exporter/quantize/in_blocks.h"
#include "taper/runtime/extension/llm/adapter_file.h"

using namespace taper;

/// The options of the command line, by name.
class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 4; i < argc; i += 2) {
      const std::string name = argv[i];
      if (!values_.contains(name)) throw ExportError("there is no option " + name);
      if (i + 1 == argc) throw ExportError("behind " + name + " its value is missing");
      values_[name] = argv[i + 1];
    }
  }
  const std::string& text(const std::string& name) const { return values_.at(name); }
  double number(const std::string& name) const {
    char* end = nullptr;
    const double value = std::strtod(text(name).c_str(), &end);
    if (end == text(name).c_str() || *end != '\0' || !std::isfinite(value))
      throw ExportError(name + " takes a number, not " + text(name));
    return value;
  }
  int64_t count(const std::string& name) const {
    const double value = number(name);
    if (value < 1 || value > 1e6 || value != std::floor(value))
      throw ExportError(name + " takes a whole number from 1 on, not " + text(name));
    return static_cast<int64_t>(value);
  }
  std::vector<std::string> list(const std::string& name) const {
    std::vector<std::string> parts;
    std::istringstream in(text(name));
    for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
    return parts;
  }

 private:
  std::map<std::string, std::string> values_ = {
      {"--rank", "8"},      {"--alpha", "16"},    {"--targets", ""}, {"--steps", "100"},
      {"--rate", "0.0002"}, {"--context", "128"}, {"--batch", "1"},  {"--program", ""}};
};

std::vector<int64_t> tokens_of(const std::string& model, const std::string& text_file) {
  const io::Bytes text = io::read_file(text_file);
  const auto ids = llm::read_tokenizer(model).encode(
      {reinterpret_cast<const char*>(text.data()), text.size()}, {.add_special_tokens = false});
  return {ids.begin(), ids.end()};
}

bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code none;
  return std::filesystem::equivalent(a, b, none) ||
         std::filesystem::weakly_canonical(a, none) == std::filesystem::weakly_canonical(b, none);
}

/// Throws if the training would end in vain, or its files would replace others.
void check_written(const std::string& model, const std::string& text, const std::string& adapter,
                   const std::string& program) {
  for (const std::string& written : {adapter, program})
    if (!written.empty() && (same_file(written, model) || same_file(written, text)))
      throw ExportError(written + ": this is an input file; write to another file");
  if (!program.empty() && std::filesystem::path(program).extension() != ".taper")
    throw ExportError("--program " + program + ": the name must end with .taper");
  const bool of_gguf = std::filesystem::path(model).extension() == ".gguf";
  if (const std::string why = llm::why_adapter_not_writable(adapter, of_gguf); !why.empty())
    throw ExportError(adapter + ": " + why);
}

ExportError diverged(int64_t step) {
  return ExportError("the training diverged at step " + std::to_string(step) + "; lower --rate");
}

double perplexity(llm::Decoder& model, const data::Tokens& text) {
  eager::NoGrad guard;
  double sum = 0;
  const int64_t windows = std::min<int64_t>(text.size(), 16);
  for (int64_t i = 0; i < windows; ++i) {
    const auto [ids, next] = text.batch(std::vector<int64_t>{i}, 0);
    sum += llm::text_loss(model, ids, next).item();
  }
  return std::exp(sum / static_cast<double>(windows));
}

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::cerr << "usage: finetune_lora MODEL TEXT_FILE ADAPTER [--rank 8] [--alpha 16] [--targets "
                 "q,v]\n    [--steps 100] [--rate 0.0002] [--context 128] [--batch 1] [--program "
                 "FILE.taper]\n";
    return 2;
  }
  const Options options(argc, argv);
  const int64_t context = options.count("--context"), batch = options.count("--batch"),
                steps = options.count("--steps");
  check_written(argv[1], argv[2], argv[3], options.text("--program"));

  // nine parts of the text are trained, and the tenth shows what the model learns
  const std::vector<int64_t> tokens = tokens_of(argv[1], argv[2]);
  const auto cut = tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size() * 9 / 10);
  const data::Tokens training({tokens.begin(), cut}, context), rest({cut, tokens.end()}, context);
  if (training.size() < batch)
    throw ExportError("the text has " + std::to_string(training.size()) +
                      " windows to train; give a longer one, or a shorter --context");

  // weights that are in blocks stay where they are, in the mapped file; others become blocks
  const auto adapter = std::make_shared<llm::NewAdapter>(
      llm::NewAdapterOptions{.rank = options.count("--rank"),
                             .alpha = options.number("--alpha"),
                             .targets = options.list("--targets")});
  const llm::Model model = llm::load(argv[1], {.trained = adapter, .stored = [](const Tensor& w) {
                                                 return quantize::in_blocks(w, "q4_0");
                                               }});
  if (context > model.config.capacity)
    throw ExportError("--context " + std::to_string(context) + ": the model has " +
                      std::to_string(model.config.capacity) + " positions");
  optim::AdamW optimizer(adapter->parameters(), {.lr = options.number("--rate")});
  const auto train_step = [&](const Tensor& ids, const Tensor& next) {
    const Tensor loss = llm::text_loss(*model.decoder, ids, next);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.detach();
  };

  if (!options.text("--program").empty()) {
    Exporter exporter;
    exporter.method(
        "train_step", train_step,
        {input("ids", {batch, context}, DType::i64), input("next", {batch, context}, DType::i64)},
        {"loss"});
    for (const io::Asset& asset : llm::text_assets(argv[1], model.config)) exporter.asset(asset);
    exporter.asset(adapter->asset());
    ExportOptions written;
    written.sources = model.files;  // the program finds the blocks there
    exporter.write(options.text("--program"), written);
  }

  std::printf("perplexity before: %.3f\n", perplexity(*model.decoder, rest));
  {
    data::Loader loader(training, {.batch_size = batch, .drop_last = true});
    data::Progress progress(steps, "training",
                            {.unit = "tokens",
                             .units_per_step = static_cast<double>(batch * context),
                             .only_on_terminal = true});
    for (int64_t step = 0; step < steps;)
      for (auto [ids, next] : loader) {
        const double loss = train_step(ids, next).item();
        if (!std::isfinite(loss)) throw diverged(step + 1);
        progress.set("loss", loss);
        progress.advance();
        if (++step % 10 == 0 || step == steps)
          std::printf("step %lld: loss %.6f\n", static_cast<long long>(step), loss);
        if (step == steps) break;
      }
  }
  const double after = perplexity(*model.decoder, rest);
  if (!std::isfinite(after)) throw diverged(steps);
  std::printf("perplexity after: %.3f\n", after);
  adapter->write(argv[3]);
  return 0;
} catch (const std::exception& e) {
  std::cerr << "finetune_lora: " << e.what() << '\n';
  return 1;
}
