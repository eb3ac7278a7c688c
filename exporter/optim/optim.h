// Optimizers, gradient clipping and learning-rate schedulers.
#pragma once
#include "taper/exporter/optim/adam.h"
#include "taper/exporter/optim/adaptive.h"
#include "taper/exporter/optim/rare/lbfgs.h"
#include "taper/exporter/optim/rare/lowbit.h"
#include "taper/exporter/optim/rare/matrix.h"
#include "taper/exporter/optim/scheduler.h"
#include "taper/exporter/optim/sgd.h"
#include "taper/exporter/optim/sign.h"
