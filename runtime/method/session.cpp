#include "taper/runtime/method/session.h"

#include "taper/runtime/method/session_data.h"
#include "taper/runtime/program/format.h"

namespace taper {
namespace internal {
namespace {

size_t bytes_of(const format::State& s) {
  size_t bytes = 0;
  // load has verified this
  (void)dense_bytes(span_of(s.sizes()), static_cast<DType>(s.dtype()), bytes);
  return bytes;
}

}  // namespace

SessionParts::SessionParts(Arena& arena, const ProgramData& program)
    : data(arena.take<SessionData>(1)),
      states(arena.take<void*>(program.view.states.size())),
      state_bytes(arena.take<size_t>(program.view.states.size())) {
  for (index_t i = 0; i < program.view.states.size(); ++i) {
    const format::State& s = program.view.states[i];
    const size_t bytes = bytes_of(s);
    void* place = s.space() == 0
                      ? arena.take<std::byte>(static_cast<index_t>(bytes), segment_alignment)
                      : nullptr;
    if (arena.is_measuring() || arena.exhausted()) continue;
    states[i] = place, state_bytes[i] = bytes;
  }
  arena.take<std::byte>(static_cast<index_t>(slack_bytes));
}

namespace {

/// The bytes of the states in a device's memory.
size_t device_state_bytes(const ProgramData& program, int space) {
  size_t total = 0;
  for (const format::State& s : program.view.states)
    if (s.space() == space) total += rounded_up(bytes_of(s) + slack_bytes);
  return total;
}

Error place_device_states(SessionData& d, Span<const Span<std::byte>> memory, ErrorInfo& info) {
  for (int space = 1; space < d.program->space_count; ++space) {
    const size_t needed = device_state_bytes(*d.program, space);
    const size_t given = space <= memory.size() ? static_cast<size_t>(memory[space - 1].size()) : 0;
    if (needed > given)
      return fail(info, Error::out_of_memory,
                  TAPER_TEXT("space {} needs {} bytes for states, {} were given"), space,
                  static_cast<int64_t>(needed), static_cast<int64_t>(given));
    if (needed == 0) continue;
    TAPER_TRY(check_device_memory(memory[space - 1], space, info));
    std::byte* place = memory[space - 1].data();
    for (index_t i = 0; i < d.program->view.states.size(); ++i) {
      const format::State& s = d.program->view.states[i];
      if (s.space() != space) continue;
      d.state_bytes[i] = bytes_of(s);
      d.states[i] = place;
      place += rounded_up(d.state_bytes[i] + slack_bytes);
    }
  }
  return Error::ok;
}

// Source of zeros for a device, copied piece by piece.
constexpr std::byte zeros[64] = {};

Error clear(Device* device, std::byte* to, size_t bytes) {
  if (device == nullptr) return std::memset(to, 0, bytes), Error::ok;
  for (size_t at = 0; at < bytes; at += sizeof zeros)
    TAPER_TRY(
        device->copy_in(to + at, zeros, bytes - at < sizeof zeros ? bytes - at : sizeof zeros));
  return Error::ok;
}

Error initialise(SessionData& d, bool zeroed, ErrorInfo& info) {
  for (index_t i = 0; i < d.program->view.states.size(); ++i) {
    const format::State& s = d.program->view.states[i];
    Device* device = d.program->devices[s.space()];
    if (d.state_bytes[i] == 0) continue;
    if (s.initial() == none) {
      if (zeroed && device == nullptr) continue;
      TAPER_TRY(clear(device, static_cast<std::byte*>(d.states[i]), d.state_bytes[i]));
      continue;
    }
    const PlacedConstant& initial = d.program->constants[s.initial()];
    if (initial.data == nullptr || initial.is_packed())
      return fail(info, Error::not_supported,
                  TAPER_TEXT("the initial value of a state is not in the file, or is packed there"),
                  i, 0, 0, s.path()->c_str());
    if (device != nullptr)
      TAPER_TRY(device->copy_in(d.states[i], initial.data, d.state_bytes[i]));
    else
      std::memcpy(d.states[i], initial.data, d.state_bytes[i]);
  }
  for (int space = 1; space < d.program->space_count; ++space)
    TAPER_TRY(d.program->devices[space]->wait());
  return Error::ok;
}

Error make(const Program& program, Span<std::byte> memory, const SessionOptions& options,
           SessionData*& made, ErrorInfo& info) {
  const ProgramData& p = program.data();
  Arena arena(memory);
  SessionParts parts(arena, p);
  if (arena.exhausted())
    return fail(info, Error::out_of_memory, TAPER_TEXT("the session needs {} bytes, {} were given"),
                static_cast<int64_t>(program.session_bytes()), memory.size());
  made = new (parts.data)
      SessionData{&p, options.threads, parts.states, parts.state_bytes, arena, arena, 0, true};
  TAPER_TRY(place_device_states(*made, options.device_memory, info));
  const Error e = initialise(*made, options.zeroed, info);
  if (e != Error::ok) (void)p.end_on_devices(DeviceUser::session, made);
  return e;
}

}  // namespace
}  // namespace internal

size_t Program::session_bytes() const {
  if (!data_->is_open()) return 0;
  Arena arena = Arena::measuring();
  internal::SessionParts parts(arena, *data_);
  return arena.used() + segment_alignment;
}

size_t Program::session_device_bytes(int space) const {
  return data_->is_open() ? internal::device_state_bytes(*data_, space) : 0;
}

using internal::fail;
using internal::SessionData;

Result<Session> Session::create(const Program& program, Span<std::byte> memory,
                                const SessionOptions& options) {
  ErrorInfo unread;
  ErrorInfo& info = options.info != nullptr ? *options.info : unread;
  const internal::ProgramData& p = program.data();
  // counted first, so that no other thread can close the program meanwhile
  if (!p.add_session())
    return fail(info, Error::invalid_argument, TAPER_TEXT("the program is closed"));
  SessionData* d = nullptr;
  const Error e = internal::make(program, memory, options, d, info);
  if (e == Error::ok) return Session(d);
  p.sessions.fetch_sub(1);
  return e;
}

Program Session::program() const { return Program(data_->program); }

index_t Session::state_count() const {
  return data_->is_open ? data_->program->view.states.size() : 0;
}

StateView Session::state(index_t i) const {
  if (i < 0 || i >= state_count()) return {};
  const format::State& s = data_->program->view.states[i];
  return {s.path()->c_str(),
          data_->states[i],
          static_cast<DType>(s.dtype()),
          internal::span_of(s.sizes()),
          data_->state_bytes[i],
          s.space() == 0};
}

Result<index_t> Session::find_state(const char* path) const {
  for (index_t i = 0; i < state_count(); ++i)
    if (std::strcmp(state(i).path, path) == 0) return i;
  return Error::invalid_argument;
}

Error Session::read_state(index_t i, Span<std::byte> bytes) const {
  if (i < 0 || i >= state_count() || static_cast<size_t>(bytes.size()) != data_->state_bytes[i])
    return Error::invalid_argument;
  if (bytes.empty()) return Error::ok;
  const int space = data_->program->view.states[i].space();
  if (space == 0)
    return std::memcpy(bytes.data(), data_->states[i], data_->state_bytes[i]), Error::ok;
  Device* device = data_->program->devices[space];
  TAPER_TRY(device->copy_out(bytes.data(), data_->states[i], data_->state_bytes[i]));
  return device->wait();
}

Error Session::write_state(index_t i, Span<const std::byte> bytes) {
  if (i < 0 || i >= state_count() || static_cast<size_t>(bytes.size()) != data_->state_bytes[i])
    return Error::invalid_argument;
  if (bytes.empty()) return Error::ok;
  const int space = data_->program->view.states[i].space();
  if (space == 0)
    return std::memcpy(data_->states[i], bytes.data(), data_->state_bytes[i]), Error::ok;
  Device* device = data_->program->devices[space];
  TAPER_TRY(device->copy_in(data_->states[i], bytes.data(), data_->state_bytes[i]));
  return device->wait();
}

Error Session::reset() {
  TAPER_REQUIRE(data_->is_open, invalid_argument);
  ErrorInfo info;
  return internal::initialise(*data_, false, info);
}

Error Session::copy_states(const Session& other) {
  TAPER_REQUIRE(data_->is_open && other.data_->is_open, invalid_argument);
  if (other.data_->program != data_->program) return Error::invalid_argument;
  for (index_t i = 0; i < state_count(); ++i) {
    const int space = data_->program->view.states[i].space();
    if (data_->state_bytes[i] == 0) continue;
    if (space == 0)
      std::memcpy(data_->states[i], other.data_->states[i], data_->state_bytes[i]);
    else
      TAPER_TRY(data_->program->devices[space]->copy_within(
          data_->states[i], other.data_->states[i], data_->state_bytes[i]));
  }
  for (int space = 1; space < data_->program->space_count; ++space)
    TAPER_TRY(data_->program->devices[space]->wait());
  return Error::ok;
}

}  // namespace taper
