// A small GPT over characters, trained on a text, sampled, and exported.
//
//   train_gpt TEXT_FILE [steps]
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>

#include "taper/examples/train_gpt/gpt.h"

using namespace taper;

using gpt::context, gpt::Gpt;

/// Continues `prompt` by `count` characters, drawing from the model's distribution.
std::string sample(Gpt& model, const data::Characters& text, const std::string& prompt, int count) {
  eager::NoGrad guard;
  std::mt19937 random(1);
  std::vector<int64_t> ids = text.encode(prompt);
  for (int i = 0; i < count; ++i) {
    std::vector<int64_t> window(static_cast<size_t>(context), 0);
    const size_t n = std::min(ids.size(), static_cast<size_t>(context));
    std::copy(ids.end() - static_cast<std::ptrdiff_t>(n), ids.end(), window.begin());
    const Tensor logits = model(Tensor::from(window, {1, context}))[0][static_cast<int64_t>(n) - 1];
    const std::vector<float> p = softmax(logits / 0.8, -1).to_vector<float>();
    ids.push_back(std::discrete_distribution<int64_t>(p.begin(), p.end())(random));
  }
  return text.decode(ids);
}

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: train_gpt TEXT_FILE [steps]\n";
    return 2;
  }
  const int steps = argc > 2 ? std::atoi(argv[2]) : 500;
  const auto text = data::Characters::from_file(argv[1], context);
  const auto training = text.part(0, 0.9);

  Gpt model(text.vocabulary_size());
  optim::AdamW optimizer(model.parameters(), {.lr = 1e-3, .weight_decay = 0.1});
  const auto train_step = [&](Tensor ids, Tensor next) {
    const Tensor loss = cross_entropy(flatten(model(ids), 0, 1), flatten(next));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss;
  };
  int64_t count = 0;
  for (const Tensor& p : model.parameters()) count += p.numel().value();
  std::printf("%lld parameters, %lld different characters\n", static_cast<long long>(count),
              static_cast<long long>(text.vocabulary_size()));

  data::Loader loader(training, {.batch_size = 16, .shuffle = true, .seed = 1, .drop_last = true});
  {
    Progress progress(steps, "training", {.unit = "tokens", .units_per_step = 16.0 * context});
    int step = 0;
    for (auto [ids, next] : loader) {
      const double loss = train_step(ids, next).item();
      progress.set("loss", loss);
      progress.advance();
      if (step % 50 == 0) std::printf("step %d: loss %.4f\n", step, loss);
      if (++step == steps) break;
    }
  }
  model.eval();
  std::cout << sample(model, text, "ROMEO:", 300) << '\n';

  Exporter exporter;
  exporter.method("forward", [&](Tensor ids) { return model(ids); },
                  {input("ids", {Dim::symbol("batch", 1, 16), context}, DType::i64)}, {"logits"});
  exporter.write("gpt.taper");
  return 0;
} catch (const std::exception& e) {
  std::cerr << "train_gpt: " << e.what() << '\n';
  return 1;
}
