// Writes the programs whose selective builds docs/sizes.md weighs: lenet.taper, mobilenet_v2.taper
// and transformer.taper (a GPT), with weights as they are initialized. They are for the target
// portable, or for another one.
//
//   selective_models FOLDER [TARGET]
#include <cstdio>
#include <filesystem>

#include "taper/benchmarks/mobilenet_v2.h"
#include "taper/examples/train_gpt/gpt.h"
#include "taper/examples/train_lenet/lenet.h"

using namespace taper;

template <class Model>
void write(Model&& model, const InputSpec& in, const std::filesystem::path& path,
           const Target& target) {
  model.eval();
  Exporter exporter;
  exporter.method("forward", [&](Tensor x) { return model(x); }, {in});
  exporter.write(path.string(), {.target = target, .debug = false});
}

int main(int argc, char** argv) try {
  if (argc != 2 && argc != 3)
    return std::fprintf(stderr, "usage: selective_models FOLDER [TARGET]\n"), 2;
  const std::filesystem::path folder = argv[1];
  const Target target(argc == 3 ? argv[2] : "portable");
  std::filesystem::create_directories(folder);
  write(LeNet(), input("image", {1, 1, 28, 28}), folder / "lenet.taper", target);
  write(mobilenet::MobileNetV2(), input("image", {1, 3, 224, 224}), folder / "mobilenet_v2.taper",
        target);
  write(gpt::Gpt(65), input("ids", {1, gpt::context}, DType::i64), folder / "transformer.taper",
        target);
  return 0;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "selective_models: %s\n", e.what()), 1;
}
