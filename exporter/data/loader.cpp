#include "taper/exporter/data/loader.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace taper::data {

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : dataset_(std::move(dataset)), options_(options) {
  if (options_.batch_size < 1)
    throw std::invalid_argument("data::Loader: batch_size " + std::to_string(options_.batch_size) +
                                " is not positive");
}

int64_t Loader::size() const {
  const int64_t n = dataset_->size(), batch = options_.batch_size;
  return options_.drop_last ? n / batch : (n + batch - 1) / batch;
}

Loader::Iterator Loader::begin() {
  ++epoch_;
  order_.resize(static_cast<size_t>(dataset_->size()));
  std::iota(order_.begin(), order_.end(), 0);
  if (options_.shuffle) {  // Fisher and Yates
    Random random(options_.seed, epoch_);
    for (size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  return {this, 0};
}

Batch Loader::batch(int64_t number) const {
  const auto begin = static_cast<size_t>(number * options_.batch_size);
  const size_t count = std::min(order_.size() - begin, static_cast<size_t>(options_.batch_size));
  return dataset_->batch(std::span(order_).subspan(begin, count),
                         Random(options_.seed, ~epoch_).bits());
}

}  // namespace taper::data
