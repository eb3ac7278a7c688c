// Small programs as files, for the command's tests.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "taper/exporter/emit/emit.h"
#include "taper/exporter/ir/parser.h"
#include "taper/tests/support/data.h"

namespace taper::tests {

inline std::filesystem::path write_program(const std::string& name,
                                           const std::vector<std::string>& graphs,
                                           const ir::Payloads& payloads = {}) {
  std::vector<std::unique_ptr<ir::Graph>> parsed;
  std::vector<emit::Method> methods;
  for (const std::string& text : graphs) {
    parsed.push_back(ir::parse(text, payloads));
    methods.push_back({parsed.back()->name(), parsed.back().get()});
  }
  emit::EmitOptions options;
  const std::filesystem::path path = scratch_file(name);
  emit::write(path.string(), methods, options);
  return path;
}

/// Three scores for every row of two numbers: x (batch, 2) times a constant, plus a bias. x = (1,
/// 0) gives (1, 5, 0).
inline std::filesystem::path classifier() {
  const auto weight = ir::Payload::from<float>({1, 4, 0, 0, 0, 8}, {2, 3});
  const auto bias = ir::Payload::from<float>({0, 1, 0}, {3});
  return write_program(
      "classifier.taper",
      {"graph forward\nsymbol batch in [1, 16]\ninput \"x\" = %x: f32[batch, 2]\nconstant "
       "\"fc.weight\" = %w: f32[2, 3] " +
       ir::digest(*weight) + "\nconstant \"fc.bias\" = %b: f32[3] " + ir::digest(*bias) +
       "\n%y: f32[batch, 3] = addmm(%b, %x, %w, 1, 1)\noutput \"scores\" = %y\nbind batch = extent "
       "0 of input 0\n"},
      {{ir::digest(*weight), weight}, {ir::digest(*bias), bias}});
}

/// Adds its input to a state, and shows the sum. A second method doubles it.
inline std::filesystem::path counter() {
  return write_program("counter.taper",
                       {"graph count\ninput \"x\" = %x: f32[2]\nstate \"total\" = %s: f32[2] "
                        "buffer zeros\n%y: f32[2] = add.Tensor(%s, %x, 1)\n"
                        "output \"sum\" = %y\nwrite \"total\" = %y\n",
                        "graph twice\nstate \"total\" = %s: f32[2] buffer zeros\n%y: f32[2] = "
                        "mul.Scalar(%s, 2)\noutput \"double\" = %y\n"});
}

/// A model of PyTorch: x (batch, 5).
inline std::string linear_model() { return test_data("pt2/v2_9_linear.pt2").string(); }

}  // namespace taper::tests
