// Optimizers, gradient clipping and learning-rate schedulers.
#pragma once
#include "taper/exporter/optim/adam.h"
#include "taper/exporter/optim/adaptive.h"
#include "taper/exporter/optim/lbfgs.h"
#include "taper/exporter/optim/lowbit.h"
#include "taper/exporter/optim/matrix.h"
#include "taper/exporter/optim/scheduler.h"
#include "taper/exporter/optim/sgd.h"
#include "taper/exporter/optim/sign.h"
