// Whether special_values.jsonl has what it is meant to have: a case with gradients for each row
// that has a derivative of its own.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "seeds.h"
#include "taper/exporter/eager/operator_info.h"

namespace {

using namespace taper;

/// Lines "name reason"; empty ones and those that begin with # are left out.
std::map<std::string, std::string> reasons_in(const char* path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << "cannot read " << path;
  std::map<std::string, std::string> reasons;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, reason;
    words >> name >> std::ws;
    std::getline(words, reason);
    EXPECT_FALSE(reason.empty()) << path << ": " << name << " has no reason";
    EXPECT_TRUE(reasons.emplace(name, reason).second) << path << ": " << name << " stands twice";
  }
  return reasons;
}

/// The rows with a case that compares a gradient.
std::set<std::string> rows_with_gradients() {
  std::set<std::string> rows;
  for (const golden::CaseFile& file : golden::read_written_cases(TAPER_SPECIAL_VALUES))
    for (const golden::Json& c : file.cases)
      if (c.contains("grads") && !c.at("grads").empty()) rows.insert(file.name);
  return rows;
}

TEST(special_values, are_compared_for_each_row_with_a_derivative) {
  const std::set<std::string> compared = rows_with_gradients();
  std::map<std::string, std::string> reasons = reasons_in(TAPER_WITHOUT_SPECIAL_VALUES);
  for (const eager::OperatorInfo* info : eager::all_operators()) {
    if (info->derivative == nullptr) continue;
    const std::string name(info->name);
    const bool is_listed = reasons.erase(name) > 0;
    EXPECT_TRUE(is_listed || compared.contains(name))
        << name << " has a derivative, but no gradient in special_values.jsonl. Add a call of it "
        << "to EXTRA_CALLS in tests/golden/special_values.py, and to formulas.py if PyTorch has no "
        << "such derivative, and run the script; or add '" << name
        << " reason' to tests/golden/without_special_values.txt";
    EXPECT_FALSE(is_listed && compared.contains(name))
        << name << " has gradients in special_values.jsonl: remove its line from "
        << "tests/golden/without_special_values.txt";
  }
  for (const auto& [name, reason] : reasons)
    ADD_FAILURE() << "tests/golden/without_special_values.txt: no row " << name
                  << " has a derivative";
}

}  // namespace
