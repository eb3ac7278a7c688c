// The results of a run, printed for people.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "taper/exporter/io/array.h"

namespace taper::cli {

struct TopOptions {
  int count = 3;                    ///< classes shown for each row; 0: none
  std::vector<std::string> labels;  ///< of the classes; may be empty
};

/// Prints one output: its name and type, and
///   - for f32 scores, (classes) or (rows, classes): the best classes of each row. Scores that are
///     not probabilities (not negative, sum 1) are logits: probability = softmax;
///   - otherwise up to 16 elements, or the least, mean and greatest of many.
void print_output(std::ostream& out, const std::string& name, const io::Array& output,
                  const TopOptions& top);

}  // namespace taper::cli
