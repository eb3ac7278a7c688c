#include <filesystem>
#include <memory>
#include <span>
#include <sstream>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/inspect/graph_html.h"
#include "taper/exporter/inspect/graph_svg.h"
#include "taper/exporter/inspect/summary.h"
#include "taper/exporter/io/file.h"

namespace taper::cli {
namespace {

struct Options {
  std::string file, graph, method;
  ImportChoice import;
  bool json = false;
};

std::string check_picture(const std::string& path) {
  const std::string kind = std::filesystem::path(path).extension().string();
  const bool known = kind == ".svg" || kind == ".html" || kind == ".htm";
  return known ? "" : path + ": graphs are drawn as .svg or .html";
}

void write_graph(const inspect::ProgramFile& file, const Options& options) {
  std::vector<inspect::MethodGraph> graphs;
  for (index_t i = 0; i < file.program().method_count(); ++i)
    if (options.method.empty() || i == inspect::find_method(file.program(), options.method))
      graphs.push_back(inspect::method_graph(file.program(), i));
  const std::filesystem::path kind = std::filesystem::path(options.graph).extension();
  std::ostringstream picture;
  if (kind == ".html" || kind == ".htm")
    inspect::write_html(picture, file.path().filename().string(), graphs);
  else
    inspect::write_svg(picture, graphs);
  io::write_file(options.graph, std::as_bytes(std::span(picture.view())));
}

void inspect_program(const Options& options, std::ostream& out) {
  const inspect::ProgramFile file(options.file, program_bytes(options.file, options.import),
                                  eager::all_kernels(), cpu_has);
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
}

}  // namespace

void add_inspect_command(CommandLine& line, std::ostream& out) {
  Command command =
      line.add("inspect", "Says what a program takes, gives, needs, and how large its parts are");
  auto options = std::make_shared<Options>();
  command.option("file", options->file, "The program (.taper), or a model of PyTorch (.pt2)")
      .required();
  command.option("--method", options->method, "Only this method; default: all");
  command
      .option("--graph", options->graph,
              "Draws the methods' graphs: FILE.html, whose modules fold, or FILE.svg")
      .value_name("FILE")
      .checked_by(check_picture);
  command.flag("--json", options->json, "Prints JSON instead of text; sizes in bytes");
  add_import_options(command, options->import);
  command.does([options, &out] { inspect_program(*options, out); });
}

}  // namespace taper::cli
