// Trains the adapter of a program that finetune_lora wrote. It links no exporter.
//
//   train_on_device PROGRAM.taper TEXT_FILE ADAPTER [steps] [FOLDER_OF_THE_MODEL]
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include "taper/runtime/extension/llm/adapter_file.h"
#include "taper/runtime/extension/llm/text_parts.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

using namespace taper;

namespace {

int fail(const std::string& why) {
  std::cerr << "train_on_device: " << why << '\n';
  return 1;
}

/// 0: the text is no whole number from 1 on.
int64_t count_of(std::string_view text) {
  int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, count);
  return error == std::errc() && behind == end && count > 0 ? count : 0;
}

/// False: the file cannot be read, or is empty.
bool read_text(const char* file, std::string& text) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  if (!in || !(content << in.rdbuf())) return false;
  text = content.str();
  return true;
}

std::vector<int64_t> tokens_of(const llm::Tokenizer& tokenizer, const std::string& text) {
  llm::EncodeOptions options;
  options.add_special_tokens = false;
  const std::vector<llm::TokenId> ids = tokenizer.encode(text, options);
  return {ids.begin(), ids.end()};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4)
    return fail(
        "usage: train_on_device PROGRAM.taper TEXT_FILE ADAPTER [steps] [FOLDER_OF_THE_MODEL]");
  const int64_t steps = argc > 4 ? count_of(argv[4]) : 100;
  if (steps < 1) return fail(std::string("steps: a whole number from 1 on, not ") + argv[4]);
  std::string why, content;
  if (!read_text(argv[2], content))
    return fail(std::string(argv[2]) + ": it cannot be read, or is empty");
  ThreadPool pool;
  ModuleOptions options;
  options.threads = pool.threads(), options.message = &why;
  if (argc > 5) options.weights_folder = argv[5];  // where the weights lie; else beside the program
  Result<Module> module = Module::load(argv[1], options);
  if (!module.ok()) return fail(why);
  why = llm::why_adapter_not_writable(argv[3], *module);
  if (!why.empty()) return fail(std::string(argv[3]) + ": " + why);
  const Result<llm::TextParts> text = llm::read_text_parts(module->program(), &why);
  if (!text.ok()) return fail(why);
  Result<Method> train_step = module->method("train_step");
  if (!train_step.ok()) return fail(module->message());
  const Shape sizes = *train_step->input(0).shape;
  const index_t batch = sizes.sizes[0], context = sizes.sizes[1];

  // the same nine parts of the text as in finetune_lora, window after window
  std::vector<int64_t> tokens = tokens_of(text.value().tokenizer, content);
  tokens.resize(tokens.size() * 9 / 10);
  const index_t batches = (static_cast<index_t>(tokens.size()) - 1) / context / batch;
  if (batches < 1) return fail("the text is too short");
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<int64_t> ids, next;
    const int64_t* window = tokens.data() + step % batches * batch * context;
    ids.assign(window, window + batch * context);
    next.assign(window + 1, window + 1 + batch * context);
    std::vector<float> loss(1);
    const Error error = module->run(
        "train_step", {Input(ids.data(), {batch, context}), Input(next.data(), {batch, context})},
        {loss});
    if (error != Error::ok) return fail(module->message());
    if (!std::isfinite(loss[0]))
      return fail("the training diverged at step " + std::to_string(step + 1) +
                  "; make the program again, with a lower --rate");
    if ((step + 1) % 10 == 0 || step + 1 == steps)
      std::printf("step %lld: loss %.6f\n", static_cast<long long>(step + 1),
                  static_cast<double>(loss[0]));
  }
  if (const std::string error = llm::write_trained_adapter(argv[3], *module); !error.empty())
    return fail(std::string(argv[3]) + ": " + error);
  return 0;
}
