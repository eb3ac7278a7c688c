#include "taper/exporter/importers/gguf/types.h"

#include <algorithm>
#include <iterator>

namespace taper::gguf {
namespace {

constexpr TensorType types[] = {
    {0, "F32", 1, 4},
    {1, "F16", 1, 2},
    {2, "Q4_0", 32, 18, Layout::q4_0},
    {3, "Q4_1", 32, 20, Layout::q4_1},
    {6, "Q5_0", 32, 22, Layout::q5_0},
    {7, "Q5_1", 32, 24, Layout::q5_1},
    {8, "Q8_0", 32, 34, Layout::q8_0},
    {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84, Layout::q2_k},
    {11, "Q3_K", 256, 110, Layout::q3_k},
    {12, "Q4_K", 256, 144, Layout::q4_k},
    {13, "Q5_K", 256, 176, Layout::q5_k},
    {14, "Q6_K", 256, 210, Layout::q6_k},
    {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66, Layout::iq2_xxs},
    {17, "IQ2_XS", 256, 74, Layout::iq2_xs},
    {18, "IQ3_XXS", 256, 98, Layout::iq3_xxs},
    {19, "IQ1_S", 256, 50, Layout::iq1_s},
    {20, "IQ4_NL", 32, 18, Layout::iq4_nl},
    {21, "IQ3_S", 256, 110, Layout::iq3_s},
    {22, "IQ2_S", 256, 82, Layout::iq2_s},
    {23, "IQ4_XS", 256, 136, Layout::iq4_xs},
    {24, "I8", 1, 1},
    {25, "I16", 1, 2},
    {26, "I32", 1, 4},
    {27, "I64", 1, 8},
    {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56, Layout::iq1_m},
    {30, "BF16", 1, 2},
    {34, "TQ1_0", 256, 54, Layout::tq1_0},
    {35, "TQ2_0", 256, 66, Layout::tq2_0},
    {39, "MXFP4", 32, 17, Layout::mxfp4},
    {40, "NVFP4", 64, 36, Layout::nvfp4},
};

}  // namespace

const TensorType* find_type(uint32_t id) {
  const auto at = std::ranges::find(types, id, &TensorType::id);
  return at == std::end(types) ? nullptr : at;
}

std::string type_name(uint32_t id) {
  const TensorType* type = find_type(id);
  return type != nullptr ? type->name : "type " + std::to_string(id);
}

}  // namespace taper::gguf
