#include "taper/exporter/quantize/static/run_examples.h"

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/printer.h"

namespace taper::quantize {

ir::Interpretation run_example(const ir::Graph& graph, const Examples& examples, size_t i,
                               const See& see) {
  try {
    const eager::NoGrad guard;
    ir::Interpreter interpreter(graph);
    if (see) interpreter.observe(see);
    return interpreter.run(examples.at(i));
  } catch (const ExportError& e) {
    throw ExportError("example " + std::to_string(i) + ": " + e.what());
  }
}

std::unique_ptr<ir::Graph> copy_of(const ir::Graph& graph) {
  return ir::parse(ir::to_string(graph), ir::payloads_of(graph));
}

}  // namespace taper::quantize
