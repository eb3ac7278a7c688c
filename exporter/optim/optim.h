// Optimizers, gradient clipping and learning-rate schedulers.
#pragma once
#include "taper/exporter/optim/adam.h"
#include "taper/exporter/optim/scheduler.h"
#include "taper/exporter/optim/sgd.h"
