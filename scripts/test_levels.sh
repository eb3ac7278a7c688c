#!/usr/bin/env bash
# The tests that compute, as a lesser processor runs them: without AVX-512, then without AVX2. Of the release build.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS

programs=(eager_test kernels_functions_test kernels_portable_test kernels_layers_test kernels_quantized_test kernels_programs_test quantized_kernels_test
  optimized_kernels_test exporter_nn_test exporter_optim_test exporter_trace_test exporter_passes_test exporter_emit_test
  exporter_pt2_test exporter_cli_test exporter_compare_test exporter_inspect_test runtime_test module_test models_test
  published_models_test exporter_block_weights_test exporter_llm_test integer_operators_test exporter_quantize_test
  exporter_quantize_models_test static_models_test)
# Prints what a program said when it has ended, so that programs may run side by side.
run_program() {
  local status=0 output
  output=$(cd build/release && "bin/$1" --gtest_brief=1 2>&1) || status=$?
  printf -- '-- %s\n%s\n' "$1" "$output"
  return $status
}
export -f run_program

for level in avx2 portable; do
  export TAPER_CPU=$level
  echo "== TAPER_CPU=$level"
  printf '%s\n' "${programs[@]}" | xargs -P "$(nproc)" -I{} bash -c 'run_program {}'
  ctest --preset release --progress -R '^(op_goldens|op_properties|record_goldens|pt2_goldens|operator_parts|docs\.|documentation\.)'
done
echo "The tests that compute pass without AVX-512 and without AVX2 ($((SECONDS - start)) s)."
