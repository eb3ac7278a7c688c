// `taper operators`: lists what exists for each row of the operator table. It reads the tables that
// this build links.
#include <algorithm>
#include <iomanip>
#include <map>
#include <memory>
#include <ostream>
#include <set>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/eager/operator_info.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

/// The operators of a decomposition: "mul sigmoid" for "glu". "" if there is none.
std::string parts_of(std::string_view name) {
  static const std::map<std::string_view, const char*> all = {
#define TAPER_PARTS(row, parts) {row, parts},
#include "taper/exporter/cli/operator_parts.def"
#undef TAPER_PARTS
  };
  const auto found = all.find(name);
  return found == all.end() ? "" : found->second;
}

/// Whether the row has its own formula for the derivative. The command itself links no derivatives.
bool has_derivative(const Operator& op) {
  static const std::set<std::string_view> all = {
#define TAPER_DERIVATIVE_NAME(name) #name,
#include "taper/exporter/eager/derivatives/derivatives.def"
#undef TAPER_DERIVATIVE_NAME
  };
  return all.contains(op.identifier);
}

/// The records for all machines that this build has kernels for, in order of preference: "f32".
std::vector<std::string> records_of(const Operator& op) {
  std::vector<std::string> records;
  const size_t prefix = std::string_view(op.identifier).size() + 1;
  for (const Kernel* kernel : eager::all_kernels())
    if (kernel->op == &op) {
      const std::string variant = std::string(kernel->name).substr(prefix);
      if (std::ranges::find(records, variant) == records.end()) records.push_back(variant);
    }
  return records;
}

/// "a kernel, or " the operators that a call becomes if no record takes it. `parts` may include the
/// operator itself.
std::string kernel_or_parts(const std::string& name, const std::string& parts) {
  const std::string whole = " " + name + " ";
  std::string all = " " + parts + " ";
  if (const size_t at = all.find(whole); at != std::string::npos) all.erase(at, whole.size() - 1);
  const size_t first = all.find_first_not_of(' ');
  if (first == std::string::npos) return "a kernel";
  return "a kernel, or " + all.substr(first, all.size() - first - 1);
}

/// What the operator becomes in a program.
std::string form_of(const eager::OperatorInfo& info) {
  const std::string parts = parts_of(info.name);
  switch (info.op->category) {
    case Category::kernel:
      return kernel_or_parts(std::string(info.name), parts);
    case Category::composite:
      if (!records_of(*info.op).empty()) return kernel_or_parts(std::string(info.name), parts);
      return parts.empty() ? "none: its sizes depend on elements" : parts;
    case Category::view:
      return "a view";
    case Category::symbolic:
      return "a number";
    case Category::check:
      return "a check";
  }
  return "";
}

/// How f16 and bf16 are handled. "-" if there are no floating arguments.
const char* halves_of(const eager::OperatorInfo& info) {
  DTypeSet taken = 0;
  for (const Kernel* kernel : eager::all_kernels())
    for (int i = 0; kernel->op == info.op && i < kernel->expected_count; ++i)
      if (kernel->expected[i].kind == Kind::tensor) taken |= kernel->expected[i].dtypes;
  const DTypeSet halves = one(DType::f16) | one(DType::bf16);
  if (info.op->category == Category::view || (taken & halves) == halves) return "native";
  if (info.halves == HalfPrecision::refuse) return "refuse";
  if (info.decomposition != nullptr) return info.decomposition->rounds_once ? "widen" : "parts";
  return (taken & one(DType::f32)) != 0 ? "widen" : "-";
}

const char* gradient_of(const eager::OperatorInfo& info) {
  if (has_derivative(*info.op)) return "formula";
  return info.decomposition != nullptr ? "parts" : "-";
}

void print_one(const eager::OperatorInfo& info, std::ostream& out) {
  out << info.op->text << "\n  becomes   " << form_of(info) << '\n';
  if (const std::vector<std::string> records = records_of(*info.op); !records.empty()) {
    out << "  records  ";
    for (const std::string& record : records) out << ' ' << record;
    out << '\n';
  }
  out << "  halves    " << halves_of(info) << "\n  gradient  " << gradient_of(info) << '\n';
}

void print_all(std::ostream& out) {
  size_t width = 0, count = 0;
  for (const eager::OperatorInfo* info : eager::all_operators())
    width = std::max(width, info->name.size());
  const auto line = [&](std::string_view name, const char* halves, const char* gradient,
                        const std::string& form) {
    out << std::left << std::setw(static_cast<int>(width)) << name << "  " << std::setw(6) << halves
        << "  " << std::setw(8) << gradient << "  " << form << '\n';
  };
  line("operator", "halves", "gradient", "becomes");
  for (const eager::OperatorInfo* info : eager::all_operators()) {
    line(info->name, halves_of(*info), gradient_of(*info), form_of(*info));
    ++count;
  }
  out << count << " operators\n";
}

/// All overloads of a name, or one of them.
void print_named(const std::string& name, std::ostream& out) {
  bool found = false;
  for (const eager::OperatorInfo* info : eager::all_operators()) {
    // the name without its namespace, too: nms for torchvision::nms
    const std::string_view whole = info->name, own = whole.substr(whole.rfind(':') + 1);
    if (whole == name || own == name || own.starts_with(name + ".") ||
        whole.starts_with(name + ".")) {
      print_one(*info, out);
      found = true;
    }
  }
  if (!found)
    throw ExportError("there is no operator " + io::printable(name) +
                      "; `taper operators` lists all");
}

}  // namespace

void add_operators_command(CommandLine& line, std::ostream& out) {
  Command command = line.add("operators", "Lists the operators, or says how one is computed");
  auto name = std::make_shared<std::string>();
  command.option("name", *name, "An operator: add.Tensor, or add for all that begin so");
  command.footer(R"(Examples:
  taper operators
  taper operators glu)");
  command.does([name, &out] { name->empty() ? print_all(out) : print_named(*name, out); });
}

}  // namespace taper::cli
