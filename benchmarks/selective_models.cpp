// Writes the programs whose selective builds docs/sizes.md weighs: lenet.taper, mobilenet_v2.taper
// and transformer.taper (a GPT), with weights as they are initialized. They are for the target
// portable, or for another one. mobilenet_v2_levels.taper is for any machine of this architecture,
// and its batch norms are folded.
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
           const ExportOptions& options) {
  model.eval();
  Exporter exporter;
  exporter.method("forward", [&](Tensor x) { return model(x); }, {in});
  exporter.write(path.string(), options);
}

int main(int argc, char** argv) try {
  if (argc != 2 && argc != 3)
    return std::fprintf(stderr, "usage: selective_models FOLDER [TARGET]\n"), 2;
  const std::filesystem::path folder = argv[1];
  const ExportOptions options{.target = Target(argc == 3 ? argv[2] : "portable"), .debug = false};
  const InputSpec image = input("image", {1, 3, 224, 224});
  std::filesystem::create_directories(folder);
  write(LeNet(), input("image", {1, 1, 28, 28}), folder / "lenet.taper", options);
  write(mobilenet::MobileNetV2(), image, folder / "mobilenet_v2.taper", options);
  write(gpt::Gpt(65), input("ids", {1, gpt::context}, DType::i64), folder / "transformer.taper",
        options);
  write(mobilenet::MobileNetV2(), image, folder / "mobilenet_v2_levels.taper",
        {.exact = false, .debug = false});
  return 0;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "selective_models: %s\n", e.what()), 1;
}
