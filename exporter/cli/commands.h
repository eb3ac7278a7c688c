// The subcommands of `taper`. Each function declares one: its options, its help, and its action.
#pragma once
#include <iosfwd>

namespace taper::cli {

class CommandLine;

void add_inspect_command(CommandLine& line, std::ostream& out);
void add_run_command(CommandLine& line, std::ostream& out);
void add_profile_command(CommandLine& line, std::ostream& out);
void add_check_command(CommandLine& line, std::ostream& out);
void add_compare_command(CommandLine& line, std::ostream& out);
void add_export_command(CommandLine& line, std::ostream& out);
void add_quantize_command(CommandLine& line, std::ostream& out);
void add_operators_command(CommandLine& line, std::ostream& out);
void add_generate_command(CommandLine& line, std::ostream& out);
void add_chat_command(CommandLine& line, std::ostream& out);
void add_serve_command(CommandLine& line, std::ostream& out);
void add_embed_command(CommandLine& line, std::ostream& out);
void add_eval_command(CommandLine& line, std::ostream& out);
void add_bench_command(CommandLine& line, std::ostream& out);
void add_cache_command(CommandLine& line, std::ostream& out);
void add_transcribe_command(CommandLine& line, std::ostream& out);

}  // namespace taper::cli
