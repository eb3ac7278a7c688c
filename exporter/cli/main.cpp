#include <iostream>

#include "taper/exporter/cli/taper.h"

int main(int argc, char** argv) {
  return taper::cli::run({argv + 1, argv + argc}, std::cout, std::cerr);
}
