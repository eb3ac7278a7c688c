// Trains LeNet on MNIST, exports inference and the training step, and shows that the runtime
// computes the same bits.
//
//   train_lenet MNIST_FOLDER OUTPUT_FOLDER [epochs]
//
// Writes lenet.taper and lenet.safetensors.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "taper/examples/support/allocations.h"
#include "taper/examples/train_lenet/lenet.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

using namespace taper;

namespace {

int64_t count_right(LeNet& model, const data::Images& pictures) {
  eager::NoGrad guard;
  int64_t right = 0;
  for (auto [images, labels] : data::Loader(pictures, {.batch_size = 250}))
    right += sum(eq(argmax(model(images), 1), labels)).item<int64_t>();
  return right;
}

/// Stops the example: its promises are tests.
void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

template <class T>
T value_of(Result<T> result, const std::string& what) {
  require(result.ok(), what + ": " + name_of(result.error()));
  return std::move(result).value();
}

bool same_bits(const Tensor& a, const void* b) {
  const Tensor dense = a.contiguous();
  return std::memcmp(dense.ref().data, b, static_cast<size_t>(dense.ref().size_bytes())) == 0;
}

/// The logits of 1000 pictures, in batches of different sizes, against eager's.
void compare_inference(LeNet& model, const std::string& path, const data::Images& pictures,
                       int thread_count) {
  eager::NoGrad guard;
  ThreadPool pool(thread_count);
  std::string message;
  ModuleOptions options;
  options.threads = pool.threads();
  options.message = &message;
  Result<taper::Module> loaded = taper::Module::load(path, options);
  require(loaded.ok(), message);
  int64_t compared = 0;
  for (const int64_t batch : {1, 7, 64, 128}) {
    for (auto [images, labels] :
         data::Loader(pictures.range(compared, compared + 250), {.batch_size = batch})) {
      const Result<std::vector<OwnedTensor>> outputs =
          loaded.value().execute("forward", {Input(images.ref())});
      require(outputs.ok(), loaded.value().message());
      require(same_bits(model(images), outputs.value()[0].bytes.data()),
              "the runtime's logits differ from eager's");
    }
    compared += 250;
  }
  std::printf("inference on the runtime: %lld pictures, %d thread%s, the same bits as eager\n",
              static_cast<long long>(compared), thread_count, thread_count > 1 ? "s" : "");
}

/// Goes on training on the runtime and in eager, and compares losses and weights.
void compare_training(LeNet& model, const std::function<Tensor(Tensor, Tensor)>& train_step,
                      const std::string& path, const data::Images& pictures, int steps) {
  ThreadPool pool(2);
  ModuleOptions options;
  options.threads = pool.threads();
  taper::Module device = value_of(taper::Module::load(path, options), path);
  Method method = value_of(device.method("train_step"), "train_step");
  int done = 0;
  size_t allocations = 0;
  for (auto [images, labels] :
       data::Loader(pictures, {.batch_size = 64, .shuffle = true, .seed = 2, .drop_last = true})) {
    const size_t before = allocation_count();
    const bool ok = method.set_input(0, images.ref()) == Error::ok &&
                    method.set_input(1, labels.ref()) == Error::ok && method.execute() == Error::ok;
    allocations += allocation_count() - before;
    require(ok, "train_step failed on the runtime");
    const Tensor loss = train_step(images, labels);
    require(same_bits(loss, method.output(0).data),
            "step " + std::to_string(done) + ": the runtime's loss differs from eager's");
    if (++done == steps) break;
  }
  eager::NamedTensors trained;
  for (const auto& [name, tensor] : model.named_parameters()) {
    const OwnedTensor state = value_of(device.state(name), name);
    require(same_bits(tensor, state.bytes.data()),
            name + " differs from eager's after training on the runtime");
    trained[name] = Tensor::from_bytes(state.bytes.data(), state.bytes.size(), state.dtype,
                                       {state.sizes.begin(), state.sizes.end()});
  }
  eager::save_safetensors(std::filesystem::path(path).replace_extension(".safetensors"), trained);
  std::printf("training on the runtime: %d steps, the same bits as eager, %zu allocations\n", done,
              allocations);
  require(allocations == 0, "execute allocated memory");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::cerr << "usage: train_lenet MNIST_FOLDER OUTPUT_FOLDER [epochs]\n";
    return 2;
  }
  const std::filesystem::path mnist = argv[1], folder = argv[2];
  const int epochs = argc > 3 ? std::atoi(argv[3]) : 3;
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "lenet.taper").string();
  const data::Images training = data::mnist(mnist / "train"), testing = data::mnist(mnist / "t10k");

  LeNet model;
  optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
  const auto train_step = [&](Tensor images, Tensor labels) {
    Tensor loss = cross_entropy(model(images), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss;
  };

  data::Loader loader(training, {.batch_size = 64, .shuffle = true, .seed = 1, .drop_last = true});
  {
    Progress progress(epochs * loader.size(), "training", {.unit = "images", .units_per_step = 64});
    for (int epoch = 0; epoch < epochs; ++epoch) {
      if (epoch == epochs - 1) optimizer.set_lr(0.01);
      for (auto [images, labels] : loader) {
        progress.set("loss", train_step(images, labels).item());
        progress.advance();
      }
    }
  }
  const int64_t right = count_right(model, testing);
  std::printf("accuracy: %.2f %% of %lld held-out pictures\n",
              100.0 * static_cast<double>(right) / static_cast<double>(testing.size()),
              static_cast<long long>(testing.size()));

  Exporter exporter;
  exporter.method("forward", [&](Tensor x) { return model(x); },
                  {input("images", {Dim::symbol("batch", 1, 256), 1, 28, 28})}, {"logits"});
  exporter.method("train_step", train_step,
                  {input("images", {64, 1, 28, 28}), input("labels", {64}, DType::i64)}, {"loss"});
  exporter.write(path);

  compare_inference(model, path, testing, 1);
  compare_inference(model, path, testing, 2);
  compare_training(model, train_step, path, training, 200);
  require(right * 100 >= 98 * testing.size(), "fewer than 98 % of the held-out pictures are right");
  std::printf("wrote %s and %s\n", path.c_str(), (folder / "lenet.safetensors").string().c_str());
  return 0;
} catch (const std::exception& e) {
  std::cerr << "train_lenet: " << e.what() << '\n';
  return 1;
}
