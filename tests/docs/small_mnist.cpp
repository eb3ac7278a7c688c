// small_mnist FOLDER: writes FOLDER/train-…-ubyte, two batches of pictures in the form of MNIST.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

void write(const std::string& path, const std::vector<uint32_t>& header, int bytes, int modulus) {
  std::ofstream out(path, std::ios::binary);
  for (const uint32_t word : header)
    for (const int shift : {24, 16, 8, 0}) out.put(static_cast<char>(word >> shift & 255));
  for (int i = 0; i < bytes; ++i) out.put(static_cast<char>(i % modulus));
}

}  // namespace

int main(int, char** argv) {
  constexpr uint32_t count = 128;
  const std::string stem = std::string(argv[1]) + "/train";
  std::filesystem::create_directories(argv[1]);
  write(stem + "-images-idx3-ubyte", {0x803, count, 28, 28}, count * 28 * 28, 251);
  write(stem + "-labels-idx1-ubyte", {0x801, count}, count, 10);
}
