#include "taper/runtime/method/method.h"

#include "taper/runtime/core/dense_copy.h"
#include "taper/runtime/method/method_data.h"

namespace taper {
namespace {

using internal::fail;
using internal::MethodData;
using internal::MethodView;
using internal::none;
using internal::ProgramData;
using internal::rounded_up;

// Takes from `metadata` what every method needs, always in this order; the same when measuring.
MethodData* take(Arena& arena, const ProgramData& program, MethodData& m) {
  MethodData* place = arena.take<MethodData>(1);
  return internal::take_tables(arena, program, m) ? place : nullptr;
}

MethodData empty(const ProgramData& program, internal::SessionData* session, index_t index) {
  const format::Method* table = program.method(index);
  return MethodData{&program, session, table,   MethodView(*table),
                    index,    {},      {},      {},
                    {},       {},      {},      {},
                    {},       {},      {},      {},
                    {},       {},      {},      {},
                    {},       {},      nullptr, true,
                    false,    false,   false,   false,
                    0};
}

// Builds the tables and prepares every instruction. Tensors have no addresses yet.
Error build(Arena& arena, const ProgramData& program, internal::SessionData* session, index_t index,
            const Threads* threads, MethodData*& built, ErrorInfo& info) {
  MethodData m = empty(program, session, index);
  arena.set_clearing(true);
  MethodData* place = take(arena, program, m);
  arena.set_clearing(false);
  if (place == nullptr) {
    Arena measure = Arena::measuring();
    (void)take(measure, program, m);
    return fail(info, Error::out_of_memory, TAPER_TEXT("the method's tables need {} bytes"),
                static_cast<int64_t>(measure.used() + alignof(MethodData)), 0, 0,
                m.table->name()->c_str());
  }
  built = new (place) MethodData(m);
  built->context.threads = threads;
  built->context.info = &built->info;
  Error e = internal::fill_tables(*built);
  if (e == Error::ok) {
    e = internal::prepare_at_maximum(*built);
    if (e != Error::ok) internal::end_plans(*built);
  }
  if (e != Error::ok) info = built->info;
  return e;
}

Result<index_t> find(const Program& program, const char* name, ErrorInfo& info) {
  const Result<index_t> index = program.find_method(name);
  if (index.ok()) return index.value();
  return fail(info, index.error(), TAPER_TEXT("the program has no method of this name"), 0, 0, 0,
              name);
}

size_t with_slack(size_t peak) { return peak == 0 ? 0 : rounded_up(peak + slack_bytes); }

size_t device_bytes(const MethodData& m, int space) {
  return with_slack(m.regions[space][internal::activations].peak) +
         with_slack(m.regions[space][internal::io].peak);
}

// Uses the region that the caller gave, or takes `bytes` from the arena.
Error take_region(Arena& arena, Span<std::byte> given, size_t bytes, const char* message,
                  Span<std::byte>& region, ErrorInfo& info) {
  if (given.empty()) {
    std::byte* piece = arena.take<std::byte>(static_cast<index_t>(bytes), segment_alignment);
    if (!arena.exhausted()) return region = {piece, static_cast<index_t>(bytes)}, Error::ok;
  } else {
    Arena own(given);
    std::byte* piece = own.take<std::byte>(static_cast<index_t>(bytes), segment_alignment);
    if (!own.exhausted()) return region = {piece, given.size() - (piece - given.data())}, Error::ok;
  }
  return fail(info, Error::out_of_memory, message, static_cast<int64_t>(bytes), given.size());
}

Error take_regions(MethodData& m, Arena& arena, const MethodMemory& memory, ErrorInfo& info) {
  auto& host = m.regions[0];
  Span<std::byte> activations, io, scratch;
  TAPER_TRY(take_region(arena, memory.activations, with_slack(host[internal::activations].peak),
                        TAPER_TEXT("activations need {} bytes"), activations, info));
  TAPER_TRY(take_region(arena, memory.io, with_slack(host[internal::io].peak),
                        TAPER_TEXT("inputs and outputs need {} bytes"), io, info));
  TAPER_TRY(take_region(arena, memory.scratch, m.context.scratch_bytes,
                        TAPER_TEXT("kernels need {} bytes of scratch"), scratch, info));
  host[internal::activations].base = activations.data();
  host[internal::activations].capacity = static_cast<size_t>(activations.size());
  host[internal::io].base = io.data(), host[internal::io].capacity = static_cast<size_t>(io.size());
  m.context.scratch = scratch.data(), m.context.scratch_bytes = static_cast<size_t>(scratch.size());

  for (int s = 1; s < m.program->space_count; ++s) {
    const Span<std::byte> given =
        s <= memory.device.size() ? memory.device[s - 1] : Span<std::byte>();
    const size_t needed = device_bytes(m, s),
                 io_bytes = with_slack(m.regions[s][internal::io].peak);
    if (needed > static_cast<size_t>(given.size()))
      return fail(info, Error::out_of_memory, TAPER_TEXT("space {} needs {} bytes, {} were given"),
                  s, static_cast<int64_t>(needed), given.size());
    TAPER_TRY(internal::check_device_memory(given, s, info));
    m.regions[s][internal::io] = {given.data(), io_bytes, m.regions[s][internal::io].peak};
    m.regions[s][internal::activations].base = given.data() + io_bytes;
    m.regions[s][internal::activations].capacity = static_cast<size_t>(given.size()) - io_bytes;
  }
  return Error::ok;
}

// The index of the value of an input or output; `none` if it is a number. Many functions ask for
// inputs: a copy of these accessors in each would take half a kilobyte.
__attribute__((noinline)) uint32_t value_of_input(const MethodData& m, index_t i) {
  return m.view.inputs[i].value();
}
uint32_t value_of_output(const MethodData& m, index_t i) { return m.view.outputs[i].value(); }
const char* name_of_input(const MethodData& m, index_t i) {
  return m.view.inputs[i].name()->c_str();
}

// The io buffer of tensor input `i`.
internal::Block& block_of(const MethodData& m, index_t i) {
  return m.blocks[m.view.values[value_of_input(m, i)].storage_index()];
}

Error no_tensor_input(MethodData& m, index_t i) {
  return m.fail(Error::invalid_argument,
                m.table == nullptr ? TAPER_TEXT("the method is closed")
                                   : TAPER_TEXT("there is no tensor input {}"),
                i);
}

bool is_input(const MethodData& m, index_t i) { return i >= 0 && i < m.view.inputs.size(); }
bool is_output(const MethodData& m, index_t i) { return i >= 0 && i < m.view.outputs.size(); }
bool is_tensor_input(const MethodData& m, index_t i) {
  return is_input(m, i) && value_of_input(m, i) != none;
}

const format::Expression& extent_of(const MethodData& m, index_t i, int d) {
  const format::Shape& shape = m.view.shapes[m.view.values[value_of_input(m, i)].shape()];
  return m.view.expressions[m.view.dims[shape.dims_first() + static_cast<uint32_t>(d)]];
}

// Whether extent `d` of input `i` may be `size`. `execute` checks again, with all inputs together.
Error check_extent(MethodData& m, index_t i, int d, int64_t size) {
  const format::Expression& e = extent_of(m, i, d);
  Error error = Error::ok;
  if (e.operation() == format::Operation::symbol)
    error = internal::check_range(m, static_cast<index_t>(e.a()), size);
  else if (e.operation() == format::Operation::literal && size != e.literal())
    error = fail(m.info, Error::invalid_argument, TAPER_TEXT("dimension {} is {}, and must be {}"),
                 d, size, e.literal(), name_of_input(m, i));
  if (error != Error::ok) m.info.argument = static_cast<int32_t>(i);
  return error;
}

Error check_input(MethodData& m, index_t i, DType dtype, int rank) {
  m.clear_info();
  if (!is_tensor_input(m, i)) return no_tensor_input(m, i);
  const TensorRef& expected = m.values[value_of_input(m, i)];
  if (dtype != expected.dtype)
    return fail(m.info, Error::invalid_argument,
                TAPER_TEXT("an input is {dtype}, and must be {dtype}"), static_cast<int>(dtype),
                static_cast<int>(expected.dtype), 0, name_of_input(m, i));
  if (rank != expected.shape->rank)
    return fail(m.info, Error::invalid_argument,
                TAPER_TEXT("an input has {} dimensions, and must have {}"), rank,
                expected.shape->rank, 0, name_of_input(m, i));
  return Error::ok;
}

// Accepts a new shape if the block can hold it.
Error take_shape(MethodData& m, index_t i, Span<const index_t> sizes, size_t capacity) {
  for (int d = 0; d < sizes.size(); ++d) TAPER_TRY(check_extent(m, i, d, sizes[d]));
  int64_t wide[max_rank] = {};
  for (int d = 0; d < sizes.size(); ++d) wide[d] = sizes[d];
  size_t bytes = 0;
  if (!internal::dense_bytes({wide, sizes.size()}, m.values[value_of_input(m, i)].dtype, bytes) ||
      bytes > capacity)
    return fail(m.info, Error::invalid_argument,
                TAPER_TEXT("an input is larger than the program takes: {} bytes, at most {}"),
                static_cast<int64_t>(bytes), static_cast<int64_t>(capacity), 0,
                name_of_input(m, i));
  const Shape shape = Shape::dense(sizes);
  if (!shape.same_sizes(m.given[i].shape)) m.given[i].shape = shape, m.inputs_changed = true;
  return Error::ok;
}

// Lets the input's buffer be the caller's memory, or the method's own again.
void bind_block(MethodData& m, index_t i, std::byte* memory) {
  internal::Block& block = block_of(m, i);
  if (block.bound == memory) return;
  block.bound = memory;
  m.inputs_changed = true;
  m.consistent = false;  // every view of the buffer moves
}

bool is_on_host(const MethodData& m, index_t i) {
  return internal::space_of(*m.program, m.view, m.view.values[value_of_input(m, i)]) == 0;
}

std::byte* own_memory(const MethodData& m, index_t i) {
  return m.regions[m.view.buffers[m.view.values[value_of_input(m, i)].storage_index()].space()]
                  [internal::io]
                      .base +
         block_of(m, i).place;
}

}  // namespace

Result<Method> Method::create(Session& session, const char* name, const MethodMemory& memory,
                              ErrorInfo* info) {
  ErrorInfo unread;
  ErrorInfo& why = info != nullptr ? *info : unread;
  internal::SessionData& s = session.data();
  if (!s.is_open) return fail(why, Error::invalid_argument, TAPER_TEXT("the session is closed"));
  TAPER_LET(index, find(session.program(), name, why));
  Arena arena = memory.metadata.empty() ? s.arena : Arena(memory.metadata);
  MethodData* m = nullptr;
  TAPER_TRY(build(arena, *s.program, &s, index, s.threads, m, why));
  Error e = take_regions(*m, arena, memory, m->info);
  if (e == Error::ok) e = internal::place_values(*m, internal::all_symbols);
  for (index_t i = 0; e == Error::ok && m->consistent && i < m->view.instructions.size(); ++i)
    if (m->view.instructions[i].arguments_count() > 0) e = internal::check_overlaps(*m, i);
  if (e != Error::ok) return internal::end_plans(*m), why = m->info, e;
  m->placed = true;
  if (memory.metadata.empty()) s.arena = arena;
  ++s.methods;
  return Method(m);
}

Result<size_t> Program::method_metadata_bytes(const char* name, ErrorInfo* info) const {
  ErrorInfo unread;
  TAPER_LET(index, find(*this, name, info != nullptr ? *info : unread));
  MethodData m = empty(*data_, nullptr, index);
  Arena arena = Arena::measuring();
  (void)take(arena, *data_, m);
  if (arena.exhausted()) return Error::out_of_memory;
  return arena.used() + segment_alignment;
}

Result<MethodRequirements> Program::requirements(const char* name, Span<std::byte> workspace,
                                                 ErrorInfo* info, const Threads* threads) const {
  ErrorInfo unread;
  ErrorInfo& why = info != nullptr ? *info : unread;
  TAPER_LET(metadata, method_metadata_bytes(name, &why));
  TAPER_LET(index, find_method(name));
  Arena arena(workspace);
  MethodData* m = nullptr;
  TAPER_TRY(build(arena, *data_, nullptr, index, threads, m, why));
  internal::end_plans(*m);
  MethodRequirements r;
  r.metadata = rounded_up(metadata);
  r.activations = with_slack(m->regions[0][internal::activations].peak);
  r.io = with_slack(m->regions[0][internal::io].peak);
  r.scratch = rounded_up(m->context.scratch_bytes);
  for (int s = 1; s < data_->space_count; ++s) r.device[s] = device_bytes(*m, s);
  return r;
}

const char* Method::name() const { return data_->name(); }
index_t Method::input_count() const { return data_->view.inputs.size(); }
index_t Method::output_count() const { return data_->view.outputs.size(); }
const char* Method::input_name(index_t i) const {
  return is_input(*data_, i) ? name_of_input(*data_, i) : nullptr;
}
const char* Method::output_name(index_t i) const {
  return is_output(*data_, i) ? data_->view.outputs[i].name()->c_str() : nullptr;
}

index_t Method::find_input(const char* name) const {
  for (index_t i = 0; i < input_count(); ++i)
    if (std::strcmp(input_name(i), name) == 0) return i;
  return -1;
}

index_t Method::find_output(const char* name) const {
  for (index_t i = 0; i < output_count(); ++i)
    if (std::strcmp(output_name(i), name) == 0) return i;
  return -1;
}

TensorRef Method::input(index_t i) const {
  if (!is_tensor_input(*data_, i)) return {};
  const internal::Block& block = block_of(*data_, i);
  return {block.bound != nullptr ? block.bound : own_memory(*data_, i), &data_->given[i].shape,
          data_->values[value_of_input(*data_, i)].dtype};
}

Error Method::resize_input(index_t i, Span<const index_t> sizes) {
  MethodData& m = *data_;
  if (!is_tensor_input(m, i)) return no_tensor_input(m, i);
  TAPER_TRY(
      check_input(m, i, m.values[value_of_input(m, i)].dtype, static_cast<int>(sizes.size())));
  TAPER_TRY(take_shape(m, i, sizes, block_of(m, i).capacity));
  bind_block(m, i, nullptr);
  return Error::ok;
}

Error Method::set_input(index_t i, const TensorRef& tensor) {
  MethodData& m = *data_;
  if (tensor.shape == nullptr)
    return m.fail(Error::invalid_argument, TAPER_TEXT("input {} has no shape"), i);
  TAPER_TRY(check_input(m, i, tensor.dtype, tensor.shape->rank));
  TAPER_TRY(take_shape(m, i, {tensor.shape->sizes, tensor.shape->rank}, block_of(m, i).capacity));
  if (tensor.data == nullptr && tensor.shape->numel() > 0)
    return m.fail(Error::invalid_argument, TAPER_TEXT("input {} has no memory"), i);
  bind_block(m, i, nullptr);
  if (is_on_host(m, i)) return copy_dense(tensor, own_memory(m, i)), Error::ok;
  if (!tensor.shape->is_dense())
    return m.fail(Error::invalid_argument,
                  TAPER_TEXT("input {} lies on a device and takes dense tensors"), i);
  Device* device =
      m.program
          ->devices[internal::space_of(*m.program, m.view, m.view.values[value_of_input(m, i)])];
  return device->copy_in(own_memory(m, i), tensor.data, static_cast<size_t>(tensor.size_bytes()));
}

Error Method::set_fixed_input(index_t i, const void* elements, DType dtype) {
  if (!is_tensor_input(*data_, i)) return no_tensor_input(*data_, i);
  const Shape& shape = data_->given[i].shape;
  for (int d = 0; d < shape.rank; ++d)
    if (extent_of(*data_, i, d).operation() != format::Operation::literal)
      return data_->fail(Error::invalid_argument,
                         TAPER_TEXT("dimension {} of input {} has no fixed size; give the sizes"),
                         d, i);
  return set_input(i, TensorRef{const_cast<void*>(elements), &shape, dtype});
}

Error Method::bind_input(index_t i, const TensorRef& tensor) {
  MethodData& m = *data_;
  if (tensor.shape == nullptr)
    return m.fail(Error::invalid_argument, TAPER_TEXT("input {} has no shape"), i);
  TAPER_TRY(check_input(m, i, tensor.dtype, tensor.shape->rank));
  if (!tensor.shape->is_dense() || !is_on_host(m, i) || tensor.data == nullptr ||
      reinterpret_cast<uintptr_t>(tensor.data) % static_cast<size_t>(size_bytes(tensor.dtype)) != 0)
    return fail(m.info, Error::invalid_argument,
                TAPER_TEXT("a bound input must be dense and aligned to its elements"), 0, 0, 0,
                input_name(i));
  TAPER_TRY(take_shape(m, i, {tensor.shape->sizes, tensor.shape->rank}, block_of(m, i).capacity));
  bind_block(m, i, static_cast<std::byte*>(tensor.data));
  return Error::ok;
}

Error Method::set_number(index_t i, int64_t value) {
  MethodData& m = *data_;
  m.clear_info();
  if (!is_input(m, i) || is_tensor_input(m, i))
    return m.fail(Error::invalid_argument, TAPER_TEXT("input {} takes a tensor, not a number"), i);
  const format::NumberType type = m.view.inputs[i].type();
  if (type == format::NumberType::f64) return set_number(i, static_cast<double>(value));
  if (type == format::NumberType::boolean && value != 0 && value != 1)
    return m.fail(Error::invalid_argument, TAPER_TEXT("input {} is a bool"), i);
  if (m.given[i].number != value) m.given[i].number = value, m.inputs_changed = true;
  return Error::ok;
}

Error Method::set_number(index_t i, double value) {
  MethodData& m = *data_;
  m.clear_info();
  if (!is_input(m, i) || is_tensor_input(m, i) ||
      m.view.inputs[i].type() != format::NumberType::f64)
    return m.fail(Error::invalid_argument,
                  is_tensor_input(m, i)
                      ? TAPER_TEXT("input {} takes a tensor, not a number")
                      : TAPER_TEXT("input {} takes an integer, not a number with a fraction"),
                  i);
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (m.given[i].number != bits) m.given[i].number = bits, m.inputs_changed = true;
  return Error::ok;
}

TensorRef Method::output(index_t i) const {
  if (!is_output(*data_, i) || value_of_output(*data_, i) == none) return {};
  return data_->values[value_of_output(*data_, i)];
}

Error Method::output_number(index_t i, int64_t& value) const {
  if (!is_output(*data_, i) || value_of_output(*data_, i) != none) return Error::invalid_argument;
  const uint32_t e = data_->view.outputs[i].expression();
  if (data_->view.expressions[e].type() == format::NumberType::f64) return Error::invalid_argument;
  value = data_->numbers[e];
  return Error::ok;
}

Error Method::output_number(index_t i, double& value) const {
  if (!is_output(*data_, i) || value_of_output(*data_, i) != none) return Error::invalid_argument;
  const uint32_t e = data_->view.outputs[i].expression();
  if (data_->view.expressions[e].type() == format::NumberType::f64)
    std::memcpy(&value, &data_->numbers[e], sizeof value);
  else
    value = static_cast<double>(data_->numbers[e]);
  return Error::ok;
}

const ErrorInfo& Method::last_error() const { return data_->info; }
index_t Method::instruction_count() const { return data_->view.instructions.size(); }
void Method::set_profiler(Profiler* profiler) { data_->profiler = profiler; }

InstructionInfo Method::instruction(index_t i) const {
  static constexpr const char* names[] = {"kernel", "delegate",    "copy",       "bind",    "wait",
                                          "jump",   "jump_unless", "loop_begin", "loop_end"};
  if (i < 0 || i >= instruction_count()) return {};
  const format::Instruction& in = data_->view.instructions[i];
  InstructionInfo info{names[static_cast<int>(in.kind())],
                       nullptr,
                       nullptr,
                       nullptr,
                       {data_->slots + in.arguments_first(), in.arguments_count()}};
  if (in.kind() == format::InstructionKind::kernel) {
    info.op = data_->program->view.kernels[in.target()].op()->c_str();
    info.kernel = data_->program->kernels[in.target()];
  }
  if (in.kind() == format::InstructionKind::delegate)
    info.op = data_->program->delegates[in.target()].backend->name();
  info.source = data_->debug_text(i, &format::InstructionDebug::source);
  info.module = data_->debug_text(i, &format::InstructionDebug::module_path);
  return info;
}

}  // namespace taper
