#include "programs.h"

namespace taper::test {

ProgramFile sums_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  const uint32_t sum = p.kernel(ops::sum_rows, {DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t batch = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 1, 8));
  const uint32_t matrix = m.shape({batch, m.literal(4)}), vector = m.shape({batch});
  const uint32_t matrix_bytes = m.times(batch, m.literal(16)),
                 vector_bytes = m.times(batch, m.literal(4));
  const uint32_t x_buffer = m.buffer(matrix_bytes, {}, Region::io);
  const uint32_t y_buffer = m.buffer(vector_bytes, {x_buffer}, Region::io);
  const uint32_t t_buffer = m.buffer(matrix_bytes);
  const uint32_t x = m.value(Storage::buffer, x_buffer, matrix),
                 t = m.value(Storage::buffer, t_buffer, matrix);
  const uint32_t y = m.value(Storage::buffer, y_buffer, vector);
  m.run(add, {m.tensor(x), m.tensor(x), m.tensor(t)});
  m.run(add, {m.tensor(t), m.tensor(x), m.tensor(t)});
  m.run(sum, {m.tensor(t), m.tensor(y)});
  m.input("x", x);
  m.output("y", y);
  p.sources = {{"model.cpp:10", "model.cpp:11", "model.cpp:12"}};
  return p;
}

uint32_t io_tensor(MethodTables& m, std::vector<uint32_t> extents, DType dtype) {
  std::vector<uint32_t> below;
  for (uint32_t i = 0; i < m.buffers.size(); ++i)
    if (m.buffers[i].region() == Region::io && m.buffers[i].space() == 0) below.push_back(i);
  uint32_t bytes = m.literal(size_bytes(dtype));
  for (const uint32_t extent : extents) bytes = m.times(bytes, extent);
  return m.value(Storage::buffer, m.buffer(bytes, below, Region::io), m.shape(extents), dtype);
}

Loaded::Loaded(AlignedBytes bytes, const LoadOptions& given, KernelSet set)
    : file(std::move(bytes)) {
  LoadOptions options = given;
  options.info = &info;
  const Result<size_t> size = Program::metadata_bytes(file);
  metadata = AlignedBytes(size.ok() ? size.value() : 64);
  program = std::make_unique<Result<Program>>(Program::load(file, set, metadata, options));
  if (!program->ok()) {
    info.error = program->error();
    return;
  }
  session_memory = AlignedBytes(program->value().session_bytes());
  SessionOptions session_options;
  session_options.info = &info;
  session = std::make_unique<Result<Session>>(
      Session::create(program->value(), session_memory, session_options));
  if (!session->ok()) info.error = session->error();
}

Result<Method> Loaded::method(const char* name) {
  if (session == nullptr || !session->ok()) return info.error;
  const Result<size_t> tables = program->value().method_metadata_bytes(name, &info);
  if (!tables.ok()) return tables.error();
  AlignedBytes workspace(tables.value());
  const Result<MethodRequirements> needed = program->value().requirements(name, workspace, &info);
  if (!needed.ok()) return needed.error();
  method_memory.push_back(std::make_unique<AlignedBytes>(needed.value().total()));
  // nobody may rely on what lies there
  std::memset(method_memory.back()->data(), 0xa5, method_memory.back()->size());
  Result<Method> method =
      Method::create(session->value(), name, MethodMemory(*method_memory.back()), &info);
  if (!method.ok()) info.error = method.error();
  return method;
}

Error create_error(const ProgramFile& file) {
  Loaded loaded(file);
  return loaded.method().error();
}

}  // namespace taper::test
