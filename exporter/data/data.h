// Data for training: datasets, batches, a progress bar.
#pragma once
#include "taper/exporter/data/images.h"
#include "taper/exporter/data/loader.h"
#include "taper/exporter/data/progress.h"
#include "taper/exporter/data/text.h"

namespace taper {
using data::Progress;
}
