// Every rule: for the host's operator table.
#pragma once
#if __has_include("taper/kernels/shapes/convolution.h")
#include "taper/kernels/shapes/convolution.h"
#endif
#if __has_include("taper/kernels/shapes/creation.h")
#include "taper/kernels/shapes/creation.h"
#endif
#if __has_include("taper/kernels/shapes/indexing.h")
#include "taper/kernels/shapes/indexing.h"
#endif
#if __has_include("taper/kernels/shapes/loss.h")
#include "taper/kernels/shapes/loss.h"
#endif
#if __has_include("taper/kernels/shapes/matmul.h")
#include "taper/kernels/shapes/matmul.h"
#endif
#if __has_include("taper/kernels/shapes/movement.h")
#include "taper/kernels/shapes/movement.h"
#endif
#if __has_include("taper/kernels/shapes/norm.h")
#include "taper/kernels/shapes/norm.h"
#endif
#if __has_include("taper/kernels/shapes/pointwise.h")
#include "taper/kernels/shapes/pointwise.h"
#endif
#if __has_include("taper/kernels/shapes/pooling.h")
#include "taper/kernels/shapes/pooling.h"
#endif
#if __has_include("taper/kernels/shapes/random.h")
#include "taper/kernels/shapes/random.h"
#endif
#if __has_include("taper/kernels/shapes/reduction.h")
#include "taper/kernels/shapes/reduction.h"
#endif
#if __has_include("taper/kernels/shapes/softmax.h")
#include "taper/kernels/shapes/softmax.h"
#endif
#if __has_include("taper/kernels/shapes/view.h")
#include "taper/kernels/shapes/view.h"
#endif
