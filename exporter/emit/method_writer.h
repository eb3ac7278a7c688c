// The tables of one method, ready to be written. Internal to the writer.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/emit/memory_plan.h"
#include "taper/exporter/emit/placement.h"
#include "taper/exporter/emit/program_tables.h"
#include "taper/exporter/emit/report.h"
#include "taper/schema/program_generated.h"

namespace taper::emit {

struct MethodTables {
  struct Input {
    std::string name;
    uint32_t value = none, symbol = none;
  };
  struct Output {
    std::string name;
    uint32_t value = none, expression = none;
  };
  struct Check {
    uint32_t condition;
    std::string message;
  };

  std::string name;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<format::Symbol> symbols;
  std::vector<std::string> symbol_names;
  std::vector<format::Expression> expressions;
  std::vector<Check> checks;
  std::vector<format::Buffer> buffers;
  std::vector<uint32_t> above;
  std::vector<format::Shape> shapes;
  std::vector<uint32_t> dims;
  std::vector<format::Value> values;
  std::vector<format::Argument> arguments;
  std::vector<int64_t> lists;
  std::vector<format::Instruction> instructions;
  int64_t lower_bound_bytes = 0;
  std::vector<format::InstructionDebug> debug_instructions;
  std::vector<uint32_t> debug_value_names;
};

/// Legalizes, places and plans `graph`, which is edited, and makes the method's tables. Adds what
/// the method needs, such as constants, to `program`, and adds the method to `report`.
MethodTables write_method(const std::string& name, ir::Graph& graph,
                          const target::KernelTable& kernels, ProgramTables& program,
                          MethodReport& report);

}  // namespace taper::emit
