// write_programs FOLDER: writes small programs of every kind that the exporter makes; those in
// fuzz/corpus/program are of this.
#include <filesystem>
#include <utility>

#include "taper/exporter/exporter.h"

using namespace taper;

namespace {

struct Convolutions : nn::Module {
  nn::Conv2d conv1{1, 4, {.kernel_size = 3, .padding = 1}};
  nn::BatchNorm2d norm{4};
  nn::Conv2d conv2{4, 6, {.kernel_size = 3}};
  nn::Linear fc{6, 4};
  TAPER_MODULE(conv1, norm, conv2, fc)

  Tensor forward(Tensor x) {  // (batch, 1, 8, 8) -> (batch, 4)
    x = max_pool2d(relu(norm(conv1(x))), 2);
    return fc(flatten(max_pool2d(relu(conv2(x)), 2), 1));
  }
};

struct Perceptron : nn::Module {
  nn::Linear fc1{5, 8}, fc2{8, 3};
  TAPER_MODULE(fc1, fc2)

  Tensor forward(Tensor x) { return fc2(relu(fc1(x))); }  // (batch, 5) -> (batch, 3)
};

/// Layers whose weights lie in panels, of which the last ones are not full.
struct Packed : nn::Module {
  nn::Conv2d conv{4, 24, {.kernel_size = 3, .groups = 2}};
  nn::Linear fc{24, 18};
  Tensor matrix = eager::randn({17, 18});
  TAPER_MODULE(conv, fc, matrix)

  Tensor forward(Tensor x) {  // (batch, 4, 3, 3) -> (batch, 17)
    return mm(fc(relu(flatten(conv(x), 1))), permute(matrix, {1, 0}));
  }
};

/// Words, a recurrent layer, and the loss of a sequence whose places in time are not known.
struct Speech : nn::Module {
  nn::Embedding embedding{7, 5};
  nn::LSTM lstm{5, 4, {.bidirectional = true}};
  nn::Linear fc{8, 5};
  TAPER_MODULE(embedding, lstm, fc)

  Tensor forward(const Tensor& words) {  // (time, batch) -> (time, batch, 5)
    const auto [output, h, c] = lstm(embedding(words));
    return log_softmax(fc(output), -1);
  }
};

template <class Model, class Optimizer>
auto train_step(Model& model, Optimizer& optimizer) {
  return [&](Tensor x, Tensor labels) {
    Tensor loss = cross_entropy(model.forward(std::move(x)), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss;
  };
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::filesystem::path folder = arguments[1];
  std::filesystem::create_directories(folder);
  eager::manual_seed(1);
  const Dim batch = Dim::symbol("batch", 1, 4), time = Dim::symbol("time", 1, 16);

  {
    Convolutions model;
    model.eval();
    Exporter exporter;
    exporter.method("forward", [&](Tensor x) { return model.forward(std::move(x)); },
                    {input("images", {batch, 1, 8, 8})});
    exporter.write(folder / "convolution.taper", {.target = Target("portable")});
  }
  {
    Packed model;
    Exporter exporter;
    exporter.method("forward", [&](Tensor x) { return model.forward(std::move(x)); },
                    {input("images", {batch, 4, 3, 3})});
    exporter.write(folder / "packed.taper", {.target = Target("x86-64-v3")});
  }
  {
    Convolutions model;
    optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
    Exporter exporter;
    exporter.method("train_step", train_step(model, optimizer),
                    {input("images", {2, 1, 8, 8}), input("labels", {2}, DType::i64)});
    exporter.write(folder / "convolution_training.taper", {.target = Target("portable")});
  }
  {
    Perceptron model;
    optim::Adam optimizer(model.parameters(), {.lr = 0.01});
    Exporter exporter;
    exporter.method("forward", [&](Tensor x) { return model.forward(std::move(x)); },
                    {input("x", {batch, 5})});
    exporter.method("train_step", train_step(model, optimizer),
                    {input("x", {batch, 5}), input("labels", {batch}, DType::i64)});
    exporter.write(folder / "perceptron.taper", {.target = Target("portable"), .debug = false});
  }
  {
    // attention of a sequence to itself: symbols in matrix products, a softmax, views
    Exporter exporter;
    exporter.method("forward",
                    [&](Tensor x) {
                      const Tensor scores = matmul(x, transpose(x, 1, 2)) * 0.5;
                      return std::pair(matmul(softmax(scores, -1), x), sum(x, {1}));
                    },
                    {input("x", {batch, time, 4})}, {"attended", "sums"});
    exporter.write(folder / "attention.taper", {.exact = false, .target = Target("portable")});
  }
  {
    // the fused kernel, with a mask and without; heads of keys that several queries share
    Exporter exporter;
    exporter.method("forward",
                    [&](Tensor query, Tensor key, Tensor mask) {
                      return std::pair(
                          scaled_dot_product_attention(query, key, key, mask, 0, false, {}, true),
                          scaled_dot_product_attention(query, query, query, {}, 0, true));
                    },
                    {input("query", {batch, 4, time, 8}), input("key", {batch, 2, 6, 8}),
                     input("mask", {time, 6}, DType::boolean)},
                    {"crossed", "causal"});
    exporter.write(folder / "fused_attention.taper", {.target = Target("portable")});
  }
  {
    Speech model;
    Exporter exporter;
    exporter.method("forward", [&](Tensor x) { return model.forward(x); },
                    {input("words", {time, batch}, DType::i64)});
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    exporter.method("train_step",
                    [&](Tensor words, Tensor targets) {
                      const Tensor loss = ctc_loss(model.forward(words), targets, eager::Ints{6, 4},
                                                   eager::Ints{2, 1});
                      optimizer.zero_grad();
                      loss.backward();
                      optimizer.step();
                      return loss;
                    },
                    {input("words", {6, 2}, DType::i64), input("targets", {2, 3}, DType::i64)});
    exporter.write(folder / "recurrent.taper", {.target = Target("portable")});
  }
  {
    // indices that the data holds: read, written, put in order
    Exporter exporter;
    exporter.method(
        "forward",
        [&](Tensor x, Tensor rows, Tensor values) {
          const auto [sorted, order] = sort(x, 0, true);
          const auto [largest, where] = topk(x, 2, 1);
          return std::tuple(index_put(sorted, {rows}, values, true), gather(x, 0, order),
                            scatter_add(x, 1, where, largest));
        },
        {input("x", {batch, 4}), input("rows", {time}, DType::i64), input("values", {time, 4})},
        {"put", "taken", "added"});
    exporter.write(folder / "indices.taper", {.target = Target("portable")});
  }
  {
    // windows over three dimensions
    Exporter exporter;
    exporter.method("forward",
                    [&](Tensor x) {
                      return std::tuple(max_pool3d(x, 2, 1, 1), avg_pool3d(x, {1, 2, 2}),
                                        adaptive_avg_pool3d(x, {1, 2, 3}));
                    },
                    {input("x", {batch, 2, 3, 4, 5})}, {"greatest", "means", "adaptive"});
    exporter.write(folder / "pooling.taper", {.target = Target("portable")});
  }
  {
    // complex numbers: views of another dtype than their input, constant, state and buffer
    const Tensor factors = polar(ones({3}), eager::randn({3}));
    Tensor total = zeros({3}, DType::c64);
    total.set_name("total");
    Exporter exporter;
    exporter.method("forward",
                    [&](Tensor z, Tensor pairs) {
                      const Tensor turned = z * factors;
                      total.copy_(total + turned[0]);
                      return std::tuple(turned, view_as_real(flip(z, {0})),
                                        abs(cat({view_as_complex(pairs), imag(z)}, 0)));
                    },
                    {input("z", {batch, 3}, DType::c64), input("pairs", {batch, 3, 2})},
                    {"turned", "flipped", "sizes"});
    exporter.write(folder / "complex.taper", {.target = Target("portable")});
  }
  {
    using Tensors = std::vector<Tensor>;
    Tensor total = zeros({3});
    total.set_name("total");
    const auto grow_and_add = [&](const Tensor& x, const Tensor& rounds) {
      const Tensors grown = while_loop([](const Tensors& in) { return in[0] > 0; },
                                       [](const Tensors& in) {
                                         return Tensors{in[0] - 1, in[1] * 2};
                                       },
                                       {rounds, x});
      const Scanned all = scan(
          [](const Tensors& carried, const Tensors& row) {
            const Tensor next = carried[0] + row[0];
            return Scanned{{next}, {next * next}};
          },
          {total}, {grown[1]});
      total.copy_(all.carried[0]);
      const Tensor squares = all.results[0];
      return cond(
          sum(squares) > 9, [](const Tensors& in) { return Tensors{sqrt(in[0])}; },
          [](const Tensors& in) { return Tensors{in[0] + 1}; }, {squares});
    };
    Exporter exporter;
    exporter.method("forward", grow_and_add,
                    {input("x", {batch, 3}), input("rounds", {}, DType::i64)});
    exporter.write(folder / "control_flow.taper", {.target = Target("portable")});
  }
}
