/// Runs programs where there is a heap and a file system. For phones, laptops and servers.
///
///   std::string why;
///   taper::ModuleOptions options;
///   options.message = &why;
///   taper::Result<taper::Module> model = taper::Module::load("mobilenet_v2.taper", options);
///   if (!model.ok()) return fail(why);
///   std::array<float, 1000> scores;
///   taper::Error error = model->forward({{image.data(), {1, 3, 224, 224}}}, {scores});
///   if (error != taper::Error::ok) return fail(model->message());
#pragma once
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "taper/runtime/runtime.h"

namespace taper {

/// An input of a call: a number, or dense elements that belong to the caller.
class Input {
 public:
  template <class T>
  Input(const T* elements, std::initializer_list<index_t> sizes)
      : Input(elements, std::vector<index_t>(sizes)) {}
  template <class T>
  Input(const T* elements, const std::vector<index_t>& sizes)
      : data_(elements), dtype_(dtypes_of<T>::dtype), has_rank_(sizes.size() <= max_rank) {
    if (has_rank_) shape_ = Shape::dense(Span<const index_t>(sizes));
  }
  /// A tensor with any strides.
  Input(const TensorRef& tensor)
      : data_(tensor.data), shape_(*tensor.shape), dtype_(tensor.dtype) {}

  static Input number(int64_t value) { return Input(false, value, 0); }
  static Input number(double value) { return Input(true, 0, value); }

 private:
  friend class Module;
  Input(bool real, int64_t integer, double value)
      : is_number_(true), is_real_(real), integer_(integer), real_(value) {}

  const void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::f32;
  bool has_rank_ = true, is_number_ = false, is_real_ = false;
  int64_t integer_ = 0;
  double real_ = 0;
};

/// The place for a copy of a result: a container with exactly as many elements (std::vector,
/// std::array, Span).
class OutputBuffer {
 public:
  template <class C, class T = std::remove_pointer_t<decltype(std::declval<C&>().data())>,
            class = std::enable_if_t<!std::is_const_v<T> && (dtypes_of<T>::set != 0)>>
  OutputBuffer(C& container)
      : data(container.data()),
        size_bytes(static_cast<size_t>(container.size()) * sizeof(T)),
        dtype(dtypes_of<T>::dtype) {}
  void* data;
  size_t size_bytes;
  DType dtype;
};

/// A dense result with memory of its own.
struct OwnedTensor {
  DType dtype = DType::f32;
  std::vector<index_t> sizes;
  std::vector<std::byte> bytes;

  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  index_t numel() const { return static_cast<index_t>(bytes.size()) / size_bytes(dtype); }
};

/// Dense elements in memory of the caller, such as a tensor of a mapped file.
struct BorrowedTensor {
  DType dtype = DType::f32;
  std::vector<index_t> sizes;
  Span<const std::byte> bytes;
  Span<const std::byte>
      readable;  ///< all memory around them that may be read; MappedFile::readable
};

/// How `Module::load` reads a file.
enum class Loading : uint8_t {
  /// Maps the file. It is open at once, only the parts that are used are read, and processes share
  /// the memory. The file must stay as it is while the module lives. To replace a file, write the
  /// new one beside it and rename it.
  map,
  /// Reads the file into memory of the module. Later changes of the file do not matter.
  read,
};

/// Which weights `Module::load` packs once for the kernels that run here. Calls are faster, and
/// results have the same bits. The packed weights take memory of the process.
enum class PackWeights : uint8_t {
  /// The weights of a mapped file. Their pages are given back to the system, so no weight is in
  /// memory twice. Modules of one file share the packed weights.
  of_mapped_files,
  always,  ///< also those of a program in memory, which then holds them a second time
  never,
};

struct ModuleOptions {
  /// A pool that the caller keeps, such as ThreadPool(4).threads(). nullptr: one thread.
  const Threads* threads = nullptr;
  Loading loading = Loading::map;
  /// Compares the weights with their checksums, and those of other files with their SHA-256. This
  /// is off by default, because it reads the whole file: about a second for every 2 GB that are in
  /// memory already.
  bool verify = false;
  PackWeights pack_weights = PackWeights::of_mapped_files;
  /// A folder that keeps packed weights for the next load, in files of about the weights' size.
  /// They are mapped, so processes share them. Whoever may write there decides what models compute.
  /// Empty: none. A damaged file is written again. Old files stay until you delete them.
  std::string pack_store;
  /// The folder of the files that hold a program's weights, if the program does not hold them.
  /// Empty: the program's folder. Such a file is mapped as the program is.
  std::string weights_folder;
  /// The constants that the program leaves to the application, by the names of their slots. The
  /// module copies them.
  std::map<std::string, OwnedTensor> slots;
  /// More constants of this kind, which outlive the module. It copies only those that do not lie at
  /// a multiple of their element's size, or lack 64 readable bytes behind them.
  std::map<std::string, BorrowedTensor> borrowed_slots;
  /// Backends for the parts of a program that it delegates. They outlive the module.
  std::vector<Backend*> backends;
  std::string* message = nullptr;  ///< why `load` failed
};

/// The bytes that a module takes for one method, mapped files not counted.
struct ModuleRequirements {
  /// Weights that `Module::load` packed. Modules of one file share them. 0: the file holds them
  /// packed, or nothing is packed.
  size_t packed_weights = 0;
  size_t tables = 0;          ///< of the program
  size_t session = 0;         ///< the states
  MethodRequirements method;  ///< with every symbol at its maximum

  size_t total() const { return packed_weights + tables + session + method.total(); }
};

/// A constant as the program, a file of weights or the application holds it: what is packed is made
/// of it.
struct StoredConstant {
  const char* path;  ///< nullptr: it has none
  DType dtype;
  Span<const int64_t> sizes;
  Layout layout;
  Span<const std::byte> bytes;
};

/// All kernels that Taper was built with, fastest first: optimized ones, then portable ones. An app
/// that calls this function links all of them, several megabytes.
KernelSet default_kernels();

/// A program with one session, and with a method for each entry point that was called. All have
/// memory of their own. The destructor closes them: do not use anything of the module afterwards.
///
/// One thread at a time: a call while another thread is inside does nothing and returns `busy`.
/// Give each thread a Module of its own. Modules of one file share the mapped weights.
class Module {
 public:
  /// Loads a file with these kernels, such as the table that `taper export --kernels` writes. The
  /// app links no other kernels.
  ///
  /// Errors: invalid_argument (no such file), invalid_program, missing_kernel. This and all other
  /// calls may return out_of_memory if the system does not give the memory that the program needs;
  /// then `message` says how many bytes.
  static Result<Module> load(const std::string& path, KernelSet kernels,
                             const ModuleOptions& options = {});
  /// The same with a program in memory, at a multiple of 16 bytes. It must outlive the module.
  static Result<Module> load(Span<const std::byte> program, KernelSet kernels,
                             const ModuleOptions& options = {});

  /// With all kernels.
  static Result<Module> load(const std::string& path, const ModuleOptions& options = {});
  static Result<Module> load(Span<const std::byte> program, const ModuleOptions& options = {});

  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  ~Module();

  /// Calls `forward`, or another method, and copies its results.
  Error forward(const std::vector<Input>& inputs, const std::vector<OutputBuffer>& outputs) {
    return run("forward", inputs, outputs);
  }
  Error run(const std::string& method, const std::vector<Input>& inputs,
            const std::vector<OutputBuffer>& outputs);
  /// Calls a method and returns its results. A number is a 0-dim tensor.
  Result<std::vector<OwnedTensor>> execute(const std::string& method,
                                           const std::vector<Input>& inputs);

  /// The method itself, created on the first call. Use it for inputs without a copy, limits and
  /// profiles. Calls of a Method never return `busy`, so keep them on one thread. The module closes
  /// it.
  Result<Method> method(const std::string& name);
  /// The memory for a method, which this call does not create. The system gives memory of a method
  /// when it is used.
  Result<ModuleRequirements> requirements(const std::string& method);
  Program program() const;
  Session& session();
  /// The constants that the module can read. They are valid as long as the module.
  std::vector<StoredConstant> constants() const;

  std::vector<std::string> method_names() const;
  std::vector<std::string> state_names() const;
  /// Reads or writes a state. invalid_argument: no such state, or another dtype or size.
  Result<OwnedTensor> state(const std::string& path);
  Error set_state(const std::string& path, const OwnedTensor& value);

  /// Why the last call failed, in words; empty if it did not.
  std::string message() const;

 private:
  struct Parts;
  explicit Module(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Inline, so that the library itself does not name all kernels: only an app that calls these
// functions does.
inline Result<Module> Module::load(const std::string& path, const ModuleOptions& options) {
  return load(path, default_kernels(), options);
}
inline Result<Module> Module::load(Span<const std::byte> program, const ModuleOptions& options) {
  return load(program, default_kernels(), options);
}

}  // namespace taper
