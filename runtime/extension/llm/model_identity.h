/// What tells models apart whose caches hold other numbers.
#pragma once
#include <cstdint>

#include "taper/runtime/core/span.h"
#include "taper/runtime/extension/llm/text_parts.h"
#include "taper/runtime/extension/module/module.h"

namespace taper::llm {

/// Tells models by what they compute with: the weights as the program stores them, the numbers in
/// the formulas, and what the caches hold of a token. Where the files lie and when they were
/// written does not count, nor how many texts and tokens the caches have room for, nor the adapters
/// with names.
///
/// Of a constant of more than 16 kB, both ends and two pages between them are read. Training
/// changes all of these. Somebody who changes a few weights by hand may get the same number.
uint64_t identity_of(const Module& module, const TextParts& text);

/// The same of one of `text.adapters`, counted from 1: all of its weights count, and its place
/// among the others does not.
uint64_t identity_of_adapter(const Module& module, const TextParts& text, index_t adapter);

}  // namespace taper::llm
