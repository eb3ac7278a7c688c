// Uses an installed Taper as an app's project does.
//
//   module PROGRAM.taper: runs `forward` with ones, for a batch of 2 where the batch is symbolic.
#include "taper/runtime/extension/module/module.h"

#include <cstdio>
#include <string>
#include <vector>
#ifdef CONSUMER_HAS_THREADS
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#endif
#ifdef CONSUMER_HAS_KERNELS
#include "program.h"  // program_kernels
#endif

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: module PROGRAM.taper\n"), 2;
  taper::ModuleOptions options;
  std::string why;
  options.message = &why;
#ifdef CONSUMER_HAS_THREADS
  const taper::ThreadPool pool(2);
  options.threads = pool.threads();
#endif
#ifdef CONSUMER_HAS_KERNELS
  taper::Result<taper::Module> model = taper::Module::load(argv[1], program_kernels, options);
#else
  taper::Result<taper::Module> model = taper::Module::load(argv[1], options);
#endif
  if (!model.ok()) return std::fprintf(stderr, "module: %s\n", why.c_str()), 1;

  const std::vector<float> x(2 * 1 * 8 * 8, 1.0f);
  taper::Result<std::vector<taper::OwnedTensor>> results =
      model->execute("forward", {{x.data(), {2, 1, 8, 8}}});
  if (!results.ok()) return std::fprintf(stderr, "module: %s\n", model->message().c_str()), 1;
  const taper::OwnedTensor& scores = results.value()[0];
  for (taper::index_t i = 0; i < scores.numel(); ++i)
    std::printf("%g ", static_cast<double>(scores.data<float>()[i]));
  std::printf("\n");
  // both rows are the same picture
  const taper::index_t classes = scores.numel() / 2;
  for (taper::index_t i = 0; i < classes; ++i)
    if (scores.data<float>()[i] != scores.data<float>()[classes + i]) return 1;
  return classes == 4 ? 0 : 1;
}
