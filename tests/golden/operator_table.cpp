// Prints docs/operators.md: what exists for each row of the operator table, read from the tables
// that the build links.
//
//   operator_table --parts PARTS GOLDEN_COUNTS… SAMPLE_COUNTS > docs/operators.md
//
// The counts are lines "add.Tensor 24/24", passed and run, that op_goldens and opinfo.py wrote; the
// parts are what operator_parts found in traces, "glu: mul sigmoid".
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/eager/operator_info.h"

using namespace taper;

namespace {

const char* name_of_category(Category c) {
  constexpr const char* names[] = {"kernel", "view", "composite", "symbolic", "check", "refused"};
  return names[static_cast<int>(c)];
}

// The names of all records, those of other machines and of libraries that this build lacks among
// them: the page says the same wherever it is written.
#undef TAPER_X86_LEVELS
#define TAPER_X86_LEVELS 1
#define TAPER_KERNEL_NAME(name) #name,
constexpr std::string_view all_records[] = {
#include "taper/kernels/optimized/kernels.def"
#include "taper/kernels/portable/kernels.def"
};
#undef TAPER_KERNEL_NAME

/// The variants of an operator's records, in the order of preference.
struct Records {
  std::string portable;  ///< "f32 f64 i64"
  std::string faster;    ///< "f32_avx512 f32_avx2"
};
/// By the operator's identifier. A record is called "<identifier>_<variant>".
std::map<std::string_view, Records> records_by_operator() {
  std::set<std::string_view> identifiers;
  for (const eager::OperatorInfo* info : eager::all_operators())
    identifiers.insert(info->op->identifier);
  std::map<std::string_view, Records> all;
  for (const std::string_view record : all_records) {
    size_t end = record.rfind('_');  // of the longest identifier: "sum_dim_IntList", not "sum"
    while (end != record.npos && identifiers.count(record.substr(0, end)) == 0)
      end = end > 0 ? record.rfind('_', end - 1) : record.npos;
    if (end == record.npos) throw std::runtime_error("no operator of " + std::string(record));
    const std::string variant(record.substr(end + 1));
    Records& records = all[record.substr(0, end)];
    std::string& list = variant.find("avx") == variant.npos ? records.portable : records.faster;
    if ((' ' + list + ' ').find(' ' + variant + ' ') == list.npos)
      list += (list.empty() ? "" : " ") + variant;
  }
  return all;
}

/// Lines of a word and what follows it.
using Lines = std::map<std::string, std::string>;
Lines read_lines(const char* path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(std::string("cannot read ") + path);
  Lines lines;
  std::string row, rest;
  while (in >> row && std::getline(in >> std::ws, rest)) lines[row] = rest;
  return lines;
}

struct Count {
  int passed = 0, run = 0;
};
/// The sum of counts such as "3/4".
Count total_of(const Lines& counts) {
  Count total;
  for (const auto& [row, count] : counts) {
    total.passed += std::stoi(count);
    total.run += std::stoi(count.substr(count.find('/') + 1));
  }
  return total;
}
/// "12 of 15 (80.0 %)"
std::string to_text(const Count& count) {
  char text[64];
  std::snprintf(text, sizeof text, "%d of %d (%.1f %%)", count.passed, count.run,
                100.0 * count.passed / count.run);
  return text;
}

/// What an operator becomes in a program.
std::string form_of(const eager::OperatorInfo& info, const Lines& parts) {
  const auto found = parts.find(std::string(info.name) + ":");
  std::string in_parts = found == parts.end() ? "" : found->second;
  switch (info.op->category) {
    case Category::kernel: {
      // the traces hold the whole as well as its parts
      const std::string whole(info.name), all = " " + in_parts + " ";
      const size_t at = all.find(" " + whole + " ");
      if (at != std::string::npos) in_parts = all.substr(1, at) + all.substr(at + whole.size() + 2);
      while (!in_parts.empty() && in_parts.back() == ' ') in_parts.pop_back();
      return in_parts.empty() ? "kernel" : "kernel, or " + in_parts;
    }
    case Category::composite:
      return in_parts.empty() ? "none: its sizes depend on elements" : in_parts;
    case Category::view:
      return "view";
    case Category::symbolic:
      return "number";
    case Category::check:
      return "check";
    case Category::refused:
      return "refused: complex numbers";
  }
  return "";
}

/// What becomes of f16 and bf16, "" where there are no floating arguments.
const char* half_precision_of(const eager::OperatorInfo& info) {
  DTypeSet taken = 0;
  for (const Kernel* kernel : eager::all_kernels())  // whatever machine writes the table
    for (int i = 0; kernel->op == info.op && i < kernel->expected_count; ++i)
      if (kernel->expected[i].kind == Kind::tensor) taken |= kernel->expected[i].dtypes;
  const DTypeSet halves = one(DType::f16) | one(DType::bf16);
  if (info.op->category == Category::view || (taken & halves) == halves) return "native";
  if (info.halves == HalfPrecision::refuse) return "refuse";
  if (info.decomposition != nullptr) return info.decomposition->rounds_once ? "widen" : "parts";
  return (taken & one(DType::f32)) != 0 ? "widen" : "";
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 5 || std::strcmp(argv[1], "--parts") != 0)
    return std::fprintf(stderr,
                        "usage: operator_table --parts PARTS GOLDEN_COUNTS... SAMPLE_COUNTS\n"),
           2;
  const Lines parts = read_lines(argv[2]);
  Lines goldens, samples = read_lines(argv[argc - 1]);
  for (int i = 3; i + 1 < argc; ++i) goldens.merge(read_lines(argv[i]));
  const Count golden = total_of(goldens), sample = total_of(samples);
  const size_t sampled = samples.size();
  std::map<Category, int> rows;
  std::map<std::string_view, Records> records = records_by_operator();
  std::string table;
  for (const eager::OperatorInfo* info : eager::all_operators()) {
    const auto& [portable, faster] = records[info->op->identifier];
    const std::string name(info->name);
    ++rows[info->op->category];
    table += "| `" + name + "` | " + name_of_category(info->op->category) + " | " +
             form_of(*info, parts) + " | " + portable + " | " + faster + " | " +
             half_precision_of(*info) + " | " +
             (info->derivative      ? "yes"
              : info->decomposition ? "through its parts"
                                    : "") +
             " | " + goldens[name] + " | " + samples[name] + " |\n";
  }
  std::printf(R"(# Operators

Each row of the last table is an operator of PyTorch or torchao that Taper knows, or one of Taper's own (`taper::`).
`build/release/bin/operator_table` writes this page from the tables of operators and kernels, and a test compares it.

The column *in a program* says what becomes of an operator:

- **kernel**: one instruction. If no kernel record takes the arguments, the call becomes the operators behind "or".
- **view**: no instruction, but a value with other sizes and strides.
- **composite**: the call becomes the operators in this column. They are those of all its golden cases, as
  `build/release/bin/operator_parts` traces them. Views and casts are listed only if there is nothing else. "nothing" means that the
  argument is the result.
- **symbolic**, **check**: a number that the program computes with, or an assumption that it checks.
- **refused**: takes or gives complex numbers.

The *records* are kernels, named by their dtypes. `small_float` is f16 and bf16. `small_integer` is bool, u8, i8, i16 and i32. `b4` is
every dtype of four bytes. *Faster records* are those that need `avx2`, `avx512` or `avx512_bf16`.

The column *halves* says what becomes of f16 and bf16:

- **native**: a record takes them. It computes in f32 and rounds once, or moves bits.
- **widen**: the call is computed in f32 between casts, which a trace records. The result is rounded once.
- **parts**: a composite without either; its parts do one of these, and each rounds.
- **refuse**: the call is refused, because the result in f32 would be another one. The rule of the operator says so.

The column *derivative* says how gradients are computed: "yes" is a formula of its own, "through its parts" uses the formulas of the
operators that it becomes.

The last two columns count results of PyTorch: how many agreed, of how many were compared.

- *Golden cases* are stored results: values, gradients and errors (`build/release/bin/op_goldens`). The exceptions and their reasons
  stand in `tests/golden/known_eager.txt` and `known_quantized.txt`.
- *Samples* are those of PyTorch's own operator tests (`tests/conformance/opinfo.py`). Their exceptions stand in `known_opinfo.txt`
  beside it.

Golden cases: %s. Of the other %d, %s have complex numbers and are refused. Samples: %s, over %zu operators.

| category | rows |
| --- | --- |
)",
              to_text(golden).c_str(), golden.run - golden.passed,
              parts.at("(complex_numbers):").c_str(), to_text(sample).c_str(), sampled);
  for (const auto& [category, count] : rows)
    std::printf("| %s | %d |\n", name_of_category(category), count);
  std::printf(
      "\n| operator | category | in a program | portable records | faster records | halves | "
      "derivative | "
      "golden cases | samples |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n%s",
      table.c_str());
} catch (const std::exception& e) {
  return std::fprintf(stderr, "operator_table: %s\n", e.what()), 1;
}
