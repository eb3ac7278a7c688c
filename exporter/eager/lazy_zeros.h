// Zeros that take memory only where they are written, such as the cache of a long context.
#pragma once
#include "taper/exporter/eager/storage.h"
#include "taper/exporter/eager/tensor.h"

namespace taper::eager {

/// Throws ExportError if there is no memory for them.
Tensor lazy_zeros(const Ints& sizes, DType dtype = DType::f32);

/// Whether these are lazy zeros that no operator has written. To look at all of them instead would
/// take longer than to trace a language model.
bool is_untouched(const Storage& storage);
/// Says that all writes to untouched zeros so far were recorded, and not done.
void keep_untouched(const Storage& storage);

}  // namespace taper::eager
