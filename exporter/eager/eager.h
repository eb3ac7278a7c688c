// The front door of eager: tensors, autograd and every public operator.
#pragma once
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/checkpoint.h"
#include "taper/exporter/eager/control_flow.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/eager/threads.h"
