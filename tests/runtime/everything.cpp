#include "everything.h"

#include "programs.h"

namespace taper {

template <>
struct Rule<test::ops::many> {
  template <class D>
  static bool shape(Facts<D>&, const TensorType<D>*, TypeList<D>, int64_t, double, bool, DType,
                    Span<const double>, TensorType<D>& out) {
    out.dtype = DType::f32, out.rank = 1, out[0] = D(4);
    return true;
  }
};

namespace test {

namespace {

Error run_many(Context&, Maybe<View<const float>>, MaybeViewList<const float>, int64_t count,
               double scale, bool, DType, Span<const double>, View<float> out) {
  for (index_t i = 0; i < out.numel(); ++i)
    out.data()[i] = static_cast<float>(scale) * static_cast<float>(count);
  return Error::ok;
}
constexpr Kernel many_f32 = make_kernel<ops::many, run_many>("many_f32");

// The buffers of a region and a space, each above all before.
uint32_t next_buffer(MethodTables& m, uint32_t bytes, Region region, int space = 0) {
  std::vector<uint32_t> below;
  for (uint32_t i = 0; i < m.buffers.size(); ++i)
    if (m.buffers[i].region() == region && m.buffers[i].space() == space) below.push_back(i);
  return m.buffer(bytes, below, region, space);
}

}  // namespace

Everything::Everything() : kernels(test::kernels.begin(), test::kernels.end()) {
  kernels.push_back(&many_f32);
  file.all_fields = true;
  file.spaces = {"cpu", "first", "second"};
  file.queues = {format::Queue(0), format::Queue(1), format::Queue(2)};
  file.strings = {"a note"};
  file.delegates = {"backend"};
  const auto f32 = DType::f32;
  const uint32_t add_kernel = file.kernel(ops::add, {f32, f32, f32}),
                 device_kernel = file.kernel(ops::add, {f32, f32, f32}, 1),
                 join_kernel = file.kernel(ops::join, {f32, f32}),
                 fill_kernel = file.kernel(ops::fill, {f32}),
                 many_kernel = file.kernel(ops::many, {f32, f32, f32});
  const uint32_t weights_ = file.constant<float>("weights", {4}, {1, 2, 3, 4});
  const uint32_t on_device = file.constant<float>("device_weights", {4}, {1, 2, 3, 4});
  file.constants[on_device].space = 1;
  file.quantizations = {{format::QuantizationScheme::per_channel, 0, weights_, weights_},
                        {format::QuantizationScheme::per_tensor, 0, none, none}};
  const uint32_t total_ = file.state("total", {4}, f32, weights_);
  const uint32_t saved_ = file.state("saved", {4}, f32);
  const uint32_t device_state = file.state("on_device", {4}, f32, none, 1);

  MethodTables m;
  const auto number = [&](uint32_t input, int64_t high, NumberType type) {
    return m.of_symbol(m.symbol(SymbolSource::input_number, input, 0, 0, high, type), type);
  };
  n = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 1, 4));
  const uint32_t t = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 1, 1, 3));
  const uint32_t k = number(1, 3, NumberType::i64), flag = number(2, 0, NumberType::boolean),
                 real = number(3, 0, NumberType::f64);
  one = m.literal(1), yes = m.literal(1, NumberType::boolean);
  half = m.literal(MethodTables::real(0.5).content(), NumberType::f64);
  const uint32_t two = m.literal(2);
  m.literal(0, NumberType::boolean);

  const auto matrix = m.shape({n, t}), four = m.shape({m.literal(4)}), pair = m.shape({two});
  const uint32_t matrix_bytes = m.times(m.literal(4), m.times(n, t)), sixteen = m.literal(16);
  x = io_tensor(m, {n, t});
  index = io_tensor(m, {two}, DType::i64);
  spare = io_tensor(m, {two, n});
  y = io_tensor(m, {n, t});
  const auto value = [&](uint32_t bytes, uint32_t shape, DType dtype = DType::f32, int space = 0) {
    return m.value(Storage::buffer, next_buffer(m, bytes, Region::activations, space), shape,
                   dtype);
  };
  a = value(matrix_bytes, matrix);
  q = value(m.literal(32), m.shape({m.literal(8)}));
  const uint32_t filled = value(matrix_bytes, matrix), result = value(sixteen, four),
                 back = value(sixteen, four);
  copied = value(sixteen, pair, DType::i64);
  on_first = value(sixteen, four, DType::f32, 1);
  on_second = value(sixteen, four, DType::f32, 2);
  weights = m.value(Storage::constant, weights_, four);
  device_weights = m.value(Storage::constant, on_device, four);
  total = m.value(Storage::state, total_, four);
  const uint32_t saved = m.value(Storage::state, saved_, four),
                 added = m.value(Storage::state, device_state, four);
  m.values[weights] = {weights_, m.values[weights].offset(), four,
                       0,        Storage::constant,          format::DType::f32};  // quantized

  first = m.symbol(SymbolSource::element, index, 0, 0, 3);
  late = m.symbol(SymbolSource::element, copied, 1, 0, 3);
  const uint32_t counter = m.of_symbol(m.symbol(SymbolSource::loop_counter, 1, 0, 0, 100));
  const uint32_t counted = m.node(Operation::less_equal, NumberType::boolean, k, counter);
  const uint32_t late_size = m.of_symbol(late), first_size = m.of_symbol(first);
  const uint32_t grown = value(m.literal(12), m.shape({late_size}));

  using M = MethodTables;
  const auto content = [](int64_t v, ArgumentKind kind, ArgumentForm form) {
    return format::Argument(v, 0, kind, form);
  };
  add = m.run(add_kernel, {M::tensor(x), M::tensor(x), M::tensor(a)});
  loop_begin = m.instruction(InstructionKind::loop_begin, 3);
  m.run(add_kernel, {M::tensor(a), M::tensor(x), M::tensor(a)});
  loop_end = m.instruction(InstructionKind::loop_end, loop_begin, {}, counted);
  jump_unless = m.instruction(InstructionKind::jump_unless, 6, {}, flag);
  m.run(add_kernel, {M::tensor(a), M::tensor(x), M::tensor(a)});
  jump = m.instruction(InstructionKind::jump, 7);
  join = m.run(join_kernel, {m.tensors({weights, total}), M::tensor(q)});
  fill = m.run(
      fill_kernel,
      {m.list({n, t}, ArgumentKind::integer, ArgumentForm::expression_list), M::number(first_size),
       content(0, ArgumentKind::string, ArgumentForm::literal), M::tensor(filled)});
  many =
      m.run(many_kernel, {M::tensor(weights), m.tensors({-1, total}), M::integer(3),
                          content(real, ArgumentKind::real, ArgumentForm::expression),
                          content(flag, ArgumentKind::boolean, ArgumentForm::expression),
                          content(8, ArgumentKind::dtype, ArgumentForm::literal),
                          content(0, ArgumentKind::real, ArgumentForm::list), M::tensor(result)});
  copy = m.instruction(InstructionKind::copy, 0, {M::tensor(a), M::tensor(y)});
  to_first = m.instruction(InstructionKind::copy, 0, {M::tensor(total), M::tensor(on_first)}, 0, 1);
  device_add =
      m.run(device_kernel, {M::tensor(on_first), M::tensor(device_weights), M::tensor(added)}, 1);
  m.instruction(InstructionKind::copy, 0, {M::tensor(added), M::tensor(back)}, 0, 1);
  wait = m.instruction(InstructionKind::wait, 1);
  m.instruction(InstructionKind::copy, 0, {M::tensor(total), M::tensor(on_second)}, 0, 2);
  m.instruction(InstructionKind::wait, 2);
  m.instruction(InstructionKind::copy, 0, {M::tensor(index), M::tensor(copied)});
  bind = m.instruction(InstructionKind::bind, late);
  m.run(fill_kernel, {m.list({late_size}, ArgumentKind::integer, ArgumentForm::expression_list),
                      M::real(2), M::absent(), M::tensor(grown)});
  m.run(fill_kernel,
        {m.list({late_size}, ArgumentKind::integer, ArgumentForm::expression_list),
         content(1, ArgumentKind::boolean, ArgumentForm::literal), M::absent(), M::tensor(grown)});
  m.instruction(InstructionKind::copy, 0, {M::tensor(total), M::tensor(saved)});

  m.input("x", x);
  m.inputs.push_back({"k", none, 2, NumberType::i64});
  m.inputs.push_back({"flag", none, 3, NumberType::boolean});
  m.inputs.push_back({"real", none, 4, NumberType::f64});
  m.input("index", index);
  m.input("spare", spare);
  m.output("y", y);
  m.output("total", total);
  m.output("weights", weights);
  m.outputs.push_back({"elements", none, m.times(n, t), NumberType::i64});
  m.checks.push_back(
      {m.node(Operation::less_equal, NumberType::boolean, m.times(n, t), m.literal(12)),
       "{} times {} is too much",
       {n, t}});
  file.methods = {m};
  file.sources = {{"model.cpp:1"}};
  then([](WrittenFile& f) {  // quantized
    overwrite_field(f.program().constants()->Get(0)->encodings()->Get(0),
                    format::Encoding::VT_QUANTIZATION, 0u);
  });
}

FileHeader WrittenFile::header() const {
  FileHeader h;
  std::memcpy(&h, bytes.data(), sizeof h);
  return h;
}

const format::Program& WrittenFile::program() const {
  return *format::GetProgram(bytes.data() + header().metadata_offset);
}

WrittenFile write(const Everything& e) {
  WrittenFile written{e.file.bytes(), {}};
  for (const auto& change : e.table_changes) change(written);
  fix_checksum(written.bytes);
  written.part = written.bytes;
  for (const auto& change : e.last_changes) change(written);
  return written;
}

namespace {

// Runs everything in memory of exactly the sizes that are asked for.
class Runner {
 public:
  explicit Runner(Everything& e) : e_(e), file_(write(e)) {}

  Outcome run() {
    info_.error = steps();
    return {info_.error, info_.message != nullptr ? info_.message : ""};
  }

 private:
  Error steps() {
    Device* const devices[] = {&e_.devices[0], &e_.devices[1]};
    const Span<std::byte> constants[] = {e_.devices[0].take(16 + slack_bytes - e_.withheld_device)};
    LoadOptions options;
    options.devices = devices, options.device_memory = constants, options.info = &info_;
    Backend* const backends[] = {&e_.backend};
    options.backends = backends;
    options.packed = e_.packed, options.constants = e_.given;
    const Result<size_t> size = Program::metadata_bytes(file_.part);
    AlignedBytes metadata(size.ok() ? size.value() - e_.withheld : 64);
    TAPER_LET(program, Program::load(file_.part, e_.kernels, metadata, options));
    TAPER_TRY(program.verify_segments(&info_));

    AlignedBytes session_memory(program.session_bytes());
    const Span<std::byte> states[] = {e_.devices[0].take(program.session_device_bytes(1))};
    SessionOptions session_options;
    session_options.device_memory = states, session_options.info = &info_;
    TAPER_LET(session, Session::create(program, session_memory, session_options));

    TAPER_LET(tables, program.method_metadata_bytes("forward", &info_));
    AlignedBytes workspace(tables);
    TAPER_LET(needed, program.requirements("forward", workspace, &info_));
    AlignedBytes memory(needed.total());
    std::memset(memory.data(), 0, memory.size());
    const Span<std::byte> places[] = {e_.devices[0].take(needed.device[1]),
                                      e_.devices[1].take(needed.device[2])};
    MethodMemory all(memory);
    all.device = places;
    TAPER_LET(method, Method::create(session, "forward", all, &info_));
    const Error error = execute(method);
    if (error != Error::ok) info_ = method.last_error();
    return error;
  }

  static Error execute(Method& method) {
    TAPER_TRY(method.set_number(1, int64_t{2}));
    TAPER_TRY(method.set_number(3, 0.5));
    TAPER_TRY(method.execute());
    const index_t smallest[] = {1, 1}, spare[] = {2, 1};
    TAPER_TRY(method.resize_input(0, smallest));
    alignas(16) float elements[2] = {};
    const Shape shape = Shape::dense(spare);
    TAPER_TRY(method.bind_input(5, {elements, &shape, DType::f32}));
    return method.execute();
  }

  Everything& e_;
  WrittenFile file_;
  ErrorInfo info_;
};

uint8_t* vtable_of(const void* table) {
  return const_cast<uint8_t*>(static_cast<const flatbuffers::Table*>(table)->GetVTable());
}

}  // namespace

Outcome run(Everything& e) { return Runner(e).run(); }

void drop_field(const void* table, flatbuffers::voffset_t field) {
  std::memset(vtable_of(table) + field, 0, sizeof field);
}

void misalign(const void* table, flatbuffers::voffset_t field) {
  auto* t = static_cast<flatbuffers::Table*>(const_cast<void*>(table));
  uint8_t* place = t->GetAddressOf(field);
  const auto offset = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(place);
  flatbuffers::WriteScalar(place + offset + 4, uint32_t{1});
  flatbuffers::WriteScalar(place, offset + 4);
}

}  // namespace test
}  // namespace taper
