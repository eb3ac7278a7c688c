// Models of the tests of the importer, and what is said where one is refused.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "taper/exporter/importers/pt2/pt2.h"
#include "taper/tests/support/data.h"

namespace taper::pt2 {

inline std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing was refused";
}

inline Model named_results(const std::map<std::string, LoadOptions::DimOption>& dims) {
  LoadOptions options;
  options.dims = dims;
  return Model::load(tests::test_data("pt2/named_results.pt2"), options);
}

}  // namespace taper::pt2
