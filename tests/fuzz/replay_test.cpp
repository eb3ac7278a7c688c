// What a fuzzer found stays found: its corpus, and members of the corpus with a few bytes changed,
// run through the fuzzer's own function. Under the sanitizers a crash, a leak or an access out of
// bounds fails the test. Compiled once for each fuzzer, beside its source.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                                                size_t max_size, unsigned seed);

namespace {

uint32_t random_state = 1;
uint32_t next_random() {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}

}  // namespace

// libFuzzer's, in small: changes a few bytes, or cuts the end off.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t) {
  if (size == 0) return 0;
  if (next_random() % 8 == 0) return next_random() % size;
  constexpr uint8_t extremes[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '{', '"'};
  for (uint32_t k = 0; k <= next_random() % 3; ++k)
    data[next_random() % size] = next_random() % 2 == 0 ? extremes[next_random() % sizeof extremes]
                                                        : static_cast<uint8_t>(next_random());
  return size;
}

namespace {

using Bytes = std::vector<uint8_t>;

std::vector<std::pair<std::string, Bytes>> corpus() {
  std::vector<std::pair<std::string, Bytes>> members;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TAPER_CORPUS)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    members.emplace_back(entry.path().string(), Bytes(std::istreambuf_iterator<char>(in), {}));
  }
  std::sort(members.begin(), members.end());
  return members;
}

// In memory of exactly this size, so that the sanitizers see what lies behind it.
void run(const uint8_t* data, size_t size) {
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[size]);
  std::copy(data, data + size, exact.get());
  EXPECT_EQ(LLVMFuzzerTestOneInput(exact.get(), size), 0);
}

TEST(TAPER_FUZZER, survives_every_member_of_its_corpus) {
  const auto members = corpus();
  EXPECT_GE(members.size(), 3u);
  for (const auto& [path, bytes] : members) {
    SCOPED_TRACE(path);
    EXPECT_FALSE(bytes.empty());
    run(bytes.data(), bytes.size());
  }
}

TEST(TAPER_FUZZER, survives_changed_members) {
  const auto members = corpus();
  for (int seed = 0; seed < TAPER_ROUNDS; ++seed)
    for (const auto& [path, bytes] : members) {
      SCOPED_TRACE(path + ", seed " + std::to_string(seed));
      Bytes changed = bytes;
      random_state = seed + 1;
      const size_t size =
          LLVMFuzzerCustomMutator != nullptr
              ? LLVMFuzzerCustomMutator(changed.data(), changed.size(), changed.size(), seed)
              : LLVMFuzzerMutate(changed.data(), changed.size(), changed.size());
      ASSERT_LE(size, changed.size());
      run(changed.data(), size);
    }
}

}  // namespace
