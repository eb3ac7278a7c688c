// What commands call: a method of a program, or a model of PyTorch in eager. Errors are exceptions.
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
    std::string ranges;  ///< of the sizes that may vary: "; batch must lie in 1..64"
    bool is_number = false;
    DType dtype = DType::f32;    ///< of tensors
    std::vector<int64_t> sizes;  ///< of tensors; `any_extent` where it may vary
  };
  struct Output {
    std::string name;
    io::Array value;  ///< of a number, without extents
  };
  virtual ~Callable() = default;

  /// What is called: "forward".
  virtual std::string name() const = 0;
  const std::vector<Input>& inputs() const { return inputs_; }
  /// -1 if there is none.
  index_t find_input(const std::string& name) const;

  /// Sets a tensor, or a number by a tensor of one integer; the elements are copied. Throws
  /// ExportError if it does not fit.
  virtual void set_input(index_t input, const io::Array& array) = 0;
  /// Sets an input that is a number. Throws ExportError where it must be an integer.
  virtual void set_number(index_t input, int64_t number) = 0;
  virtual void set_number(index_t input, double number) = 0;

  /// Runs with the inputs that were set, all of them. Throws ExportError with what went wrong:
  /// sizes that do not fit each other, an index out of range, ….
  virtual std::vector<Output> call() = 0;

  /// How far results may be from the expected ones, by the dtypes in which calls compute
  /// (io/tolerance.h).
  virtual double tolerance() const = 0;

  virtual bool has_state(const std::string& path) = 0;
  /// One state's elements. Throws ExportError if there is none of this name.
  virtual io::Array state(const std::string& path) = 0;
  /// Reads states from, or writes those that calls may change to, a safetensors file. Every state
  /// that the file has must fit, and none may be unknown; states that it does not have keep their
  /// values. Throws ExportError.
  virtual void load_states(const std::filesystem::path& path) = 0;
  virtual void save_states(const std::filesystem::path& path) = 0;

 protected:
  /// What to say of an array that an input does not take: its dtype, a dimension, or a range.
  ExportError mismatch(index_t input, const io::Array& array) const;
  /// The same of a state in a file.
  static void require_state(const std::filesystem::path& path, const std::string& name,
                            const io::Array& array, DType dtype, const std::vector<int64_t>& sizes);

  std::vector<Input> inputs_;  ///< filled by constructors
};

/// A method of a program, or a model: `method` must be empty or "forward" then.
std::unique_ptr<Callable> open_callable(const std::filesystem::path& path,
                                        const std::string& method, const ImportChoice& import);

}  // namespace taper::cli
