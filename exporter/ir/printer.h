// A graph as text, and the bytes that the text refers to. `parse` (parser.h) reads it back exactly.
//
//   graph forward
//   symbol batch in [1, 256]
//   input "images" = %images: f32[batch, 1, 28, 28]
//   state "conv1.weight" = %conv1.weight: f32[6, 1, 5, 5] parameter trainable 91c0f8a2d1b4e377
//   constant "scale" = %scale: f32[6] 0f52a1c3b8e4d690
//   %conv2d: f32[batch, 6, 24, 24] = convolution(%images, …) @ "lenet.cpp" 14 "forward" in "conv1"
//   output "logits" = %conv2d
//   write "conv1.weight" = %sub_Tensor
//   bind batch = extent 0 of input 0
//   check batch <= 128 "more than 128 do not fit"
//
// The bodies of a branch or a loop stand behind its line, each as a graph between braces.
#pragma once
#include <iosfwd>
#include <map>
#include <memory>
#include <string>

#include "taper/exporter/ir/graph.h"

namespace taper::ir {

/// The elements of constants and states, by the digest that stands in the text.
using Payloads = std::map<std::string, std::shared_ptr<const Payload>>;

std::string to_string(const Graph& graph);
std::ostream& operator<<(std::ostream& out, const Graph& graph);
/// The line of a node, and its bodies.
std::string to_string(const Node& node);
/// What a node computes, without its source: "add.Tensor(%x, %y, 1)".
std::string call_text(const Node& node);

/// A checksum of dtype, sizes and bytes: 16 hexadecimal digits.
std::string digest(const Payload& payload);
Payloads payloads_of(const Graph& graph);

}  // namespace taper::ir
