// The last layer of a ResNet-20 that PyTorch trained, trained further on CIFAR-10 pictures in C++,
// and exported with a method that goes on training on the device.
//
//   finetune_imported RESNET20.pt2 CIFAR10_BINARY_FILE OUT.taper [steps]
#include <cstdlib>
#include <iostream>

#include "taper/exporter/exporter.h"
#include "taper/exporter/importers/pt2/pt2.h"

using namespace taper;

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::cerr << "usage: finetune_imported RESNET20.pt2 CIFAR10_BINARY_FILE OUT.taper [steps]\n";
    return 2;
  }
  const int steps = argc > 4 ? std::atoi(argv[4]) : 40;
  pt2::Model model = pt2::Model::load(argv[1]);
  std::vector<Tensor> last_layer;
  for (const auto& [name, parameter] : model.named_parameters())
    if (name.starts_with("linear.")) last_layer.push_back(parameter.set_requires_grad());

  optim::SGD optimizer(last_layer, {.lr = 0.01, .momentum = 0.9});
  const auto train_step = [&](Tensor images, Tensor labels) {
    const Tensor loss = cross_entropy(model.forward({images})[0], labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss;
  };

  const auto pictures =
      data::cifar10(argv[2]).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f}).random_flip();
  data::Loader loader(pictures, {.batch_size = 64, .shuffle = true, .seed = 1, .drop_last = true});
  data::Progress progress(steps, "training the last layer", {.unit = "steps"});
  double loss = 0;
  for (int step = 0; step < steps;)
    for (auto [images, labels] : loader) {
      if (step++ == steps) break;
      progress.set("loss", loss = train_step(images, labels).item());
      progress.advance();
    }
  progress.finish();

  Exporter exporter;
  exporter.method("forward", model.function(), model.input_specs(), model.output_names());
  exporter.method("train_step", train_step,
                  {input("images", {64, 3, 32, 32}), input("labels", {64}, DType::i64)}, {"loss"});
  exporter.write(argv[3]);
  std::cout << "the last loss was " << loss << '\n';
} catch (const std::exception& e) {
  std::cerr << "finetune_imported: " << e.what() << '\n';
  return 1;
}
