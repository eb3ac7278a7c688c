#include "taper/runtime/extension/module/module.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <new>
#include <optional>

#include "taper/runtime/core/dense_copy.h"
#include "taper/runtime/extension/module/mapped_file.h"
#include "taper/runtime/extension/module/message.h"
#include "taper/runtime/extension/module/outside_constants.h"
#include "taper/runtime/extension/module/packed_weights.h"
#include "taper/runtime/extension/module/region.h"
#include "taper/runtime/extension/module/verify.h"
#include "taper/runtime/platform/cpu.h"
#include "taper/runtime/platform/cpu_request.h"
#include "taper/runtime/program/tables.h"
#include "taper/schema/program_generated.h"

namespace taper {
namespace {

// False: there is no memory for so many.
bool resize(std::vector<std::byte>& bytes, size_t size) {
  try {
    return bytes.resize(size), true;
  } catch (const std::exception&) {  // bad_alloc, or length_error
    return false;
  }
}

bool has_symbols(const Program& program, const std::string& method) {
  const Result<index_t> i = program.find_method(method.c_str());
  if (!i.ok()) return false;
  const auto* symbols = program.table().methods()->Get(static_cast<uint32_t>(i.value()))->symbols();
  return symbols != nullptr && symbols->size() > 0;
}

/// The Module that last refused this thread because another one was inside. Its message must not be
/// touched then.
thread_local const void* refused_by = nullptr;

}  // namespace

struct Module::Parts {
  MappedFile file;
  OutsideConstants outside;
  std::shared_ptr<const PackedWeights> packed_weights;
  std::vector<Region> regions;  // metadata, session, one for each method
  const Threads* threads = nullptr;
  std::optional<Program> program;
  std::optional<Session> session;
  std::map<std::string, Method> methods;
  std::string message;
  std::atomic<bool> entered{false};

  ~Parts() {
    for (auto& [name, method] : methods) (void)method.close();
    if (session) (void)session->close();
    if (program) (void)program->close();
    if (refused_by == this) refused_by = nullptr;
  }

  /// One thread's stay inside, which is not granted while another thread is there.
  class Stay {
   public:
    explicit Stay(Parts& parts)
        : parts_(parts), granted_(!parts.entered.exchange(true, std::memory_order_acquire)) {}
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    ~Stay() {
      if (granted_) parts_.entered.store(false, std::memory_order_release);
    }
    bool granted() const { return granted_; }

   private:
    Parts& parts_;
    const bool granted_;
  };

  /// The stay of a call, which leaves a message.
  class Call : public Stay {
   public:
    explicit Call(Parts& parts) : Stay(parts) {
      if (granted()) parts.message.clear();
      if (!granted())
        refused_by = &parts;
      else if (refused_by == &parts)
        refused_by = nullptr;
    }
  };

  Error fail(const ErrorInfo& info) { return message = describe(info), info.error; }
  Error fail(Error e, const std::string& why) { return message = why, e; }

  // Keeps memory for `what` as the last of `regions`.
  Error add_region(size_t size, const std::string& what, Region::Use use = Region::Use::all) {
    Region region(size, use);
    if (!region.is_there())
      return fail(Error::out_of_memory, joined({what, " needs ", std::to_string(size), " bytes"}));
    regions.push_back(std::move(region));
    return Error::ok;
  }

  // `folder`: the program's, where its weights files lie if the options name no other.
  Error open(Span<const std::byte> bytes, KernelSet kernels, const ModuleOptions& options,
             const std::string& folder) {
    ErrorInfo info;
    const Result<size_t> size = Program::metadata_bytes(bytes);
    // `load` says better what is wrong
    TAPER_TRY(add_region(size.ok() ? size.value() : 64, "the program"));
    if (const char* word = unknown_cpu_features())
      return fail(Error::invalid_argument,
                  joined({"TAPER_CPU is ", word,
                          "; it can be portable, or names of features such as "
                          "avx2 or avx512_bf16, separated by commas"}));
    static const CpuFeatures cpu = request_cpu_features();  // one question for all modules
    LoadOptions load_options{cpu};
    load_options.info = &info;
    load_options.backends = {options.backends.data(),
                             static_cast<index_t>(options.backends.size())};
    Result<Program> loaded = Program::load(bytes, kernels, regions.back(), load_options);
    if (!loaded.ok()) return info.error = loaded.error(), fail(info);
    program = loaded.value();
    std::string damage;
    if (options.verify && verify(*program, damage) != Error::ok)
      return fail(Error::invalid_program, damage);
    TAPER_TRY(give_constants(kernels, options, folder, load_options));
    if (options.pack_weights == PackWeights::always ||
        (options.pack_weights == PackWeights::of_mapped_files && file.is_mapped()))
      if (const Error e = pack_weights({file, outside, kernels, regions.back(), load_options,
                                        store_of(options), options.threads},
                                       *program, packed_weights);
          e != Error::ok)
        return info.error = e, fail(info);
    TAPER_TRY(add_region(program->session_bytes(), "the session"));
    SessionOptions session_options;
    threads = options.threads;
    session_options.threads = threads, session_options.info = &info, session_options.zeroed = true;
    Result<Session> created = Session::create(*program, regions.back(), session_options);
    if (!created.ok()) return info.error = created.error(), fail(info);
    session = created.value();
    return Error::ok;
  }

  // Loads the program once more, with the constants that are not in its file, if there are any.
  Error give_constants(KernelSet kernels, const ModuleOptions& options, const std::string& folder,
                       LoadOptions& load_options) {
    std::string why;
    if (!outside.find(*program, options.weights_folder.empty() ? folder : options.weights_folder,
                      options, why))
      return fail(Error::invalid_argument, why);
    if (outside.given.empty()) return Error::ok;
    load_options.constants = outside.given;
    const Span<const std::byte> bytes = program->file();
    (void)program->close();
    const Result<Program> loaded = Program::load(bytes, kernels, regions.back(), load_options);
    if (!loaded.ok()) return load_options.info->error = loaded.error(), fail(*load_options.info);
    program = loaded.value();
    return Error::ok;
  }

  // Weights of other files that nobody compared with their hashes are not stored under these.
  std::string store_of(const ModuleOptions& options) const {
    return outside.files.empty() || options.verify ? options.pack_store : "";
  }

  Result<MethodRequirements> requirements(const std::string& name) {
    ErrorInfo info;
    const Result<size_t> tables = program->method_metadata_bytes(name.c_str(), &info);
    if (!tables.ok()) return info.error = tables.error(), fail(info);
    const Region workspace(tables.value());
    if (!workspace.is_there())
      return fail(Error::out_of_memory,
                  joined({name, " needs ", std::to_string(tables.value()), " bytes of tables"}));
    const Result<MethodRequirements> needed =
        program->requirements(name.c_str(), workspace, &info, threads);
    if (!needed.ok()) return info.error = needed.error(), fail(info);
    return needed.value();
  }

  Result<Method> create(const std::string& name) {
    TAPER_LET(needed, requirements(name));
    // Without symbolic sizes the first call uses all of the memory. So it may get large pages, and
    // this fails if the machine lacks it.
    const bool fixed = !has_symbols(*program, name);
    TAPER_TRY(add_region(needed.total(), (fixed ? "" : "with every symbol at its maximum, ") + name,
                         fixed ? Region::Use::now : Region::Use::part));
    ErrorInfo info;
    Result<Method> method =
        Method::create(*session, name.c_str(), MethodMemory(regions.back()), &info);
    if (!method.ok()) {
      regions.pop_back();  // of a method that is not there
      return info.error = method.error(), fail(info);
    }
    return method;
  }

  // The method of this name, created when it is asked for first.
  Result<Method*> method(const std::string& name) {
    if (const auto found = methods.find(name); found != methods.end()) return &found->second;
    TAPER_LET(created, create(name));
    return &methods.emplace(name, created).first->second;
  }

  // "x (input 0)"
  static std::string input_name(const Method& method, index_t i) {
    return std::string(method.input_name(i)) + " (input " + std::to_string(i) + ")";
  }

  // "f32 (10, 4)"
  static std::string type_text(const Input& in) {
    std::string text = std::string(name_of(in.dtype_)) + " (";
    for (int d = 0; d < in.shape_.rank; ++d)
      text += (d > 0 ? ", " : "") + std::to_string(in.shape_.sizes[d]);
    return text + ")";
  }

  // Whether input `i` takes what is given, a tensor or a number; its type and value are checked
  // later.
  Error check_kind(const Method& method, index_t i, const Input& in) {
    const TensorRef expected = method.input(i);
    if (!in.has_rank_)
      return fail(Error::invalid_argument,
                  joined({input_name(method, i), " has more than 8 dimensions"}));
    if (in.is_number_ && expected.shape != nullptr)
      return fail(
          Error::invalid_argument,
          joined({input_name(method, i), " takes a tensor, not a number: ", name_of(expected.dtype),
                  " of ", std::to_string(expected.shape->rank), " dimensions"}));
    if (!in.is_number_ && expected.shape == nullptr)
      return fail(
          Error::invalid_argument,
          joined({input_name(method, i), " takes a number, not a tensor; given ", type_text(in)}));
    return Error::ok;
  }

  // "x (input 0): batch = 10 is outside 1..8; given f32 (10, 4)"
  static std::string input_message(const Method& method, index_t i, const Input& in) {
    ErrorInfo info = method.last_error();
    if (in.is_number_) return info.subject = method.input_name(i), describe(info);
    info.argument = static_cast<int32_t>(i);
    return describe(info, method.input_name(i)) + "; given " + type_text(in);
  }

  // Sets the inputs and executes.
  Result<Method*> execute(const std::string& name, const std::vector<Input>& inputs) {
    TAPER_LET(method, this->method(name));
    if (static_cast<index_t>(inputs.size()) != method->input_count())
      return fail(Error::invalid_argument,
                  joined({name, " takes ", std::to_string(method->input_count()), " inputs, not ",
                          std::to_string(inputs.size())}));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Input& in = inputs[i];
      const index_t index = static_cast<index_t>(i);
      TAPER_TRY(check_kind(*method, index, in));
      const Error e =
          !in.is_number_ ? method->set_input(
                               index, TensorRef{const_cast<void*>(in.data_), &in.shape_, in.dtype_})
          : in.is_real_ ? method->set_number(index, in.real_)
                        : method->set_number(index, in.integer_);
      if (e != Error::ok) return fail(e, input_message(*method, index, in));
    }
    if (method->execute() != Error::ok) return fail(method->last_error());
    return method;
  }
};

Module::Module(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&&) noexcept = default;
Module::~Module() = default;

Result<Module> Module::load(const std::string& path, KernelSet kernels,
                            const ModuleOptions& options) {
  auto parts = std::make_unique<Parts>();
  std::string why;
  Error e = Error::ok;
  const auto access = options.loading == Loading::read ? MappedFile::Access::in_memory
                                                       : MappedFile::Access::read_only;
  if (!parts->file.open(path, why, access))
    e = parts->fail(Error::invalid_argument, why);
  else if (e = parts->open(parts->file.bytes(), kernels, options,
                           std::filesystem::path(path).parent_path().string());
           e != Error::ok)
    parts->message = path + ": " + parts->message;
  if (e == Error::ok) return Module(std::move(parts));
  if (options.message != nullptr) *options.message = parts->message;
  return e;
}

Result<Module> Module::load(Span<const std::byte> program, KernelSet kernels,
                            const ModuleOptions& options) {
  auto parts = std::make_unique<Parts>();
  const Error e = parts->open(program, kernels, options, "");
  if (e == Error::ok) return Module(std::move(parts));
  if (options.message != nullptr) *options.message = parts->message;
  return e;
}

Result<Method> Module::method(const std::string& name) {
  const Parts::Call call(*parts_);
  if (!call.granted()) return Error::busy;
  const Result<Method*> method = parts_->method(name);
  if (!method.ok()) return method.error();
  return *method.value();
}

Error Module::run(const std::string& name, const std::vector<Input>& inputs,
                  const std::vector<OutputBuffer>& outputs) {
  const Parts::Call call(*parts_);
  if (!call.granted()) return Error::busy;
  TAPER_LET(method, parts_->execute(name, inputs));
  if (static_cast<index_t>(outputs.size()) > method->output_count())
    return parts_->fail(
        Error::invalid_argument,
        joined({name, " has ", std::to_string(method->output_count()), " outputs"}));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorRef t = method->output(static_cast<index_t>(i));
    const std::string output = method->output_name(static_cast<index_t>(i));
    if (t.shape == nullptr)
      return parts_->fail(Error::invalid_argument,
                          joined({"output ", output, " is a number: use execute"}));
    if (t.dtype != outputs[i].dtype)
      return parts_->fail(Error::invalid_argument,
                          joined({"output ", output, " is ", name_of(t.dtype), ", the buffer is ",
                                  name_of(outputs[i].dtype)}));
    if (static_cast<size_t>(t.size_bytes()) != outputs[i].size_bytes)
      return parts_->fail(
          Error::invalid_argument,
          joined({"output ", output, " has ", std::to_string(t.size_bytes()),
                  " bytes, the buffer has ", std::to_string(outputs[i].size_bytes)}));
    copy_dense(t, static_cast<std::byte*>(outputs[i].data));
  }
  return Error::ok;
}

Result<std::vector<OwnedTensor>> Module::execute(const std::string& name,
                                                 const std::vector<Input>& inputs) {
  const Parts::Call call(*parts_);
  if (!call.granted()) return Error::busy;
  TAPER_LET(method, parts_->execute(name, inputs));
  std::vector<OwnedTensor> results(static_cast<size_t>(method->output_count()));
  for (index_t i = 0; i < method->output_count(); ++i) {
    OwnedTensor& out = results[static_cast<size_t>(i)];
    const TensorRef t = method->output(i);
    if (t.shape != nullptr) {
      out.dtype = t.dtype;
      out.sizes.assign(t.shape->sizes, t.shape->sizes + t.shape->rank);
      if (!resize(out.bytes, static_cast<size_t>(t.size_bytes())))
        return parts_->fail(Error::out_of_memory,
                            joined({"output ", method->output_name(i), " needs ",
                                    std::to_string(t.size_bytes()), " bytes"}));
      copy_dense(t, out.bytes.data());
      continue;
    }
    int64_t integer = 0;
    double real = 0;
    const bool is_integer = method->output_number(i, integer) == Error::ok;
    if (!is_integer) TAPER_TRY(method->output_number(i, real));
    out.dtype = is_integer ? DType::i64 : DType::f64;
    out.bytes.resize(8);
    if (is_integer)
      std::memcpy(out.bytes.data(), &integer, 8);
    else
      std::memcpy(out.bytes.data(), &real, 8);
  }
  return results;
}

Result<ModuleRequirements> Module::requirements(const std::string& method) {
  const Parts::Call call(*parts_);
  if (!call.granted()) return Error::busy;
  ModuleRequirements r;
  TAPER_LET(needed, parts_->requirements(method));
  r.method = needed;
  r.tables = static_cast<size_t>(Span<std::byte>(parts_->regions[0]).size());
  r.session = parts_->program->session_bytes();
  if (parts_->packed_weights != nullptr)
    r.packed_weights = static_cast<size_t>(parts_->packed_weights->bytes().size());
  return r;
}

Program Module::program() const { return *parts_->program; }
Session& Module::session() { return *parts_->session; }

std::vector<StoredConstant> Module::constants() const {
  const internal::ProgramView& view = parts_->program->data().view;
  const std::vector<GivenConstant>& given = parts_->outside.given;
  std::vector<StoredConstant> found;
  for (index_t i = 0; i < view.constants.size(); ++i) {
    const internal::ConstantView c = view.constant(static_cast<uint64_t>(i));
    if (c.is_embedded()) {
      const auto stored = internal::stored_constant(parts_->program->file(), view, c);
      if (stored.data != nullptr)
        found.push_back(
            {c.path,
             c.dtype,
             c.sizes,
             stored.layout,
             {static_cast<const std::byte*>(stored.data), static_cast<index_t>(stored.bytes)}});
      continue;
    }
    const auto at = std::find_if(given.begin(), given.end(), [&](const GivenConstant& g) {
      return std::equal(g.key.begin(), g.key.end(), c.key.begin(), c.key.end());
    });
    if (at == given.end()) continue;
    const auto bytes = static_cast<index_t>(stored_bytes(c.bytes, at->layout));
    found.push_back({c.path, c.dtype, c.sizes, at->layout, at->bytes.part(0, bytes)});
  }
  return found;
}

std::string Module::message() const {
  const Parts::Stay stay(*parts_);
  if (stay.granted() && refused_by != parts_.get()) return parts_->message;
  return "busy: another thread is inside this Module; give each thread its own";
}

std::vector<std::string> Module::method_names() const {
  std::vector<std::string> names;
  for (index_t i = 0; i < parts_->program->method_count(); ++i)
    names.emplace_back(parts_->program->method_name(i));
  return names;
}

std::vector<std::string> Module::state_names() const {
  std::vector<std::string> names;
  for (index_t i = 0; i < parts_->session->state_count(); ++i)
    names.emplace_back(parts_->session->state(i).path);
  return names;
}

Result<OwnedTensor> Module::state(const std::string& path) {
  const Parts::Call call(*parts_);
  if (!call.granted()) return Error::busy;
  const Result<index_t> i = parts_->session->find_state(path.c_str());
  if (!i.ok()) return parts_->fail(i.error(), joined({"there is no state ", path}));
  const StateView s = parts_->session->state(i.value());
  OwnedTensor t{s.dtype, std::vector<index_t>(s.sizes.begin(), s.sizes.end()), {}};
  if (!resize(t.bytes, s.size_bytes))
    return parts_->fail(Error::out_of_memory, joined({"state ", path, " needs ",
                                                      std::to_string(s.size_bytes), " bytes"}));
  if (const Error e = parts_->session->read_state(i.value(), t.bytes); e != Error::ok)
    return parts_->fail(e, joined({"reading state ", path}));
  return t;
}

Error Module::set_state(const std::string& path, const OwnedTensor& value) {
  const Parts::Call call(*parts_);
  if (!call.granted()) return Error::busy;
  const Result<index_t> i = parts_->session->find_state(path.c_str());
  if (!i.ok()) return parts_->fail(i.error(), joined({"there is no state ", path}));
  const StateView s = parts_->session->state(i.value());
  if (s.dtype != value.dtype || s.size_bytes != value.bytes.size())
    return parts_->fail(Error::invalid_argument,
                        joined({"state ", path, " has ", std::to_string(s.size_bytes), " bytes of ",
                                name_of(s.dtype), ", the value ",
                                std::to_string(value.bytes.size()), " of ", name_of(value.dtype)}));
  return parts_->session->write_state(i.value(), value.bytes);
}

}  // namespace taper
