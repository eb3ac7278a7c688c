// The memory of sequences that share pages.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "taper/runtime/extension/module/shared_pages.h"
#include "taper/tests/exporter/llm/sequences.h"

namespace taper::llm {
namespace {

#ifdef __linux__
/// The bytes of this process in memory. A page that is mapped twice counts once. Pages of files do
/// not count: their share changes as other processes map the same program.
size_t resident_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  size_t bytes = 0;
  for (std::string line; std::getline(rollup, line);)
    for (const std::string_view part : {"Pss_Anon:", "Pss_Shmem:"})
      if (line.rfind(part, 0) == 0) bytes += std::stoull(line.substr(part.size())) << 10;
  return bytes;
}

TEST(forks, take_the_memory_of_one) {
  if (resident_bytes() == 0) GTEST_SKIP() << "this system does not tell the memory of a process";
  if (SharedPages::create() == nullptr) GTEST_SKIP() << "this system shares no pages";
  for (const int64_t rows : {1, 9}) {
    const LanguageModel model = family("smollm3", rows, 8192);
    constexpr int64_t length = 6000;
    constexpr size_t of_token = 4 * 2 * 2 * 8 * sizeof(float);  // layers, k and v, heads, features
    std::vector<Sequence> all;
    all.push_back(Sequence::create(model).value());
    const size_t before = resident_bytes();
    append(all[0], prompt(0, length));
    const size_t one = resident_bytes() - before;
    EXPECT_GT(one, length * of_token / 2);
    for (int i = 0; i < 8; ++i) all.push_back(all[0].fork().value());
    for (int i = 0; i < 9; ++i) append(all[static_cast<size_t>(i)], prompt(i, 8));
    EXPECT_LT(resident_bytes() - before, one + 9 * length * of_token / 10) << rows;
    // and what nobody needs is given back
    for (Sequence& s : all) s.rewind(0);
    EXPECT_LT(resident_bytes() - before, one);
  }
}

/// Of this process. The system refuses more than vm.max_map_count.
int64_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}
int64_t most_mappings() {
  int64_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return most;
}

TEST(forks, leave_mappings_for_others) {
  if (SharedPages::create() == nullptr) GTEST_SKIP() << "this system shares no pages";
  constexpr int64_t length = 700, runs = 4 * 2 * 2;  // layers, k and v, heads
  const int64_t count = most_mappings() / (2 * runs) + 200, before = mappings();
  if (count > 5000) GTEST_SKIP() << "this system has " << most_mappings() << " mappings";
  const LanguageModel model = family("smollm3", 128, length + 68);
  const auto own = [](size_t i) { return Ids{static_cast<TokenId>(2 + i % 40)}; };
  std::vector<Sequence> all;
  all.push_back(Sequence::create(model).value());
  append(all[0], prompt(0, length));
  // forks of the first one and of forks, which write, rewind and end meanwhile
  for (int64_t i = 1; i < count; ++i) {
    std::string why;
    const bool is_of_fork = i % 3 != 0 && all.back().position() > length;
    Result<Sequence> made = all[is_of_fork ? all.size() - 1 : 0].fork(&why);
    ASSERT_TRUE(made.ok()) << i << ": " << why;
    all.push_back(std::move(made.value()));
    Sequence& last = all.back();
    last.rewind(i % 5 == 0 ? length - 9 : length);
    append(last, own(static_cast<size_t>(i)));
    if (i % 7 == 0) all.pop_back();
    if (i == count / 2) {
      EXPECT_GT(mappings() - before, most_mappings() / 4) << "pages are shared";
    }
  }
  EXPECT_LT(mappings() - before, most_mappings() * 4 / 5);
  std::map<std::pair<int64_t, TokenId>, Logits> want;  // by the tokens
  for (size_t i = 1; i < all.size(); ++i) {
    const int64_t shared = all[i].position() - 1;
    const Ids last = {all[i].tokens().back()};
    Logits& expected = want[{shared, last[0]}];
    if (expected.empty()) expected = anew(model, {prompt(0, shared), last, {5}});
    ASSERT_EQ(append(all[i], {5}), expected) << i;
  }
  // what ends gives its mappings back, and others share again
  all.erase(all.begin() + 1, all.end());
  EXPECT_LT(mappings() - before, 2000);
  for (int i = 0; i < 20; ++i) all.push_back(all[0].fork().value());
  EXPECT_GT(mappings() - before, 20 * runs);
  EXPECT_EQ(append(all.back(), {5}), append(all.front(), {5}));
}
#endif

}  // namespace
}  // namespace taper::llm
