#include "taper/delegates/xnnpack/runtime/grouped_product.h"

#include <cstring>
#include <limits>
#include <new>

namespace taper::delegates::xnnpack {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

size_t bytes_of(index_t groups) {
  return sizeof(GroupedProduct) + static_cast<size_t>(groups) * sizeof(xnn_operator_t);
}

int64_t end_of(const TensorRef& ends, index_t group) {
  return ends.dtype == DType::i32 ? static_cast<const int32_t*>(ends.data)[group]
                                  : static_cast<const int64_t*>(ends.data)[group];
}

// They are used as addresses.
Error check(const TensorRef& ends, index_t groups, index_t rows, Context& context) {
  int64_t begin = 0;
  for (index_t g = 0; g < groups; ++g) {
    const int64_t end = end_of(ends, g);
    if (end < begin || end > rows)
      return context.fail(Error::invalid_argument,
                          TAPER_TEXT("offs must ascend: {} is outside [{}, {}]"), end, begin, rows);
    begin = end;
  }
  return Error::ok;
}

}  // namespace

GroupedProduct* GroupedProduct::create(Memory& memory, const Shape& filters, const void* elements,
                                       xnn_weights_cache_t packed, pthreadpool_t threads) {
  const index_t groups = filters.sizes[0];
  void* place = allocate(memory, bytes_of(groups));
  if (place == nullptr) return nullptr;
  auto* product = new (place) GroupedProduct(groups, threads);
  std::memset(product->operators(), 0, static_cast<size_t>(groups) * sizeof(xnn_operator_t));
  const auto outputs = static_cast<size_t>(filters.sizes[1]),
             inputs = static_cast<size_t>(filters.sizes[2]);
  const auto* filter = static_cast<const float*>(elements);
  for (index_t g = 0; g < groups; ++g, filter += outputs * inputs) {
    if (xnn_create_fully_connected_nc_f32(inputs, outputs, inputs, outputs, filter, nullptr,
                                          -infinity, infinity, 0, nullptr, packed,
                                          &product->operators()[g]) != xnn_status_success) {
      destroy(memory, product);
      return nullptr;
    }
    memory.was_packed(filter, outputs * inputs * sizeof(float));
  }
  return product;
}

void GroupedProduct::destroy(Memory& memory, GroupedProduct* product) {
  const index_t groups = product->groups_;
  for (index_t g = 0; g < groups; ++g)
    if (xnn_operator_t op = product->operators()[g]; op != nullptr) (void)xnn_delete_operator(op);
  memory.release(product, bytes_of(groups));
}

Error GroupedProduct::run(const TensorRef& x, const TensorRef& ends, const TensorRef& y,
                          Context& context) {
  const index_t rows = x.shape->sizes[0], inputs = x.shape->sizes[1], outputs = y.shape->sizes[1];
  TAPER_TRY(check(ends, groups_, rows, context));
  const auto* from = static_cast<const float*>(x.data);
  auto* to = static_cast<float*>(y.data);
  index_t begin = 0;
  for (index_t g = 0; g < groups_; ++g) {
    const auto end = static_cast<index_t>(end_of(ends, g));
    if (end > begin && !multiply(g, end - begin, from + begin * inputs, to + begin * outputs))
      return context.fail(Error::device_failed, TAPER_TEXT("XNNPACK failed"));
    begin = end;
  }
  std::memset(to + begin * outputs, 0,
              static_cast<size_t>((rows - begin) * outputs) * sizeof(float));
  return Error::ok;
}

bool GroupedProduct::multiply(index_t group, index_t rows, const float* x, float* y) {
  xnn_operator_t op = operators()[group];
  return xnn_reshape_fully_connected_nc_f32(op, static_cast<size_t>(rows), threads_) ==
             xnn_status_success &&
         xnn_setup_fully_connected_nc_f32(op, x, y) == xnn_status_success &&
         xnn_run_operator(op, threads_) == xnn_status_success;
}

}  // namespace taper::delegates::xnnpack
