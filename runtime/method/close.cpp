// How programs, sessions and methods end.
#include "taper/runtime/method/method.h"
#include "taper/runtime/method/method_data.h"

namespace taper {
namespace internal {

Error ProgramData::end_on_devices(DeviceUser user, const void* which) const {
  Error first = Error::ok;
  for (int s = 1; s < space_count; ++s) {
    const Error e = devices[s]->wait();
    if (first == Error::ok) first = e;
    devices[s]->end(user, which);
  }
  return first;
}

void ProgramData::unload_delegates(index_t count) const {
  for (index_t i = 0; i < count; ++i)
    if (delegates[i].backend != nullptr) delegates[i].backend->unload(delegates[i].loaded);
}

void end_plans(MethodData& m) {
  for (index_t i = 0; i < m.view.instructions.size(); ++i) {
    Instruction& in = m.instructions[i];
    if (!in.ends) continue;
    if (in.fresh == Step::delegate)
      in.delegate->backend->release(in.plan);
    else
      in.kernel->end(in.plan);
    in.ends = false;
  }
}

}  // namespace internal

using internal::fail;

Error Program::close(ErrorInfo* info) {
  ErrorInfo unread;
  ErrorInfo& why = info != nullptr ? *info : unread;
  uint32_t open = 0;
  if (!data_->sessions.compare_exchange_strong(open, internal::ProgramData::closed))
    return open == internal::ProgramData::closed
               ? fail(why, Error::invalid_argument, TAPER_TEXT("the program is closed already"))
               : fail(why, Error::busy,
                      TAPER_TEXT("{} sessions of the program are open: close them first"), open);
  const Error e = data_->end_on_devices(DeviceUser::program, data_);
  data_->unload_delegates(internal::count_of(data_->table->delegates()));
  return e == Error::ok ? e : fail(why, e, TAPER_TEXT("queued work of the program failed"));
}

Error Session::close(ErrorInfo* info) {
  ErrorInfo unread;
  ErrorInfo& why = info != nullptr ? *info : unread;
  internal::SessionData& d = *data_;
  if (!d.is_open)
    return fail(why, Error::invalid_argument, TAPER_TEXT("the session is closed already"));
  if (d.methods > 0)
    return fail(why, Error::busy,
                TAPER_TEXT("{} methods of the session are open: close them first"), d.methods);
  const Error e = d.program->end_on_devices(DeviceUser::session, &d);
  d.is_open = false;
  d.program->sessions.fetch_sub(1);
  return e == Error::ok ? e : fail(why, e, TAPER_TEXT("queued work of the session failed"));
}

Error Method::close() {
  internal::MethodData& m = *data_;
  if (m.table == nullptr)
    return m.fail(Error::invalid_argument, TAPER_TEXT("the method is closed already"));
  m.clear_info();
  const Error e = m.program->end_on_devices(DeviceUser::method, &m.context);
  if (e != Error::ok) (void)m.fail(e, TAPER_TEXT("queued work of the method failed"));
  internal::end_plans(m);
  // then a call finds no input, output or instruction
  m.view.inputs = {}, m.view.outputs = {}, m.view.instructions = {};
  m.table = nullptr;
  m.info.subject = m.info.source = nullptr;  // both lie in the program
  if (--m.session->methods == 0) m.session->arena = m.session->unused;
  return e;
}

}  // namespace taper
