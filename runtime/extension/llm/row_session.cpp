#include "taper/runtime/extension/llm/row_session.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/module/message.h"
#include "taper/runtime/extension/module/region.h"

namespace taper::llm {
namespace {

Region region_of(size_t size, const char* what, Region::Use use) {
  Region region(size, use);
  if (!region.is_there())
    throw Failure{Error::out_of_memory, std::string("a conversation needs ") +
                                            std::to_string(size) + " bytes for its " + what};
  return region;
}

[[noreturn]] void fail(Error error, ErrorInfo& info) {
  info.error = error;
  throw Failure{error, describe(info)};
}

bool is_ids(const TensorRef& t) {
  return t.shape != nullptr && t.dtype == DType::i64 && t.shape->rank == 2;
}
bool is_list(const TensorRef& t, index_t size) {
  return t.shape != nullptr && t.dtype == DType::i64 && t.shape->rank == 1 &&
         t.shape->sizes[0] == size;
}

}  // namespace

RowMethod row_method(const Method& method, const std::string& name) {
  const index_t inputs = method.input_count();
  const TensorRef ids = method.input(0);
  bool fits = inputs >= 2 && method.output_count() >= 1 && is_ids(ids);
  for (index_t i = 1; fits && i < inputs; ++i) fits = is_list(method.input(i), ids.shape->sizes[0]);
  RowMethod made{method, 0, 0};
  index_t next = 2;
  const auto takes = [&](const char* input) {
    const bool has = fits && next < inputs && std::strcmp(method.input_name(next), input) == 0;
    return next += has, has;
  };
  made.by_row = takes("rows"), made.by_adapter = takes("adapters");
  if (!fits || next != inputs)
    refuse("its method `" + name +
           "` does not take ids (batch, n) and start (batch), both i64, and no more than the rows "
           "of the caches (batch) and their adapters (batch)");
  made.rows = ids.shape->sizes[0], made.chunk = ids.shape->sizes[1];
  return made;
}

// States, and methods with memory of their own.
class RowSession::Memory {
 public:
  Memory(Module& module, const Threads* threads)
      : session_memory_(region_of(module.program().session_bytes(), "caches", Region::Use::all)) {
    ErrorInfo info;
    SessionOptions options;
    options.threads = threads, options.info = &info, options.zeroed = true;
    Result<Session> session = Session::create(module.program(), session_memory_, options);
    if (!session.ok()) fail(session.error(), info);
    session_.emplace(session.value());
  }
  Memory(const Memory&) = delete;
  ~Memory() {
    for (Method& method : methods_) (void)method.close();
    if (session_) (void)session_->close();
  }

  Session& session() { return *session_; }
  Method create(Module& module, const std::string& name) {
    const Result<ModuleRequirements> needed = module.requirements(name);
    if (!needed.ok()) throw Failure{needed.error(), module.message()};
    Region memory = region_of(needed.value().method.total(), "work", Region::Use::part);
    ErrorInfo info;
    Result<Method> method = Method::create(*session_, name.c_str(), MethodMemory(memory), &info);
    if (!method.ok()) fail(method.error(), info);
    method_memory_.push_back(std::move(memory));
    methods_.push_back(method.value());
    return method.value();
  }

 private:
  Region session_memory_;
  std::optional<Session> session_;
  std::vector<Region> method_memory_;
  std::vector<Method> methods_;
};

RowSession::RowSession(Module& module, int64_t rows)
    : module_(module), taken_(static_cast<size_t>(rows)) {}
RowSession::RowSession(Module& module, int64_t rows, const Threads* threads)
    : module_(module),
      memory_(std::make_unique<Memory>(module, threads)),
      taken_(static_cast<size_t>(rows)) {}
RowSession::~RowSession() = default;

int64_t RowSession::take_row() {
  const std::lock_guard lock(taking_);
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  if (free == taken_.end()) return -1;
  *free = true;
  return free - taken_.begin();
}

void RowSession::give_back(int64_t row) {
  const std::lock_guard lock(taking_);
  taken_[static_cast<size_t>(row)] = false;
}

Session& RowSession::session() {
  return memory_ != nullptr ? memory_->session() : module_.session();
}

RowMethod& RowSession::method(const std::string& name) {
  if (const auto found = methods_.find(name); found != methods_.end()) return found->second;
  const auto create = [&] {
    if (memory_ != nullptr) return memory_->create(module_, name);
    const Result<Method> of_module = module_.method(name);
    if (!of_module.ok()) throw Failure{of_module.error(), module_.message()};
    return of_module.value();
  };
  return methods_.emplace(name, row_method(create(), name)).first->second;
}

}  // namespace taper::llm
