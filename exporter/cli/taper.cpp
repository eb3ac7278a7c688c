#include "taper/exporter/cli/taper.h"

#include "taper/exporter/cli/commands.h"
#include "taper/exporter/io/format_text.h"
#include "taper/runtime/platform/cpu.h"

namespace taper::cli {
namespace {

constexpr char footer[] = R"(Examples:
  taper export resnet20.pt2 -o resnet20.taper
  taper quantize SmolLM2-135M --recipe int4-g32 -o smollm2.taper
  taper check resnet20.taper resnet20.io.safetensors
  taper compare resnet20.pt2 resnet20.taper --input x=photo.npy
  taper inspect lenet.taper --graph lenet.html
  taper run lenet.taper --input digit.png
  taper profile lenet.taper --dim batch=64 --trace lenet.json
  taper export lenet.taper --target portable --kernels lenet_kernels.cpp --header lenet.h
  taper operators gelu

Exit codes: 0 success, 1 failure (stderr says what went wrong and what to do), 2 wrong usage.)";

}  // namespace

int run(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  if (const char* word = unknown_cpu_features()) {
    err << "taper: TAPER_CPU is " << io::printable(word)
        << "; it can be portable, or names of features such as avx2 or avx512_bf16, separated "
           "by commas\n";
    return usage;
  }
  CommandLine line("taper", "taper 0.1.0",
                   "Exports PyTorch models (.pt2) as Taper programs (.taper). Inspects, runs, "
                   "profiles, checks and compares both.",
                   footer);
  add_inspect_command(line, out);
  add_run_command(line, out);
  add_profile_command(line, out);
  add_check_command(line, out);
  add_compare_command(line, out);
  add_export_command(line, out);
  add_quantize_command(line, out);
  add_operators_command(line, out);
#ifdef TAPER_HAS_TEXT_MODELS
  add_generate_command(line, out);
  add_chat_command(line, out);
  add_embed_command(line, out);
  add_eval_command(line, out);
  add_bench_command(line, out);
  add_transcribe_command(line, out);
  add_cache_command(line, out);
#endif
#ifdef TAPER_HAS_SERVER
  add_serve_command(line, out);
#endif
  return line.run(arguments, out, err);
}

}  // namespace taper::cli
