// Batches of a dataset.
#pragma once
#include <iterator>
#include <memory>
#include <vector>

#include "taper/exporter/data/dataset.h"

namespace taper::data {

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;    ///< another order in every epoch
  uint64_t seed = 0;       ///< of shuffling and augmentation
  bool drop_last = false;  ///< leave out a last batch that would be smaller
};

/// Walks a dataset batch by batch; one range-for is one epoch. The n-th epoch of a Loader with a
/// seed is always the same.
///
///   data::Loader loader(data::mnist("mnist/train"),
///                       {.batch_size = 64, .shuffle = true, .seed = 1});
///   for (auto [images, labels] : loader) …
class Loader {
 public:
  /// Keeps a copy of the dataset (datasets share their data). Throws std::invalid_argument if
  /// batch_size < 1.
  template <class D>
  explicit Loader(D dataset, LoaderOptions options = {})
      : Loader(std::shared_ptr<const Dataset>(std::make_shared<D>(std::move(dataset))), options) {}
  Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);

  /// Batches in an epoch.
  int64_t size() const;
  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = Batch;

    Batch operator*() const { return loader_->batch(at_); }
    Iterator& operator++() { return ++at_, *this; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    friend class Loader;
    Iterator(const Loader* loader, int64_t at) : loader_(loader), at_(at) {}
    const Loader* loader_;
    int64_t at_;
  };
  /// Begins a new epoch. Only the newest epoch's iterators may be used.
  Iterator begin();
  Iterator end() const { return {this, size()}; }

 private:
  Batch batch(int64_t number) const;

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  uint64_t epoch_ = 0;
  std::vector<int64_t> order_;
};

}  // namespace taper::data
