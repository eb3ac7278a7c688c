// The callee of a command: a method of a program, or a PyTorch model in eager. Errors are
// exceptions.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/cli/picture.h"
#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/io/array.h"
#include "taper/runtime/core/span.h"

namespace taper::cli {

class Callable {
 public:
  struct Input {
    std::string name;
    std::string text;    ///< "images: f32[batch, 1, 28, 28]", "steps: integer"
    std::string ranges;  ///< of the sizes that may change: "; batch must lie in 1..64"
    bool is_number = false;
    DType dtype = DType::f32;    ///< for tensors
    std::vector<int64_t> sizes;  ///< for tensors; `any_extent` for a size that may change
  };
  struct Output {
    std::string name;
    io::Array value;  ///< an array without extents if it is a number
  };
  virtual ~Callable() = default;

  /// The name of the callee: "forward".
  virtual std::string name() const = 0;
  const std::vector<Input>& inputs() const { return inputs_; }
  /// The index of an input; -1 if there is none.
  index_t find_input(const std::string& name) const;

  /// Sets an input: a tensor, or a number as a tensor of one integer. The elements are copied.
  /// Throws ExportError if it does not fit.
  virtual void set_input(index_t input, const io::Array& array) = 0;
  /// Sets an input that is a number. Throws ExportError if it must be an integer and is not.
  virtual void set_number(index_t input, int64_t number) = 0;
  virtual void set_number(index_t input, double number) = 0;

  /// Runs with the inputs, which must all be set. Throws ExportError with the reason if it fails:
  /// sizes that do not fit each other, an index out of range, ….
  virtual std::vector<Output> call() = 0;

  /// How far results may be from the expected ones. This depends on the dtypes of the computation
  /// (io/tolerance.h).
  virtual double tolerance() const = 0;

  virtual bool has_state(const std::string& path) = 0;
  /// The elements of a state. Throws ExportError if there is no state of this name.
  virtual io::Array state(const std::string& path) = 0;
  /// Loads states from a safetensors file. Every state in the file must be known and fit. States
  /// that are not in the file keep their values. `save_states` writes the states that calls may
  /// change. Throws ExportError.
  virtual void load_states(const std::filesystem::path& path) = 0;
  virtual void save_states(const std::filesystem::path& path) = 0;

 protected:
  /// The error for an array that an input does not take: it names the dtype, a dimension or a
  /// range.
  ExportError mismatch(index_t input, const io::Array& array) const;
  /// The same for a state in a file.
  static void require_state(const std::filesystem::path& path, const std::string& name,
                            const io::Array& array, DType dtype, const std::vector<int64_t>& sizes);

  std::vector<Input> inputs_;  ///< filled by constructors
};

/// A method of a program, or a model. For a model, `method` must be empty or "forward".
std::unique_ptr<Callable> open_callable(const std::filesystem::path& path,
                                        const std::string& method, const ImportChoice& import);

}  // namespace taper::cli
