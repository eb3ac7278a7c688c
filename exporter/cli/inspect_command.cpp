#include <filesystem>
#include <memory>
#include <span>
#include <sstream>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/cli/running_method.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/inspect/graph_html.h"
#include "taper/exporter/inspect/summary.h"
#include "taper/exporter/io/file.h"

namespace taper::cli {
namespace {

struct InspectArguments {
  std::string file, graph, method;
  ImportChoice import;
  bool json = false;
};

void write_graph(const inspect::ProgramFile& file, const InspectArguments& options) {
  std::vector<inspect::MethodGraph> graphs;
  for (index_t i = 0; i < file.program().method_count(); ++i)
    if (options.method.empty() || i == inspect::find_method(file.program(), options.method))
      graphs.push_back(inspect::method_graph(file.program(), i));
  std::ostringstream picture;
  inspect::write_html(picture, file.path().filename().string(), graphs);
  io::write_file(options.graph, std::as_bytes(std::span(picture.view())));
}

void inspect_program(const InspectArguments& options, std::ostream& out) {
  const inspect::ProgramFile file(options.file, program_bytes(options.file, options.import),
                                  eager::all_kernels());
  if (!options.method.empty()) (void)inspect::find_method(file.program(), options.method);
  if (!options.graph.empty()) write_graph(file, options);
  inspect::Summary summary = inspect::summarize(file);
  if (!options.method.empty())
    std::erase_if(summary.methods,
                  [&](const inspect::MethodSummary& m) { return m.name != options.method; });
  if (options.json)
    inspect::write_json(out, summary);
  else
    out << summary;
  if (!options.graph.empty() && !options.json) out << "\nwrote " << options.graph << '\n';
  // comes last, because the report is right without these weights, too
  if (const std::string why = file.verify_outside(options.import.weights_folder); !why.empty())
    throw ExportError(options.file + ": " + with_options(why));
}

}  // namespace

void add_inspect_command(CommandLine& line, std::ostream& out) {
  Command command = line.add(
      "inspect", "Prints what a program takes, returns and needs, and the sizes of its parts");
  auto options = std::make_shared<InspectArguments>();
  command.option("file", options->file, "The program (.taper) or PyTorch model (.pt2)").required();
  command.option("--method", options->method, "Prints only this method; default: all methods");
  command
      .option(
          "--graph FILE", options->graph,
          "Draws the graphs of the methods as a page, FILE.html, on which modules open and close")
      .checked_by(check_page);
  command.flag("--json", options->json, "Prints JSON instead of text; sizes are in bytes");
  add_import_options(command, options->import);
  command.option("--weights-folder FOLDER", options->import.weights_folder,
                 "The folder of the weights files of a program; default: the program's");
  command.footer(R"(Examples:
  taper inspect lenet.taper
  taper inspect model.pt2 --graph model.html)");
  command.does([options, &out] { inspect_program(*options, out); });
}

}  // namespace taper::cli
