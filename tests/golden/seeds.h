// Cases written as text, a line each: calls without results, where op_properties starts from for
// operators of which PyTorch's results are not stored; and small calls with results.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cases.h"

namespace taper::golden {

/// Reads lines such as
///
///   ["linalg_solve_triangular", "f32[3,3] diagonal", "f32[3,2]", {"upper": true}]
///
/// the row's name, arguments in the order of its schema, and others by name. Arguments are JSON,
/// tensors text: a dtype, sizes, and words about the elements, which are drawn:
///
///   -1..2      between these (else floating ones from -2 to 2, integers from 0 to 9)
///   = 1 nan 3  these; the sizes do not change in variations. Of c64, the parts: "c64[2] = 1 2 3 4"
///   ascending  sorted along the last dimension
///   diagonal   as many added to those of the last two dimensions' diagonal as there are rows, and
///   2 constant   no gradient is asked for
///
/// `"random": true` among the names says that results are. One CaseFile an operator. Throws
/// std::runtime_error with the line that is not of this form.
std::vector<CaseFile> read_seeds(const std::filesystem::path& path);

/// A call of each row of kernels/pointwise.def that takes only tensors: these tensors, as above.
std::vector<Json> pointwise_calls(const std::string& tensor);
/// Such calls as seeds: a new row needs no line.
std::vector<CaseFile> pointwise_seeds();

/// Reads complete cases in the same notation, a line each; special_values.py writes them:
///
///   {"id": "hypot/zeros0", "call": ["hypot", "f32[2] = 0 1", "f32[2] = 0 -0"],
///    "results": ["f32[2] = 0 1"], "gradients": {"args.0": "= nan 1"}}
///
/// Gradients are of the results multiplied by 1, -2, 0.5, 3, -1.5, 1, …, or by
/// `"result_gradients": ["f32[2] = 0.3 -1"]`; an argument without one has none. `"refused": "…"` in
/// place of results says that PyTorch refuses the call. A gradient without dtype and sizes has
/// those of its argument. `"rtol": 0.02` widens the tolerance of 0.001.
std::vector<CaseFile> read_written_cases(const std::filesystem::path& path);

/// Calls run(name, file) for the files of a folder (cases.h) in the order of their names, or for
/// the operators of a .jsonl file of complete cases. Those count for which takes(name) holds:
/// "aten.add.Tensor.safetensors" in a folder, else "add.Tensor.". Throws std::runtime_error if the
/// path is neither.
void for_each_case_file(const std::filesystem::path& path,
                        const std::function<bool(const std::string& name)>& takes,
                        const std::function<void(const std::string& name, CaseFile& file)>& run);

}  // namespace taper::golden
