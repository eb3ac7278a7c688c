#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>

#include "taper/exporter/cli/backends_profile.h"
#include "taper/exporter/cli/chrome_trace.h"
#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/profile_html.h"
#include "taper/exporter/cli/profile_report.h"
#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/cli/steps.h"
#include "taper/exporter/eager/threads.h"
#include "taper/exporter/io/file.h"

namespace taper::cli {
namespace {

struct ProfileArguments {
  std::string file, method, trace, html;
  InputOptions inputs;
  ImportChoice import;
  std::vector<std::string> dims;
  int repeat = 50, threads = 1;
  bool by_time = false, json = false, no_roof = false, backends = false, detail = false;
};

std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : texts) {
    const size_t sign = text.find('=');
    const std::optional<int64_t> value =
        sign == std::string::npos ? std::nullopt : number_of<int64_t>(text.substr(sign + 1));
    if (!value || sign == 0) throw UsageError("--dim", text + " is not NAME=NUMBER");
    if (!dims.emplace(text.substr(0, sign), *value).second)
      throw UsageError("--dim", text.substr(0, sign) + " is given twice");
  }
  return dims;
}

std::vector<Profile::Input> inputs_of(const Method& method) {
  std::vector<Profile::Input> inputs;
  for (index_t i = 0; i < method.input_count(); ++i) {
    const TensorRef input = method.input(i);
    if (input.shape != nullptr) inputs.push_back({method.input_name(i), type_text(input)});
  }
  return inputs;
}

void write_text(const std::string& path, std::string_view text) {
  io::write_file(path, std::as_bytes(std::span(text)));
}

void write_trace(const std::string& path, const Profile& profile) {
  std::ostringstream trace;
  write_chrome_trace(trace, profile.timing, profile.method);
  write_text(path, trace.view());
}

void write_page(const ProfileArguments& options, const Profile& profile) {
  std::ostringstream page;
  const std::string file = std::filesystem::path(options.file).filename().string();
  write_profile_html(page, file + ": " + profile.method, profile);
  write_text(options.html, page.view());
}

Profile profile_program(const ProfileArguments& options) {
  const std::map<std::string, int64_t> dims = parse_dims(options.dims);
  eager::set_threads(options.threads);
  const Threads* threads = eager::threads();
  ImportChoice import = options.import;
  import.pack = true;
  NodeTimes node_times;
  RunningMethod running(options.file, options.method, threads, import);
  set_random_inputs(running, set_given_inputs(running, options.inputs), dims);
  Profile profile;
  profile.timing = time_method(running, options.repeat, node_times);
  if (options.detail) add_steps(running, profile.timing);
  profile.method = running.method().name();
  profile.inputs = inputs_of(running.method());
  profile.threads = threads == nullptr ? 1 : threads->count;
  if (!options.no_roof) profile.peaks = roofline::measure_peaks(threads);
  return profile;
}

void report_backends(const ProfileArguments& options, std::ostream& out) {
  const std::map<std::string, int64_t> dims = parse_dims(options.dims);
  eager::set_threads(options.threads);
  BackendsProfile asked{options.file, options.import, options.repeat, options.threads, {}};
  asked.import.pack = true;
  asked.set_inputs = [&](RunningMethod& running) {
    set_random_inputs(running, set_given_inputs(running, options.inputs), dims);
  };
  profile_backends(asked, out);
}

void report(const ProfileArguments& options, std::ostream& out) {
  if (options.backends) return report_backends(options, out);
  const Profile profile = profile_program(options);
  if (options.json)
    print_json(out, profile, options.by_time);
  else
    print_text(out, profile, options.by_time);

  if (!options.html.empty()) {
    write_page(options, profile);
    if (!options.json) out << "\nwrote " << options.html << '\n';
  }
  if (!options.trace.empty()) {
    write_trace(options.trace, profile);
    if (!options.json)
      out << "\nwrote " << options.trace << "; open it in https://ui.perfetto.dev\n";
  }
}

}  // namespace

void add_profile_command(CommandLine& line, std::ostream& out) {
  Command command = line.add("profile", "Measures the time of each instruction of a method");
  auto options = std::make_shared<ProfileArguments>();
  command.option("file", options->file, "The program (.taper) or PyTorch model (.pt2)").required();
  command.option("--method", options->method, "The method; default: forward, or the only method");
  command
      .option("--dim NAME=NUMBER", options->dims,
              "Sets a symbolic size of inputs that are not given; default: 1, or its minimum")
      .one_value();
  add_input_options(command, options->inputs);
  command
      .option("--repeat", options->repeat,
              "The number of runs; the times are medians over these runs")
      .shows_default()
      .in_range(1, 100'000);
  add_threads_option(command, options->threads);
  add_verify_option(command, options->import);
  add_read_option(command, options->import);
  add_outside_options(command, options->import);
  command.flag("--by-time", options->by_time, "Sorts by time, the slowest instruction first");
  const Option json = command.flag("--json", options->json,
                                   "Prints JSON instead of text; times are in microseconds");
  command.flag("--no-roof", options->no_roof,
               "Does not measure what the machine can do, which takes 0.25 seconds");
  const Option detail = command.flag(
      "--detail", options->detail,
      "Shows the steps inside products, convolutions and attention, which takes a second more");
  command
      .option("--html FILE", options->html,
              "Writes a page, FILE.html: a timeline of one run, and tables that can be sorted")
      .checked_by(check_page);
  command.option("--trace FILE.json", options->trace,
                 "Writes every event to this file, for Perfetto or chrome://tracing");
  command
      .flag("--backends", options->backends,
            "Runs a model (.pt2) with the kernels and with each backend of this build, and says "
            "which to choose")
      .excludes(json)
      .excludes(detail);
  command.footer(R"(Inputs that are not given are random numbers, or zeros for integers.

Examples:
  taper profile lenet.taper --dim batch=64 --threads 4
  taper profile lenet.taper --by-time --trace lenet.json
  taper profile lenet.taper --detail
  taper profile lenet.pt2 --backends --threads 2)");
  command.does([options, &out] { report(*options, out); });
}

}  // namespace taper::cli
