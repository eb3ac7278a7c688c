#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <ostream>
#include <sstream>

#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/kernel_table.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"

namespace taper::cli {
namespace {

struct Options {
  std::string file, kernels, array, header, name;
  bool portable = false;
};

void write(const std::string& path, const LinkedProgram& program,
           void (*writer)(std::ostream&, const LinkedProgram&), std::ostream& out) {
  if (path.empty()) return;
  std::ostringstream text;
  writer(text, program);
  io::write_file(path, std::as_bytes(std::span(text.view())));
  out << "wrote " << path << '\n';
}

void export_program(const Options& options, std::ostream& out) {
  if (options.kernels.empty() && options.array.empty() && options.header.empty())
    throw CLI::RequiredError("one of --kernels, --array, --header");
  const LinkedProgram program = linked_program(options.file, options.name, options.portable);
  write(options.kernels, program, write_kernel_table, out);
  write(options.array, program, write_array, out);
  write(options.header, program, write_header, out);
  out << program.file_name << ": "
      << io::counted(static_cast<int64_t>(program.kernels.size()), "kernel") << ", "
      << io::bytes_text(static_cast<int64_t>(program.bytes.size())) << " of constants and tables\n";
}

}  // namespace

void add_export_command(CLI::App& app, std::ostream& out) {
  CLI::App* command =
      app.add_subcommand("export", "Writes a program as C++ sources that a firmware links");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "The program")->required();
  command
      ->add_option("--kernels", options->kernels,
                   "The table of exactly the kernels that the program needs: NAME_kernels")
      ->type_name("FILE.cpp");
  command->add_option("--array", options->array, "The program's bytes: NAME_taper")
      ->type_name("FILE.cpp");
  command
      ->add_option("--header", options->header,
                   "Declarations of both, and the memory that the program needs")
      ->type_name("FILE.h");
  command->add_flag("--portable", options->portable,
                    "Takes the portable kernels only; else also those for x86-64 with AVX");
  command
      ->add_option("--name", options->name,
                   "What the variables are called; default: the file's name")
      ->type_name("NAME");
  command->callback([options, &out] { export_program(*options, out); });
}

}  // namespace taper::cli
