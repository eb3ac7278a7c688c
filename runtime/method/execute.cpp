// The loop that runs a method's instructions.
#include "taper/runtime/method/method.h"
#include "taper/runtime/method/method_data.h"

namespace taper {
namespace {

using internal::MethodData;

// Sets the iteration count of the loop at `at`, and the symbols that show it.
Error set_counter(MethodData& m, index_t at, uint32_t iterations) {
  m.instructions[at].control.iterations = iterations;
  for (uint32_t s = m.instructions[at].control.target; s != internal::none; s = m.same_counter[s])
    TAPER_TRY(internal::bind_late(m, s, iterations));
  return Error::ok;
}

// Late symbols must not change while queued work still uses their numbers.
Error wait_for_all(MethodData& m) {
  for (int s = 1; s < m.program->space_count; ++s)
    if (Error e = m.program->devices[s]->wait(); e != Error::ok)
      return m.info.message != nullptr ? e
                                       : m.fail(e, TAPER_TEXT("queued work on space {} failed"), s);
  return Error::ok;
}

Error copy(MethodData& m, const Instruction& i) {
  const TensorRef &from = *i.arguments[0].tensor, &to = *i.arguments[1].tensor;
  const size_t bytes = static_cast<size_t>(from.size_bytes());
  if (bytes == 0 || from.data == to.data) return Error::ok;
  if (i.step == Step::copy) return std::memcpy(to.data, from.data, bytes), Error::ok;
  Device& device = *m.program->devices[i.space];
  if (i.step == Step::copy_in) return device.copy_in(to.data, from.data, bytes);
  if (i.step == Step::copy_out) return device.copy_out(to.data, from.data, bytes);
  return device.copy_within(to.data, from.data, bytes);
}

// Does every step but a prepared kernel on the caller's thread. `next` is the instruction that
// follows.
Error do_step(MethodData& m, index_t at, index_t& next) {
  Instruction& i = m.instructions[at];
  if (i.step == Step::stale) {
    TAPER_TRY(wait_for_all(m));
    TAPER_TRY(internal::check_overlaps(m, at));
    TAPER_TRY(internal::prepare(m, at));
  }
  switch (i.step) {
    case Step::stale:  // `prepare` has replaced it
      break;
    case Step::kernel:
      return i.kernel->run(m.context, i.plan, i.arguments);
    case Step::device_kernel:
      return m.program->devices[i.space]->run(*i.kernel, m.context, i.plan, i.arguments);
    case Step::delegate:
      return i.delegate->backend->execute(i.plan, i.arguments, m.context);
    case Step::copy:
    case Step::copy_in:
    case Step::copy_out:
    case Step::copy_within:
      return copy(m, i);
    case Step::bind:
      TAPER_TRY(wait_for_all(m));
      return internal::bind_late(m, i.control.target);
    case Step::wait: {
      Device* device = m.program->devices[i.space];
      return device != nullptr ? device->wait() : Error::ok;
    }
    case Step::jump:
      next = i.control.target;
      return Error::ok;
    case Step::jump_unless:
      if (m.numbers[i.control.condition] == 0) next = i.control.target;
      return Error::ok;
    case Step::loop_begin:
      TAPER_TRY(wait_for_all(m));
      return set_counter(m, at, 0);
    case Step::loop_end: {
      const index_t begin = i.control.target;
      TAPER_TRY(wait_for_all(m));
      TAPER_TRY(set_counter(m, begin, m.instructions[begin].control.iterations + 1));
      if (m.numbers[i.control.condition] != 0) next = begin + 1;
      return Error::ok;
    }
  }
  return Error::invalid_program;
}

// Ends a run with `e`: waits for all queued work. Returns `e`, or if it is ok, an error of that
// work.
Error finish(MethodData& m, index_t at, Error e) {
  if (e != Error::ok) (void)m.fail_at(at, e);
  const Error late = wait_for_all(m);
  return e != Error::ok ? e : late;
}

template <bool profiled>
Error run(MethodData& m, const Limits& limits) {
  const index_t count = m.view.instructions.size();
  Instruction* const instructions = m.instructions;
  uint64_t steps = limits.steps;
  index_t at = 0;
  while (at < count) {
    if (steps-- == 0)
      return finish(m, at,
                    m.fail(Error::limit_reached, TAPER_TEXT("the limit of steps is reached")));
    if (limits.cancel != nullptr && limits.cancel->load(std::memory_order_relaxed))
      return finish(m, at, m.fail(Error::limit_reached, TAPER_TEXT("cancelled")));
    const Instruction& i = instructions[at];
    index_t next = at + 1;
    const uint64_t begin = profiled ? m.profiler->now() : 0;
    const bool plain = i.step == Step::kernel;
    if (const Error e =
            plain ? i.kernel->run(m.context, i.plan, i.arguments) : do_step(m, at, next);
        e != Error::ok)
      return finish(m, at, e);
    if (profiled) m.profiler->record(static_cast<uint32_t>(at), i.queue, begin, m.profiler->now());
    at = next;
  }
  return finish(m, 0, Error::ok);
}

}  // namespace

Error Method::execute(const Limits& limits) {
  MethodData& m = *data_;
  m.clear_info();
  if (m.table == nullptr)
    return m.fail(Error::invalid_argument, TAPER_TEXT("the method is closed"));
  if (m.inputs_changed || !m.consistent || m.has_elements || m.has_late)
    TAPER_TRY(internal::bind_inputs(m));
#ifdef TAPER_PROFILE
  if (m.profiler != nullptr) return run<true>(m, limits);
#endif
  return run<false>(m, limits);
}

}  // namespace taper
