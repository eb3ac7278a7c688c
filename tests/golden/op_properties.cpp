// What must hold for every operator, whatever its arguments (property_check.h): for the arguments
// of golden cases and of seeds (seeds.h) made into others (variation.h).
//
//   op_properties [--variations N] [--seed S] [--seeds FILE]… [--known FILE]… [--only NAME]…
//       [--verbose] FOLDER…
//
// N variations of each overload in the files of the folders, and of each row in the seeds. With
// seeds, a pointwise row without a case has a call of its own (seeds.h). A
// variation that the operator refuses counts for nothing but the line of its operator; one that
// crashes, or throws what is no ExportError, fails. Exits with 1 if a property failed, or if no
// variation of some row of the operator table was accepted; --known lists exceptions by row and
// property, or "variations", each with its reason. Rows that give no tensors (those that ask for a
// size or check a number) and refused ones are not asked for: op_goldens has their cases.
// --only takes an overload, "add.Tensor", or all of a name, "add"; then other rows may be missing.
#include <charconv>
#include <cstdio>
#include <map>
#include <set>

#include "property_check.h"
#include "seeds.h"

namespace {

using namespace taper;
using namespace taper::golden;

struct Options {
  std::vector<std::string> folders, seeds;
  std::set<std::string> only;
  Known known;
  int variations = 3;
  uint64_t seed = 1;
  bool verbose = false;
};
using CountsByRow = std::map<std::string, PropertyCounts>;

bool gives_tensors(const eager::OperatorInfo& info) {
  const Category c = info.op->category;
  return c != Category::symbolic && c != Category::check;
}

/// A number that names the text, the same on every machine (FNV-1a).
uint64_t number_of_text(const std::string& text) {
  uint64_t number = 14695981039346656037u;
  for (const char c : text) number = (number ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return number;
}

/// Variations of the cases that are about one row.
PropertyCounts vary_cases(const CaseFile& file, const std::vector<const Json*>& cases,
                          const Target& target, const Options& options) {
  PropertyCounts counts;
  Random random(options.seed ^ number_of_text(file.name));
  // eight attempts a variation that is wanted: some are refused
  for (int i = 0; i < 8 * options.variations && counts.accepted < options.variations; ++i) {
    const Json& golden = *cases[random() % cases.size()];
    std::string failure;
    try {
      const Variation variation = vary(file, golden, *target.info, random);
      failure = check_properties(variation, golden, target, options.known, counts);
      if (!failure.empty() && options.verbose)
        std::printf("    %s\n", variation.golden.dump().substr(0, 600).c_str());
    } catch (const NotHere&) {
      continue;
    }
    if (failure.empty()) continue;
    if (++counts.failed == 1 || options.verbose)
      std::printf("    FAILED %s, attempt %d, %s\n", golden.at("id").get<std::string>().c_str(), i,
                  failure.c_str());
  }
  return counts;
}

void run_file(const CaseFile& file, const Options& options, CountsByRow& by_row) {
  // by row: a case with a tensor for a number is about another one than the others
  std::map<std::string, std::pair<Target, std::vector<const Json*>>> rows;
  for (const Json& golden : file.cases) {
    if (golden.contains("error")) continue;
    try {
      const Target target = target_of(file.name, golden);
      auto& [found, cases] = rows[std::string(target.info->name)];
      found = target, cases.push_back(&golden);
    } catch (const NotHere&) {
      continue;  // op_goldens says so
    }
  }
  for (const auto& [row, chosen] : rows) {
    const auto& [target, cases] = chosen;
    if (!gives_tensors(*target.info)) continue;
    const PropertyCounts counts = vary_cases(file, cases, target, options);
    if (counts.failed > 0 || counts.accepted == 0 || options.verbose)
      std::printf("%-40s %4d accepted %4d refused %4d with symbols %4d differentiated %4d failed\n",
                  row == file.name ? row.c_str() : (file.name + ": " + row).c_str(),
                  counts.accepted, counts.refused, counts.symbolic, counts.differentiated,
                  counts.failed);
    if (options.verbose)
      for (const std::string& why : counts.refused_symbols)
        std::printf("    symbols refused: %s\n", why.c_str());
    by_row[row].add(counts);
  }
}

bool is_chosen(const std::string& overload, const Options& options) {
  return options.only.empty() || options.only.contains(overload) ||
         options.only.contains(overload.substr(0, overload.find('.')));
}

/// How many rows of the table are not as they should: without an accepted variation, or listed to
/// be without and not so.
int wrong_rows(const CountsByRow& by_row, const Known& known) {
  int wrong = 0;
  for (const eager::OperatorInfo* info : eager::all_operators()) {
    const std::string row(info->name);
    if (!gives_tensors(*info)) continue;
    const auto at = by_row.find(row);
    const bool tested = at != by_row.end() && at->second.accepted > 0;
    if (tested == (known.reason(row, "variations") == nullptr)) continue;
    ++wrong;
    std::printf(tested ? "    KNOWN TO HAVE NO VARIATIONS, but it has: %s\n"
                       : "    NO VARIATION was accepted of %s\n",
                row.c_str());
  }
  return wrong;
}

/// A whole number, at least 1.
template <class T>
T number(const std::string& option, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    throw std::invalid_argument(option + " takes a number from 1, not '" + text + "'");
  return value;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--verbose")
      options.verbose = true;
    else if (argument == "--variations" && i + 1 < argc)
      options.variations = number<int>(argument, argv[++i]);
    else if (argument == "--seed" && i + 1 < argc)
      options.seed = number<uint64_t>(argument, argv[++i]);
    else if (argument == "--seeds" && i + 1 < argc)
      options.seeds.push_back(argv[++i]);
    else if (argument == "--known" && i + 1 < argc)
      options.known.read(argv[++i]);
    else if (argument == "--only" && i + 1 < argc)
      options.only.insert(argv[++i]);
    else if (argument[0] == '-')
      return std::fprintf(stderr, "op_properties: unknown option %s\n", argv[i]), 2;
    else
      options.folders.push_back(argument);
  }
  if (options.folders.empty() && options.seeds.empty())
    return std::fprintf(stderr,
                        "usage: op_properties [--variations N] [--seed S] [--seeds FILE]... "
                        "[--known FILE]... [--only NAME]... [--verbose] FOLDER...\n"),
           2;
  CountsByRow by_row;
  for (const std::string& folder : options.folders)
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".safetensors" &&
          is_chosen(overload_of(entry.path()), options))
        run_file(CaseFile::read(entry.path()), options, by_row);
  for (const std::string& path : options.seeds)
    for (const CaseFile& file : read_seeds(path))
      if (is_chosen(file.name, options)) run_file(file, options, by_row);
  if (!options.seeds.empty())
    for (const CaseFile& file : pointwise_seeds())
      if (!by_row.contains(file.name) && is_chosen(file.name, options))
        run_file(file, options, by_row);

  PropertyCounts total;
  int tested = 0, symbolic = 0, differentiated = 0;
  for (const auto& [row, counts] : by_row) {
    total.add(counts);
    tested += counts.accepted > 0, symbolic += counts.symbolic > 0;
    differentiated += counts.differentiated > 0;
  }
  const int wrong = options.only.empty() ? wrong_rows(by_row, options.known) : 0;
  std::printf(
      "total: %d variations of %d rows, %d refused besides, %d of %d rows with symbols, %d of %d "
      "rows differentiated, %d failed\n",
      total.accepted, tested, total.refused, total.symbolic, symbolic, total.differentiated,
      differentiated, total.failed);
  return total.failed > 0 || total.accepted == 0 || wrong > 0 ? 1 : 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "op_properties: %s\n", e.what());
  return 2;
}
