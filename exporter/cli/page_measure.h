// What pages about weights show of a report.
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "taper/exporter/io/format_text.h"
#include "taper/exporter/quantize/matrix.h"

namespace taper::cli {

/// How far a weight is from the one before. JSON has no infinity: null stands for no error.
inline nlohmann::json page_measure(const quantize::Measure& m) {
  const auto decibels = [](double x) { return std::isfinite(x) ? nlohmann::json(x) : nullptr; };
  return {{"sqnr_db", decibels(m.sqnr_db())},
          {"has_output", m.has_output()},
          {"output_db", m.has_output() ? decibels(m.output_sqnr_db()) : nullptr},
          {"harm_db", decibels(m.harm_db())},
          {"cosine", m.cosine()},
          {"most", m.most},
          {"histogram", m.histogram}};
}

/// The lines of a report's sum, and its notes.
template <class Report>
nlohmann::json page_facts(const Report& report) {
  nlohmann::json facts = nlohmann::json::array();
  std::stringstream sum;
  print_sum(sum, report);
  for (std::string line; std::getline(sum, line);) facts.push_back(line.substr(2));
  for (const std::string& note : report.notes) facts.push_back(io::printable(note));
  return facts;
}

}  // namespace taper::cli
