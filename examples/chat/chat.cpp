// Talks with a language model. Run:  chat smollm.taper
//
//   taper export SmolLM2-135M-Instruct.Q4_1.gguf -o smollm.taper     writes such a file
#include "taper/runtime/extension/llm/chat.h"

#include <iostream>
#include <string>

#include "taper/runtime/platform/thread_pool/thread_pool.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: chat MODEL.taper\n", 2;
  std::string why;
  taper::ThreadPool pool;
  taper::ModuleOptions options;
  options.threads = pool.threads();
  options.message = &why;
  taper::Result<taper::llm::Chat> chat = taper::llm::Chat::load(argv[1], options);
  if (!chat.ok()) return std::cerr << why << '\n', 1;

  chat->options().sampling.temperature = 0;
  for (std::string line; std::cout << "> " << std::flush, std::getline(std::cin, line);) {
    taper::llm::ChatAnswer answer = chat->say(line);
    for (std::string_view piece : answer) std::cout << piece << std::flush;
    std::cout << answer.message() << '\n';  // empty if nothing failed
  }
}
