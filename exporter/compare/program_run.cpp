// Runs a program, and copies the results of each instruction before others overwrite them.
#include <algorithm>
#include <unordered_set>

#include "taper/exporter/compare/compare.h"
#include "taper/exporter/inspect/method_outputs.h"
#include "taper/exporter/inspect/program_file.h"
#include "taper/exporter/inspect/program_text.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/pointwise.h"
#include "taper/runtime/extension/module/message.h"
#include "taper/runtime/method/method.h"
#include "taper/runtime/program/tables.h"

namespace taper::compare {
namespace {

/// Operators whose results have channels last.
bool gives_channels_last(const Operator& op) {
  return &op == &ops::taper_convolution || &op == &ops::taper_winograd_convolution ||
         &op == &ops::taper_max_pool2d || &op == &ops::taper_avg_pool2d;
}

/// Operators whose results lie as what they read.
bool keeps_channels_last(const Operator& op) {
  return ir::is_pointwise(op) || &op == &ops::taper_pointwise || &op == &ops::cat ||
         &op == &ops::constant_pad_nd;
}

/// Collects results while a method executes.
class Watch {
 public:
  Watch(const Program& program, Method& method)
      : program_(program.table()),
        method_(method),
        text_(program, inspect::find_method(program, method.name())),
        table_(text_.table()) {
    profiler_.events = {&event_, 1};
    profiler_.now = clock_read;
    current_ = this;
    method_.set_profiler(&profiler_);
  }
  ~Watch() {
    method_.set_profiler(nullptr);
    current_ = nullptr;
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  std::vector<Result> execute() {
    if (method_.execute() != Error::ok)
      throw ExportError(std::string(method_.name()) + ": " + describe(method_.last_error()));
    take_last();
    if (last_ == none && method_.instruction_count() > 0)
      throw ExportError(
          "this build of the runtime cannot show the results of instructions; configure it with "
          "-DTAPER_PROFILE=ON");
    return std::move(results_);
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  /// The runtime asks for the time before and after each instruction, and then records an event. So
  /// if there is an event when the clock is read, its instruction has just finished.
  static uint64_t clock_read() {
    current_->take_last();
    return 0;
  }

  void take_last() {
    if (profiler_.count == 0) return;
    profiler_.count = 0;
    // If an instruction is recorded twice in a row, only the second time counts.
    if (event_.instruction == last_) results_.resize(before_last_);
    last_ = event_.instruction;
    before_last_ = results_.size();
    take(event_.instruction);
  }

  void take(uint32_t index) {
    const format::Instruction& in = *table_.instructions()->Get(index);
    const InstructionInfo info = method_.instruction(static_cast<index_t>(index));
    const uint32_t count = in.arguments_count(), first = count - result_count(in, info);
    int result = 0;
    for (uint32_t i = first; i < count; ++i) {
      const format::Argument& argument = *table_.arguments()->Get(in.arguments_first() + i);
      const Slot& slot = info.arguments[static_cast<index_t>(i)];
      if (slot.kind != Kind::tensor || !slot.present) {
        ++result;
      } else if (argument.form() == format::ArgumentForm::list) {
        const auto list = static_cast<uint32_t>(argument.content());
        for (uint32_t k = 0; k < slot.size; ++k)
          add(index, result++, table_.lists()->Get(list + k), slot.tensors[k]);
      } else {
        add(index, result++, argument.content(), slot.tensor);
      }
    }
  }

  static uint32_t result_count(const format::Instruction& in, const InstructionInfo& info) {
    switch (in.kind()) {
      case format::InstructionKind::kernel:
        return info.kernel->result_count;
      case format::InstructionKind::delegate:
        return in.results();
      case format::InstructionKind::copy:
        return 1;
      default:
        return 0;
    }
  }

  void add(uint32_t index, int result, int64_t value, const TensorRef* tensor) {
    if (value < 0 || tensor == nullptr) return;
    const auto v = static_cast<uint32_t>(value);
    if (!is_on_host(*table_.values()->Get(v))) return;
    const format::Instruction& in = *table_.instructions()->Get(index);
    io::Array array = inspect::array_of(*tensor);
    const bool is_last = has_channels_last(index, in, array);
    if (is_last) channels_last_.insert(v);
    results_.push_back({text_.value_name(v), result, text_.instruction_name(in), first_input(in),
                        text_.instruction_module(index), text_.instruction_source(index),
                        std::move(array), false, reads_folded_weights(in), is_last, is_fused(index),
                        in.kind() == format::InstructionKind::delegate});
  }

  /// Whether the instruction runs a program of pointwise operators.
  bool is_fused(uint32_t index) const {
    const InstructionInfo info = method_.instruction(static_cast<index_t>(index));
    if (info.kernel == nullptr) return false;
    const auto has_program = [&](const Operator& op, size_t position) {
      return info.kernel->op == &op && info.arguments[position].size > 0;
    };
    using Convolution = ir::Call<ops::taper_convolution>;
    using Winograd = ir::Call<ops::taper_winograd_convolution>;
    return info.kernel->op == &ops::taper_pointwise ||
           has_program(ops::taper_convolution, Convolution::position<"program">) ||
           has_program(ops::taper_winograd_convolution, Winograd::position<"program">);
  }

  /// Whether the exporter may have turned this result.
  bool has_channels_last(uint32_t index, const format::Instruction& in,
                         const io::Array& array) const {
    const Kernel* kernel = method_.instruction(static_cast<index_t>(index)).kernel;
    if (kernel == nullptr || array.sizes.size() != 4) return false;
    return gives_channels_last(*kernel->op) ||
           (keeps_channels_last(*kernel->op) &&
            std::ranges::any_of(tensors_of(in),
                                [&](uint32_t v) { return channels_last_.contains(v); }));
  }

  bool is_on_host(const format::Value& value) const {
    switch (value.storage()) {
      case format::Storage::buffer:
        return table_.buffers()->Get(value.storage_index())->space() == 0;
      case format::Storage::constant:
        return program_.constants()->Get(value.storage_index())->space() == 0;
      case format::Storage::state:
        return program_.states()->Get(value.storage_index())->space() == 0;
    }
    return false;
  }

  /// The tensors among the arguments, in order, and those in lists behind them.
  std::vector<uint32_t> tensors_of(const format::Instruction& in) const {
    std::vector<uint32_t> values, in_lists;
    for (uint32_t i = 0; i < in.arguments_count(); ++i) {
      const format::Argument& a = *table_.arguments()->Get(in.arguments_first() + i);
      if (a.kind() != format::ArgumentKind::tensor) continue;
      const auto content = static_cast<uint32_t>(a.content());
      if (a.form() == format::ArgumentForm::literal) values.push_back(content);
      if (a.form() == format::ArgumentForm::list)
        for (uint32_t k = 0; k < a.count(); ++k)
          if (const int64_t v = table_.lists()->Get(content + k); v >= 0)
            in_lists.push_back(static_cast<uint32_t>(v));
    }
    values.insert(values.end(), in_lists.begin(), in_lists.end());
    return values;
  }

  std::string first_input(const format::Instruction& in) const {
    const std::vector<uint32_t> tensors = tensors_of(in);
    return tensors.empty() ? "" : text_.value_name(tensors.front());
  }

  /// A pass gives this ending to weights that it computed from a node and the one behind it.
  bool reads_folded_weights(const format::Instruction& in) const {
    return std::ranges::any_of(tensors_of(in), [&](uint32_t v) {
      return text_.storage_path(*table_.values()->Get(v)).ends_with(".folded");
    });
  }

  static inline thread_local Watch* current_ = nullptr;

  const format::Program& program_;
  Method& method_;
  inspect::MethodText text_;
  const format::Method& table_;
  ProfileEvent event_{};
  Profiler profiler_;
  std::vector<Result> results_;
  std::unordered_set<uint32_t> channels_last_;  ///< values
  size_t before_last_ = 0;
  uint32_t last_ = none;
};

}  // namespace

Run run_program(const Program& program, Method& method) {
  Run run;
  run.nodes = Watch(program, method).execute();
  for (io::Array& output : inspect::read_outputs(method))
    run.outputs.push_back(
        {method.output_name(static_cast<index_t>(run.outputs.size())), "", std::move(output)});
  return run;
}

}  // namespace taper::compare
