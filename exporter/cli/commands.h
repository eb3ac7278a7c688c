// The subcommands of `taper`. Each function declares one: its options, its help, and what it does
// with them.
#pragma once
#include <iosfwd>

namespace CLI {
class App;
}

namespace taper::cli {

void add_inspect_command(CLI::App& app, std::ostream& out);
void add_run_command(CLI::App& app, std::ostream& out);
void add_profile_command(CLI::App& app, std::ostream& out);
void add_check_command(CLI::App& app, std::ostream& out);
void add_compare_command(CLI::App& app, std::ostream& out);
void add_export_command(CLI::App& app, std::ostream& out);

}  // namespace taper::cli
