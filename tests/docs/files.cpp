// files SOURCE FOLDER: writes the files that the commands on the pages name.
//
//   FOLDER/lenet.taper                 LeNet with trained weights: forward, train_step, a test
//   FOLDER/digit.png, batch.npy, …     its inputs
//   FOLDER/dog.jpg, squeezenet1_1.pt2  what examples/classify has
//   FOLDER/model.pt2                   a classifier of pictures with 1000 classes: models.py
//   FOLDER/assistant.pt2               a model with an adapter, adapter.safetensors, and x.npy
//   FOLDER/microcontroller/lenet.taper LeNet as docs/microcontroller.md exports it
#include <filesystem>

#include "taper/examples/train_lenet/lenet.h"
#include "taper/exporter/exporter.h"

using namespace taper;
namespace fs = std::filesystem;

namespace {

void export_lenet(LeNet& model, const Tensor& image) {
  optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
  const auto train_step = [&](Tensor images, Tensor labels) {
    Tensor loss = cross_entropy(model(images), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss;
  };
  const Dim batch = Dim::symbol("batch", 1, 256);
  Exporter exporter;
  exporter.method("forward", [&](Tensor x) { return model(x); },
                  {input("images", {batch, 1, 28, 28})}, {"logits"});
  exporter.method("train_step", train_step,
                  {input("images", {64, 1, 28, 28}), input("labels", {64}, DType::i64)}, {"loss"});
  exporter.test("forward", {image});
  exporter.write("lenet.taper");
}

void export_for_a_microcontroller(LeNet& model) {
  Exporter exporter;
#include "export.inc"
}

}  // namespace

int main(int, char** argv) {
  const fs::path source = fs::absolute(argv[1]), folder = argv[2];
  fs::remove_all(folder);
  fs::create_directories(folder / "microcontroller");
  fs::current_path(folder);

  const auto overwrite = fs::copy_options::overwrite_existing;
  const fs::path classify = source / "examples/classify";
  for (const char* name : {"dog.jpg", "cat_285.png", "imagenet_labels.txt", "squeezenet1_1.pt2"})
    fs::copy_file(classify / name, name, overwrite);
  fs::copy_file("dog.jpg", "photo.jpg");
  fs::copy_file("imagenet_labels.txt", "labels.txt");
  for (const char* name :
       {"model.pt2", "recorded.safetensors", "sizes.pt2", "assistant.pt2", "adapter.safetensors"})
    fs::copy_file(source / "tests/docs/data" / name, name);
  fs::copy_file(source / "examples/train_lenet/mnist/digit_7.png", "digit.png");
  fs::copy_file(source / "examples/minimal_firmware/lenet.safetensors", "lenet.safetensors");

  manual_seed(1);
  const Tensor images = rand({64, 1, 28, 28});
  save_npy("batch.npy", images);
  save_npy("images.npy", images);
  save_npy("labels.npy", randint(10, {64}));
  save_npy("image.npy", narrow(images, 0, 0, 1));
  save_npy("x.npy", rand({1, 8}));

  LeNet model;
  model.load("lenet.safetensors");
  export_lenet(model, narrow(images, 0, 0, 1));
  fs::current_path("microcontroller");
  export_for_a_microcontroller(model);
}
