#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/kernel_table.h"
#include "taper/exporter/cli/language_model.h"
#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/cli/quantization.h"
#include "taper/exporter/cli/stages.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/passes/passes.h"

namespace taper::cli {
namespace {

struct ExportArguments {
  std::vector<std::string> files, slots;
  std::string output, weights, kernels, array, header, name;
  ImportChoice import;
  std::string dtype = "f32";
  std::string target, print_after, backend, required;
  std::optional<int64_t> memory;
  LanguageModelExport language;
  QuantizeChoice quantize;
  bool exact = false, dense = false, no_tests = false, each_node = false;
  bool lists_weights = false;  ///< prints what became of each weight
};

void write(const std::string& path, const LinkedProgram& program,
           void (*writer)(std::ostream&, const LinkedProgram&), std::ostream& out) {
  if (path.empty()) return;
  std::ostringstream text;
  writer(text, program);
  io::write_file(path, std::as_bytes(std::span(text.view())));
  out << "wrote " << path << '\n';
}

void require_backend_for_its_options(const ExportArguments& options) {
  if (options.each_node && options.backend.empty() && options.required.empty())
    throw UsageError("--each-node", "it needs --backend or --require");
}

/// Throws if two models would become methods of one name.
void require_names_of_their_own(const ExportArguments& options) {
  std::set<std::filesystem::path> methods;
  for (const std::filesystem::path file : options.files)
    if (!methods.insert(file.stem()).second)
      throw UsageError("file", "two models are called " + file.stem().string() +
                                   ", but each file name becomes the name of a method; rename one");
}

Target target_of(const ExportArguments& options) {
  Target target = options.target.empty() ? Target() : Target(options.target);
  if (options.memory.value_or(1) <= 0) throw UsageError("--memory", "it must be positive");
  target.memory_bytes = options.memory.value_or(0);
  return target;
}

/// The options of a program that hold for models of every kind.
ExportOptions options_of(const ExportArguments& options) {
  require_backend_for_its_options(options);
  ExportOptions written;
  written.quiet = true, written.exact = options.exact, written.name = options.name;
  written.target = target_of(options), written.weights = options.weights;
  written.slots = options.slots, written.dense = options.dense;
  if (options.dtype == "f16") written.dtype = DType::f16;
  if (options.dtype == "bf16") written.dtype = DType::bf16;
  written.backend = options.required.empty() ? options.backend : options.required;
  written.require_backend = !options.required.empty();
  written.each_node = options.each_node;
  return written;
}

/// The file with the canonical name of its folder: absolute, without links and "..".
std::filesystem::path in_canonical_folder(const std::filesystem::path& file) {
  std::error_code failed;
  const std::filesystem::path folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(file).parent_path(), failed);
  return (failed ? std::filesystem::absolute(file).lexically_normal().parent_path() : folder) /
         file.filename();
}

/// Why an export leaves a pass out.
const char* why_left_out(const std::string& pass) {
  using enum passes::Pass::Runs;
  switch (std::ranges::find(passes::all_passes(), pass, &passes::Pass::name)->runs) {
    case unless_exact:
      return "--exact leaves it out";
    case for_dtype:
      return "it needs --dtype";
    default:
      return "it needs --backend";
  }
}

// Exports models to a program, and writes the sources of the program if they are asked for.
std::string export_models(const ExportArguments& options, std::ostream& out) {
  for (const std::string& file : options.files)
    if (!is_exported_model(file))
      throw UsageError("file",
                       file + " is not a .pt2 file; give .pt2 files, or one program (.taper)");
  if (options.output.empty()) throw UsageError("--output FILE.taper is required");
  if (!options.quantize.calibrate.empty() && options.files.size() > 1)
    throw UsageError("--calibrate", "its data is for one model; give one");
  if (!options.quantize.target.empty() && options.files.size() > 1)
    throw UsageError("--target-accuracy", "it is for one model; give one");
  require_names_of_their_own(options);
  const auto folder = [](const std::string& file) {
    return in_canonical_folder(file).parent_path();
  };
  if (!options.weights.empty() && folder(options.weights) != folder(options.output))
    throw UsageError("--weights", "the file must lie in the folder of the program, " +
                                      options.output + ", which finds it there");
  ImportChoice import = options.import;
  import.tests = !options.no_tests;
  ExportOptions written = options_of(options);
  bool printed = options.print_after.empty();
  if (!options.print_after.empty())
    written.after_pass = [&](const passes::PassResult& result, const ir::Graph& graph) {
      if (result.name == options.print_after) out << result << graph << '\n', printed = true;
    };
  emit::Report report;
  Quantization quantization(options.quantize, options.files[0]);
  {
    // two or three stages for each model: importing, tracing, running; three more for the program
    Stages stages(static_cast<int>(options.files.size()) * (import.tests ? 3 : 2) + 3 +
                  quantization.stages());
    written.stage = [&](const std::string& stage) { stages.begin(stage); };
    quantization.add_to(written, stages);
    report = export_models({options.files.begin(), options.files.end()}, options.output, import,
                           written);
  }
  if (!options.weights.empty() && report.weights.empty())
    report.notes.push_back("no weight has 1 KiB or more, so none went to " + options.weights +
                           ": the program needs no other file");
  if (!printed)
    report.notes.push_back("--print-after " + options.print_after +
                           ": this pass did not run: " + why_left_out(options.print_after));
  quantization.print(out, options.lists_weights, options.output);
  out << report;
  return options.output;
}

void export_language_model(const ExportArguments& options, std::ostream& out) {
  if (options.files.size() > 1)
    throw UsageError("file", "a language model becomes a program of its own; give one");
  if (options.output.empty()) throw UsageError("--output FILE.taper is required");
  const std::pair<bool, const char*> others[] = {{!options.import.model.empty(), "--model"},
                                                 {!options.import.dims.empty(), "--dim"},
                                                 {!options.print_after.empty(), "--print-after"},
                                                 {options.no_tests, "--no-tests"}};
  for (const auto& [is_given, name] : others)
    if (is_given) throw UsageError(name, "this option is for .pt2 files");
  LanguageModelExport choice = options.language;
  QuantizeChoice weights = options.quantize;
  take_cache_recipe(weights.recipe, choice.cache_dtype);
  Quantization quantization(weights, options.files[0]);
  choice.quantization = &quantization;
  std::ostringstream report;
  export_language_model(options.files[0], options.output, choice, options_of(options), report);
  quantization.print(out, options.lists_weights, options.output);
  out << report.view();
}

void export_sources(const std::string& file, const ExportArguments& options, std::ostream& out) {
  const LinkedProgram program = linked_program(file, options.name, target_of(options));
  if (!options.array.empty() && !program.outside.empty())
    throw ExportError(file + ": " + program.outside +
                      " lies in a weights file, which --array does not write; export the model "
                      "without --weights");
  write(options.kernels, program, write_kernel_table, out);
  write(options.array, program, write_array, out);
  write(options.header, program, write_header, out);
  out << program.file_name << ": "
      << io::counted(static_cast<int64_t>(program.kernels.size()), "kernel") << ", "
      << io::bytes_text(static_cast<int64_t>(program.bytes.size())) << " of constants and tables\n";
}

/// Throws for options that change how a model is exported, if the file is a program already.
void require_no_options_of_models(const ExportArguments& options) {
  const std::pair<bool, const char*> given[] = {{!options.import.model.empty(), "--model"},
                                                {!options.import.dims.empty(), "--dim"},
                                                {!options.weights.empty(), "--weights"},
                                                {!options.slots.empty(), "--slot"},
                                                {options.exact, "--exact"},
                                                {options.dense, "--dense"},
                                                {!options.print_after.empty(), "--print-after"},
                                                {options.memory.has_value(), "--memory"},
                                                {!options.backend.empty(), "--backend"},
                                                {!options.required.empty(), "--require"},
                                                {options.each_node, "--each-node"},
                                                {options.dtype != "f32", "--dtype"},
                                                {!options.quantize.recipe.empty(), "--recipe"},
                                                {!options.quantize.prune.method.empty(), "--prune"},
                                                {options.no_tests, "--no-tests"}};
  for (const auto& [is_given, name] : given)
    if (is_given)
      throw UsageError(name,
                       options.files[0] + " is a program already; this option is for .pt2 files");
}

/// Throws if a written file would overwrite a file that is read, or another written file.
void require_files_of_their_own(const ExportArguments& options) {
  std::vector<std::string> inputs = options.files;
  for (const std::string& data :
       {options.quantize.recipe, options.quantize.calibrate, options.quantize.evaluate})
    for (const std::string& file : {data, data.substr(0, data.find_last_of(':'))})
      if (!file.empty()) inputs.push_back(file);  // a tensor of a file may be named behind it
  std::set<std::filesystem::path> files;
  for (const std::string& file : {options.output, options.weights, options.kernels, options.array,
                                  options.header, options.quantize.report}) {
    if (file.empty()) continue;
    std::error_code none;
    for (const std::string& input : inputs)
      if (std::filesystem::equivalent(input, file, none))
        throw UsageError(file, "this is an input file; write to another file");
    if (!files.insert(in_canonical_folder(file)).second)
      throw UsageError(file, "two outputs have this name; give each its own file");
  }
}

void run_export(const ExportArguments& options, std::ostream& out) {
  require_files_of_their_own(options);
  if (is_language_model(options.files[0])) return export_language_model(options, out);
  const LanguageModelExport& language = options.language;
  const std::string is_other =
      options.files[0] + " is neither a folder with a config.json nor a .gguf file";
  if (language.context || language.all_logits || language.states || language.parallel ||
      !language.lora.empty() || language.lora_slots || language.cache_dtype != "f32")
    throw ExportError(
        "--context, --all-logits, --cache-dtype, --lora, --lora-slots, --parallel and --states are "
        "for language models, and " +
        is_other);
  if (std::string recipe = options.quantize.recipe; !take_cache_recipe(recipe).empty())
    throw ExportError("recipe " + options.quantize.recipe +
                      " is for the caches of language models, and " + is_other);
  const bool sources =
      !options.kernels.empty() || !options.array.empty() || !options.header.empty();
  const bool imports = options.files.size() > 1 || is_exported_model(options.files[0]);
  if (!imports && !options.output.empty())
    throw UsageError("file", options.files[0] +
                                 " is not a .pt2 file; with --output, give a model that "
                                 "torch.export.save wrote");
  if (!imports) refuse_weights(options.files[0]);
  if (!imports && !sources)
    throw UsageError(
        "file",
        options.files[0] +
            " is not a .pt2 file; for a program, one of --kernels, --array, --header is required");
  if (!imports) require_no_options_of_models(options);
  const std::string program = imports ? export_models(options, out) : options.files[0];
  if (sources) export_sources(program, options, out);
}

void require_existing(const std::string& model) {
  std::error_code ignored;
  if (!std::filesystem::exists(model, ignored))
    throw ExportError(model + ": there is no such file or folder");
}

void add_language_options(Command& command, LanguageModelExport& choice) {
  command.option("--context N", choice.context,
                 "Language models: the most tokens of a text; default: as the model was trained");
  command.option("--chunk N", choice.chunk, "Language models: the most tokens of one call")
      .shows_default();
  command.flag(
      "--all-logits", choice.all_logits,
      "Language models: adds the method forward_all, which gives the logits of every token");
  add_cache_dtype(command, choice.cache_dtype);
  command
      .option("--lora ADAPTER", choice.lora,
              "Language models: a LoRA adapter, which is a folder of PEFT or a .gguf file; "
              "NAME=ADAPTER for each of several, among which texts choose")
      .one_value();
  command.option("--lora-slots RANK", choice.lora_slots,
                 "Language models: room for an adapter up to this rank, which is given when the "
                 "program is loaded");
  command.flag("--states", choice.states,
               "Language models: adds the method states, which embeddings are made of");
  command.option("--parallel N", choice.parallel,
                 "Language models: caches for N texts, which `serve` writes together");
}

}  // namespace

void add_quantize_command(CommandLine& line, std::ostream& out) {
  Command command = line.add(
      "quantize",
      "Stores the weights of a model in a few bits, or prunes them, and writes the program");
  auto options = std::make_shared<ExportArguments>();
  options->lists_weights = true;
  command
      .option("model", options->files,
              "A PyTorch model (.pt2), or a language model: a folder with a config.json, or a "
              ".gguf file in f32, f16 or bf16")
      .required();
  command.option("-o,--output FILE.taper", options->output, "The program to write")
      .required()
      .checked_by(check_written);
  add_quantize_options(command, options->quantize);
  command.flag("--exact", options->exact,
               "Products read weights as f32 numbers, and do not round their input");
  add_import_options(command, options->import);
  add_language_options(command, options->language);
  command.flag("--no-tests", options->no_tests,
               "Leaves out the test made from a model's example inputs");
  command
      .option("--target TARGET", options->target,
              "The machine that runs the program; default: any machine of this architecture")
      .one_of(Target::names());
  command.footer(R"(Examples:
  taper quantize encoder.pt2 --recipe int8-dynamic -o encoder.taper
  taper quantize SmolLM2-135M --recipe int4-g32 --calibrate story.txt -o smollm2.taper
  taper quantize lenet.pt2 --prune magnitude --sparsity 0.5 -o lenet.taper)");
  command.does([options, &out] {
    if (options->quantize.recipe.empty() && options->quantize.prune.method.empty())
      throw UsageError("--recipe RECIPE", "it is required, or --prune METHOD");
    for (const std::string& file : options->files) require_existing(file);
    run_export(*options, out);
  });
}

void add_export_command(CommandLine& line, std::ostream& out) {
  Command command = line.add("export",
                             "Writes PyTorch models (.pt2) as one program, or a program as C++ "
                             "sources for a firmware");
  auto options = std::make_shared<ExportArguments>();
  command
      .option("file", options->files,
              "PyTorch models (.pt2), each a method of the program; or one language model (a "
              "folder with "
              "a config.json, or a .gguf file); or one program (.taper)")
      .required();
  command
      .option("-o,--output FILE.taper", options->output, "The program to write from the .pt2 files")
      .checked_by(check_written);
  command.option(
      "--weights FILE.taper", options->weights,
      "Writes weights of 1 KiB or more to this file, or adds them: programs can share it. "
      "Keep it beside the program");
  command
      .option(
          "--slot NAME", options->slots,
          "A weight that the app gives at load, by its name in the model (ModuleOptions::slots)")
      .one_value();
  add_import_options(command, options->import);
  const Option exact = command.flag("--exact", options->exact,
                                    "Runs only passes that keep every bit of eager's results");
  command.flag("--dense", options->dense,
               "Does not pack weights for kernels: each load does, and the file may be smaller");
  command.option("--dtype DTYPE", options->dtype, "Stores large weights in f16 or bf16")
      .one_of({"f32", "f16", "bf16"})
      .shows_default()
      .excludes(exact);
  Option backend =
      command.option("--backend NAME", options->backend,
                     "Lets a backend run the parts that it takes, and says what it did not take");
  backend.excludes(exact);
  command
      .option("--require NAME", options->required,
              "The same; refuses a model with a part that the backend does not take")
      .excludes(exact)
      .excludes(backend);
  command.flag("--each-node", options->each_node,
               "With a backend: each node is a part of its own. This is slower, and lets profile "
               "and compare see every node");
  add_language_options(command, options->language);
  add_quantize_options(command, options->quantize);
  command.flag("--no-tests", options->no_tests,
               "Leaves out the test made from a model's example inputs");
  command
      .option("--kernels FILE.cpp", options->kernels,
              "Writes NAME_kernels: the table of exactly the kernels that the program needs")
      .checked_by(check_written);
  command.option("--array FILE.cpp", options->array, "Writes NAME_taper: the bytes of the program")
      .checked_by(check_written);
  command
      .option("--header FILE.h", options->header,
              "Declares both, and says how much memory the program needs")
      .checked_by(check_written);
  command
      .option("--target TARGET", options->target,
              "The machine that runs the program; default: any machine of this architecture")
      .one_of(Target::names());
  command.option("--memory BYTES", options->memory,
                 "Refuses a program whose activations, inputs, outputs and states take more");
  command
      .option("--print-after PASS", options->print_after,
              "Prints the graph after a pass, and what the pass did and why it left nodes alone")
      .one_of(passes::pass_names());
  command.option("--name NAME", options->name,
                 "The NAME in the C++ sources; default: the file's name");
  command.footer(R"(Examples:
  taper export model.pt2 -o model.taper
  taper export encoder.pt2 decoder.pt2 -o speech.taper
  taper export encoder.pt2 -o encoder.taper --weights speech.weights.taper
  taper export SmolLM2-135M -o smollm2.taper --context 2048
  taper export lenet.taper --target portable --kernels lenet_kernels.cpp --header lenet.h)");
  command.does([options, &out] { run_export(*options, out); });
}

}  // namespace taper::cli
