// Each rule of the verifier refuses what breaks it: a table of changes to one program, and the
// message that each must meet.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "everything.h"

namespace taper::test {
namespace {

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals)
    for (const Edit& edit : refusal.edits) {
      Everything e;
      edit.make(e);
      const Outcome outcome = run(e);
      EXPECT_EQ(outcome.message, refusal.message) << "after: " << edit.what;
      EXPECT_EQ(outcome.error, refusal.error) << refusal.message << ", after: " << edit.what;
    }
}

TEST(verifier, takes_the_program_that_has_everything) {
  Everything e;
  const Outcome outcome = run(e);
  EXPECT_EQ(outcome.error, Error::ok) << outcome.message;
}

TEST(verifier, refuses_damaged_files) { expect_refusals(refusals_of_files()); }
TEST(verifier, refuses_damaged_tables_of_a_program) { expect_refusals(refusals_of_programs()); }
TEST(verifier, refuses_damaged_tables_of_a_method) { expect_refusals(refusals_of_methods()); }
TEST(verifier, refuses_damaged_instructions) { expect_refusals(refusals_of_instructions()); }
TEST(verifier, refuses_sizes_that_do_not_fit) { expect_refusals(refusals_of_sizes()); }

// The texts of a folder's sources that match `before` TAPER_TEXT("…"), each with how often it
// stands there.
std::map<std::string, int> texts_of(const std::string& folder, const std::string& before) {
  const std::regex text(before + R"re(TAPER_TEXT\(\s*((?:"[^"]*"\s*)+)\))re"), seam(R"re("\s*")re");
  std::map<std::string, int> found;
  for (const auto& entry :
       std::filesystem::directory_iterator(TAPER_RUNTIME_SOURCES "/" + folder)) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream in(entry.path());
    const std::string source(std::istreambuf_iterator<char>(in), {});
    for (std::sregex_iterator match(source.begin(), source.end(), text), end; match != end;
         ++match) {
      std::string joined = std::regex_replace((*match)[1].str(), seam, "");
      joined = joined.substr(1, joined.rfind('"') - 1);
      ++found[joined];
    }
  }
  return found;
}

TEST(verifier, has_a_row_for_each_refusal_in_its_source) {
  std::set<std::string> rows;
  for (const auto& refusals : {refusals_of_files(), refusals_of_programs(), refusals_of_methods(),
                               refusals_of_instructions(), refusals_of_sizes()})
    for (const Refusal& refusal : refusals) {
      EXPECT_TRUE(rows.insert(refusal.message).second) << "two rows: " << refusal.message;
      EXPECT_FALSE(refusal.edits.empty()) << refusal.message;
    }
  std::map<std::string, int> texts = texts_of("program", "");
  EXPECT_GT(texts.size(), 60u);
  // the caller's mistake, not the file's: device_test has it
  EXPECT_EQ(texts.erase("the memory of space {} must lie at a multiple of {} bytes"), 1u);
  for (const auto& [text, count] :
       texts_of("method", R"re(Error::(?:invalid_program|not_supported),\s*)re"))
    texts[text] += count;
  EXPECT_GT(texts.size(), 70u);
  for (const auto& [text, count] : texts) {
    EXPECT_EQ(count, 1) << "two refusals cannot be told apart: " << text;
    EXPECT_TRUE(rows.count(text) == 1) << "no row expects: " << text;
  }
  for (const std::string& row : rows)
    EXPECT_TRUE(texts.count(row) == 1) << "no source says: " << row;
}

}  // namespace
}  // namespace taper::test
