// How kernels read weights in blocks.
#pragma once
#include "taper/kernels/quantized/panels.h"

namespace taper::quantized {
namespace internal {

template <int argument>
constexpr Packing reads(Layout layout) {
  return {argument, -1, layout, layout, nullptr, nullptr};
}
template <int argument, bool asks>
constexpr Packing panels(Layout from, Layout layout) {
  return {
      argument, -1, from, layout, asks ? bytes_of_panels : nullptr, asks ? pack_panels : nullptr};
}

}  // namespace internal

/// The Packings of an argument that a kernel reads in all formats of blocks. `asks`: panels are
/// faster. Otherwise the kernel reads them, too, but does not ask for them.
template <int argument, bool asks>
constexpr Packing block_packings[] = {
    internal::panels<argument, asks>(Layout::q4_0, Layout::q4_0_panels),
    internal::panels<argument, asks>(Layout::q4_1, Layout::q4_1_panels),
    internal::panels<argument, asks>(Layout::q8_0, Layout::q8_0_panels),
    internal::panels<argument, asks>(Layout::q4_k, Layout::q4_k_panels),
    internal::panels<argument, asks>(Layout::q6_k, Layout::q6_k_panels),
    internal::reads<argument>(Layout::q5_0),
    internal::reads<argument>(Layout::q5_1),
    internal::reads<argument>(Layout::q2_k),
    internal::reads<argument>(Layout::q3_k),
    internal::reads<argument>(Layout::q5_k),
    internal::reads<argument>(Layout::iq2_xxs),
    internal::reads<argument>(Layout::iq2_xs),
    internal::reads<argument>(Layout::iq2_s),
    internal::reads<argument>(Layout::iq3_xxs),
    internal::reads<argument>(Layout::iq3_s),
    internal::reads<argument>(Layout::iq1_s),
    internal::reads<argument>(Layout::iq1_m),
    internal::reads<argument>(Layout::iq4_nl),
    internal::reads<argument>(Layout::iq4_xs),
    internal::reads<argument>(Layout::tq1_0),
    internal::reads<argument>(Layout::tq2_0),
    internal::reads<argument>(Layout::mxfp4),
    internal::reads<argument>(Layout::nvfp4),
    internal::reads<argument>(Layout::nf4),
    internal::reads<argument>(Layout::mxfp6_e2m3),
    internal::reads<argument>(Layout::mxfp6_e3m2),
    internal::reads<argument>(Layout::mxfp8_e4m3),
    internal::reads<argument>(Layout::mxfp8_e5m2),
    internal::reads<argument>(Layout::q2_z),
    internal::reads<argument>(Layout::q3_z)};

}  // namespace taper::quantized
