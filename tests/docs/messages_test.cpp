// Messages on the pages, which no command prints.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>

#include "taper/exporter/eager/eager.h"

namespace taper {
namespace {

/// With the same name for every line of a program.
std::string without_places(const std::string& message) {
  return std::regex_replace(message, std::regex("\\w+\\.cpp:\\d+"), "PLACE");
}

TEST(documentation, shows_what_backward_says_of_an_overwritten_value) {
  std::ifstream in(DOCS_BLOCKS "/overwritten.txt");
  std::string page, message;
  std::getline(in, page);
  const eager::Tensor x = eager::ones({2}).set_requires_grad(true);
  eager::Tensor y = x * 2;
  const eager::Tensor loss = eager::sum(y * y);
  y.add_(1);
  try {
    loss.backward();
  } catch (const ExportError& error) {
    message = error.what();
  }
  EXPECT_EQ(without_places(message), without_places(page)) << message;
}

}  // namespace
}  // namespace taper
