// ResNet-20 on CIFAR-10 (He, Zhang, Ren, Sun: "Deep Residual Learning for Image Recognition", 2015,
// section 4.2), trained and exported.
//
//   train_resnet CIFAR10_BINARY_FILE [epochs]
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "taper/examples/train_resnet/resnet.h"
#include "taper/exporter/exporter.h"

using namespace taper;

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: train_resnet CIFAR10_BINARY_FILE [epochs]\n";
    return 2;
  }
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 10;
  const auto pictures =
      data::cifar10(argv[1]).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f});
  const int64_t held_out = pictures.size() / 10;
  const auto training = pictures.range(0, pictures.size() - held_out).random_crop(4).random_flip();
  const auto testing = pictures.range(pictures.size() - held_out, pictures.size());

  ResNet model({3, 3, 3});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4});
  const auto train_step = [&](Tensor images, Tensor labels) {
    const Tensor loss = cross_entropy(model(images), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss;
  };

  data::Loader loader(training, {.batch_size = 64, .shuffle = true, .seed = 1, .drop_last = true});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    data::Progress progress(loader.size(), "epoch " + std::to_string(epoch + 1),
                            {.unit = "images", .units_per_step = 64});
    double sum = 0;
    for (auto [images, labels] : loader) {
      const double loss = train_step(images, labels).item();
      sum += loss;
      progress.set("loss", loss);
      progress.advance();
    }
    progress.finish();
    model.eval();
    int64_t right = 0;
    {
      eager::NoGrad guard;
      for (auto [images, labels] : data::Loader(testing, {.batch_size = 100}))
        right += sum_of_matches(model(images), labels);
    }
    model.train();
    std::printf("epoch %d: loss %.4f, %.1f %% of %lld held-out pictures right\n", epoch + 1,
                sum / static_cast<double>(loader.size()),
                100.0 * static_cast<double>(right) / static_cast<double>(held_out),
                static_cast<long long>(held_out));
  }

  model.eval();
  Exporter exporter;
  exporter.method("forward", [&](Tensor images) { return model(images); },
                  {input("images", {Dim::symbol("batch", 1, 128), 3, 32, 32})}, {"logits"});
  exporter.write("resnet20.taper");
  return 0;
} catch (const std::exception& e) {
  std::cerr << "train_resnet: " << e.what() << '\n';
  return 1;
}
