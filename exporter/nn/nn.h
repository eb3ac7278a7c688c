// Neural network modules, losses and initial values.
#pragma once
#include "taper/exporter/nn/activation.h"
#include "taper/exporter/nn/containers.h"
#include "taper/exporter/nn/conv.h"
#include "taper/exporter/nn/init.h"
#include "taper/exporter/nn/linear.h"
#include "taper/exporter/nn/loss.h"
#include "taper/exporter/nn/module.h"
#include "taper/exporter/nn/norm.h"
#include "taper/exporter/nn/pool.h"
