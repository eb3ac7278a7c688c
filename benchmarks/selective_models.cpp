// Writes the programs whose selective builds docs/sizes.md weighs: lenet.taper, mobilenet_v2.taper
// and transformer.taper (a GPT), with weights as they are initialized.
//
//   selective_models FOLDER
#include <cstdio>
#include <filesystem>

#include "taper/benchmarks/mobilenet_v2.h"
#include "taper/examples/train_gpt/gpt.h"
#include "taper/examples/train_lenet/lenet.h"

using namespace taper;

template <class Model>
void write(Model&& model, const InputSpec& in, const std::filesystem::path& path) {
  model.eval();
  Exporter exporter;
  exporter.method("forward", [&](Tensor x) { return model(x); }, {in});
  exporter.write(path.string(), {.target = Target("portable"), .debug = false});
}

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: selective_models FOLDER\n"), 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  write(LeNet(), input("image", {1, 1, 28, 28}), folder / "lenet.taper");
  write(mobilenet::MobileNetV2(), input("image", {1, 3, 224, 224}), folder / "mobilenet_v2.taper");
  write(gpt::Gpt(65), input("ids", {1, gpt::context}, DType::i64), folder / "transformer.taper");
  return 0;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "selective_models: %s\n", e.what()), 1;
}
