// Uses an installed Taper as a user's project does.
//
//   consumer PROGRAM.taper: runs `forward` with ones, for a batch of 2 where the batch is symbolic.
#include <cstdio>
#include <string>
#include <vector>

#include "taper/runtime/extension/module/module.h"
#ifdef CONSUMER_HAS_THREADS
#include "taper/runtime/platform/pthreadpool/thread_pool.h"
#endif

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: consumer PROGRAM.taper\n"), 2;
  taper::ModuleOptions options;
  std::string why;
  options.message = &why;
#ifdef CONSUMER_HAS_THREADS
  const taper::ThreadPool pool(2);
  options.threads = pool.threads();
#endif
  taper::Result<taper::Module> model = taper::Module::load(argv[1], options);
  if (!model.ok()) return std::fprintf(stderr, "consumer: %s\n", why.c_str()), 1;

  const std::vector<float> x(2 * 1 * 8 * 8, 1.0f);
  taper::Result<std::vector<taper::OwnedTensor>> results =
      model->execute("forward", {{x.data(), {2, 1, 8, 8}}});
  if (!results.ok()) return std::fprintf(stderr, "consumer: %s\n", model->message().c_str()), 1;
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
