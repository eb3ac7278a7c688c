#pragma once
#include <initializer_list>
#include <string>
#include <utility>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/text.h"

namespace taper::optim {

/// Checks the arguments of constructors. Throws EagerError at the line that makes an optimizer or a
/// scheduler: "train.cpp:12: Adam: eps must be 0 or more, got -1".
struct Check {
  const char* type;
  Location here;

  void require(bool holds, const std::string& message) const {
    if (!holds) throw EagerError(here, std::string(type) + ": " + message);
  }
  void option(bool holds, const char* name, double value, const char* allowed) const {
    require(holds, std::string(name) + " must be " + allowed + ", got " + eager::to_text(value));
  }
  // All of these refuse NaN.
  void not_negative(std::initializer_list<std::pair<const char*, double>> options) const {
    for (const auto& [name, value] : options) option(value >= 0, name, value, "0 or more");
  }
  void share(const char* name, double value) const {
    option(value >= 0 && value <= 1, name, value, "in [0, 1]");
  }
  void betas(std::pair<double, double> betas) const {
    for (const double beta : {betas.first, betas.second})
      option(beta >= 0 && beta < 1, "betas", beta, "in [0, 1)");
  }
  void at_least(const char* name, int64_t value, int64_t least) const {
    require(value >= least, std::string(name) + " must be " + std::to_string(least) +
                                " or more, got " + std::to_string(value));
  }
};

}  // namespace taper::optim
