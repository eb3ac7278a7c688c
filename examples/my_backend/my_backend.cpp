// Exports a function for the backend "mine", which computes sums and products, and runs it.
//
//   my_backend OUT.taper
#include <iostream>

#include "delegate.h"
#include "taper/exporter/exporter.h"
#include "taper/runtime/extension/module/module.h"

using namespace taper;

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: my_backend OUT.taper\n";
    return 2;
  }
  const mine::MyDelegate delegate;
  partition::hand_in(delegate);

  Exporter exporter;
  const Tensor weight = Tensor::from<float>({1, 2, 3, 4}, {4});
  exporter.method("forward", [&](const Tensor& x) { return relu((x * weight + x) * x); },
                  {input("x", {4})});
  ExportOptions options;
  options.backend = "mine";
  exporter.write(argv[1], options);

  std::string why;
  ModuleOptions load;
  load.backends = {delegate.backend()};
  load.message = &why;
  Result<Module> module = Module::load(argv[1], load);
  if (!module.ok()) throw std::runtime_error(why);
  const float x[] = {1, -2, 3, -4};
  std::vector<float> y(4);
  if (module.value().forward({{x, {4}}}, {y}) != Error::ok)
    throw std::runtime_error(module.value().message());
  for (const float element : y) std::cout << element << ' ';  // 2 12 36 80
  std::cout << '\n';
} catch (const std::exception& e) {
  std::cerr << "my_backend: " << e.what() << '\n';
  return 1;
}
