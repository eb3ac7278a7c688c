#include "variation.h"

#include <algorithm>
#include <numeric>

#include "taper/exporter/eager/eager.h"

namespace taper::golden {
namespace {

constexpr int64_t largest_tensor = 20'000;

class Maker {
 public:
  Maker(const CaseFile& file, const Json& golden, const eager::OperatorInfo& info, Random& random)
      : file_(file), golden_(golden), info_(info), random_(random) {
    keeps_sizes_ = chance(0.4);
    floating_ = chance(0.5)
                    ? pick<DType>({DType::f32, DType::f32, DType::f64, DType::f16, DType::bf16})
                    : DType::boolean;  // boolean: as in the case
    integer_ = chance(0.2) ? pick<DType>({DType::u8, DType::i8, DType::i16, DType::i32, DType::i64})
                           : DType::boolean;
  }

  Variation make() {
    Variation result;
    result.file.name = file_.name;
    content_ = &result.file.content;
    result.golden = Json{{"id", golden_.at("id")},
                         {"args", Json::array()},
                         {"kwargs", Json::object()},
                         {"outputs", Json::array()}};
    if (golden_.value("random", false)) result.golden["random"] = true;
    const Json& args = golden_.at("args");
    for (size_t i = 0; i < args.size(); ++i)
      result.golden["args"].push_back(vary(args[i], info_.schema.parameters[i]));
    for (const auto& [name, value] : golden_.at("kwargs").items())
      for (int i = 0; i < info_.schema.parameter_count; ++i)
        if (info_.schema.parameters[i].name == name)
          result.golden["kwargs"][name] = vary(value, info_.schema.parameters[i]);
    return result;
  }

 private:
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }

  /// The extent that stands for `extent` in this variation.
  int64_t renamed(int64_t extent) {
    if (keeps_sizes_ || extent <= 1 || extent > 10'000) return extent;
    const auto [at, is_new] = renamed_.try_emplace(extent, extent);
    if (is_new && chance(0.6))
      at->second = chance(0.5) ? extent + 1 + below(3) : pick<int64_t>({1, 2, 3, 5, 8, 9, 17, 33});
    return at->second;
  }

  Json vary(const Json& value, const Parameter& parameter) {
    if (parameter.kind == Kind::tensor) {
      if (!value.contains("list")) return vary_tensor(value, parameter);
      Json list = Json::array();
      for (const Json& v : value.at("list")) list.push_back(vary_tensor(v, parameter));
      return {{"list", list}};
    }
    if (parameter.kind != Kind::integer || !parameter.symbolic) return value;
    const auto rename = [&](const Json& v) {
      return v.contains("int") ? Json{{"int", renamed(v.at("int").get<int64_t>())}} : v;
    };
    if (!value.contains("list")) return rename(value);
    Json list = Json::array();
    for (const Json& v : value.at("list")) list.push_back(rename(v));
    return {{"list", list}};
  }

  Json vary_tensor(const Json& value, const Parameter& parameter) {
    if (!value.contains("tensor")) return value;
    const io::Array& pool = file_.content.at(value.at("tensor").get<std::string>());
    pool.settle_bools();
    if (value.contains("complex")) return vary_complex(value, pool);
    eager::Ints sizes = value.contains("sizes") ? value.at("sizes").get<eager::Ints>() : pool.sizes;
    if (!value.value("kept", false))
      for (int64_t& s : sizes) s = renamed(s);
    const int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1},
                                          [](int64_t a, int64_t b) { return a * b; });
    if (count > largest_tensor) throw NotHere("too large");
    if (count > 0 && pool.numel() == 0) throw NotHere("no elements to draw from");

    const bool is_kept = value.value("kept", false);
    DType dtype = pool.dtype;
    if (is_floating(dtype) && floating_ != DType::boolean) dtype = floating_;
    if (!is_floating(dtype) && dtype != DType::boolean && integer_ != DType::boolean && !is_kept)
      dtype = integer_;
    io::Array elements = is_kept ? reshaped(pool, dtype, sizes) : drawn(pool, dtype, sizes);
    if (value.value("ascending", false)) elements = ascending(elements);
    if (value.value("diagonal", false)) elements = with_large_diagonal(elements);
    const std::string key = "t" + std::to_string(content_->tensors.size());
    if (count == 0 || sizes.empty() || chance(0.4)) {
      content_->tensors[key] = std::move(elements);
      return {{"tensor", key}};
    }
    const bool has_order = is_kept || value.contains("ascending") || value.contains("diagonal");
    const eager::Ints strides =
        drawn_strides(sizes, !parameter.mutated && !is_written() && !has_order);
    const int64_t offset = chance(0.5) ? below(5) : 0;
    content_->tensors[key] = laid_out(elements, strides, offset);
    return {{"tensor", key}, {"sizes", sizes}, {"strides", strides}, {"offset", offset}};
  }

  /// Complex numbers: dense, with parts drawn from those of `pool`, (…, 2).
  Json vary_complex(const Json& value, const io::Array& pool) {
    const bool is_kept = value.value("kept", false);
    eager::Ints sizes = pool.sizes;
    sizes.pop_back();
    if (value.contains("sizes")) sizes = value.at("sizes").get<eager::Ints>();
    if (!is_kept)
      for (int64_t& s : sizes) s = renamed(s);
    sizes.push_back(2);
    const int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1},
                                          [](int64_t a, int64_t b) { return a * b; });
    if (count > largest_tensor) throw NotHere("too large");
    if (count > 0 && pool.numel() == 0) throw NotHere("no elements to draw from");
    const std::string key = "t" + std::to_string(content_->tensors.size());
    content_->tensors[key] =
        is_kept ? reshaped(pool, pool.dtype, sizes) : drawn(pool, pool.dtype, sizes);
    return {{"tensor", key}, {"complex", true}};
  }

  /// A storage with these elements in it, at the places that strides and offset name.
  static io::Array laid_out(const io::Array& elements, const eager::Ints& strides, int64_t offset) {
    int64_t last = offset;
    for (size_t k = 0; k < strides.size(); ++k) last += (elements.sizes[k] - 1) * strides[k];
    io::Array storage = io::Array::zeros(elements.dtype, {last + 1});
    const size_t bytes = static_cast<size_t>(size_bytes(elements.dtype));
    eager::Ints index(strides.size(), 0);
    for (int64_t i = 0, n = elements.numel(); i < n; ++i) {
      int64_t at = offset;
      for (size_t k = 0; k < index.size(); ++k) at += index[k] * strides[k];
      std::copy_n(elements.raw().data() + static_cast<size_t>(i) * bytes, bytes,
                  storage.raw().data() + static_cast<size_t>(at) * bytes);
      for (size_t k = index.size(); k-- > 0 && ++index[k] == elements.sizes[k];) index[k] = 0;
    }
    return storage;
  }
  static io::Array reshaped(const io::Array& pool, DType dtype, const eager::Ints& sizes) {
    return array_of(tensor_of(pool).to(dtype).reshape(eager::Dims(sizes.begin(), sizes.end())));
  }
  static io::Array ascending(const io::Array& elements) {
    return array_of(std::get<0>(eager::sort(tensor_of(elements), -1)));
  }
  static io::Array with_large_diagonal(const io::Array& elements) {
    Tensor wide = tensor_of(elements).to(DType::f64).clone();
    const size_t rank = elements.sizes.size();
    const int64_t rows = elements.sizes[rank - 2], columns = elements.sizes[rank - 1];
    double* x = wide.data<double>();
    for (int64_t i = 0, n = elements.numel(); i < n; ++i)
      if (i % columns == i / columns % rows) x[i] += static_cast<double>(rows) + 2;
    return array_of(wide.to(elements.dtype));
  }

  /// Whether the case is one of an in-place twin.
  bool is_written() const {
    return file_.name.find('_') != std::string::npos && golden_.contains("mutated");
  }

  eager::Ints drawn_strides(const eager::Ints& sizes, bool may_repeat) {
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    if (chance(0.6)) std::shuffle(order.begin(), order.end(), random_);
    eager::Ints strides(sizes.size());
    int64_t step = chance(0.4) ? 1 + below(3) : 1;
    for (size_t k = order.size(); k-- > 0;) {
      strides[order[k]] = step;
      step *= sizes[order[k]];
      if (chance(0.2)) step += below(3);
    }
    if (may_repeat && chance(0.2))
      strides[static_cast<size_t>(below(static_cast<int64_t>(sizes.size())))] = 0;
    return strides;
  }

  /// Elements of the pool, each as often as it comes.
  io::Array drawn(const io::Array& pool, DType dtype, const eager::Ints& sizes) {
    io::Array made = io::Array::zeros(pool.dtype, sizes);
    const size_t bytes = static_cast<size_t>(size_bytes(pool.dtype));
    for (int64_t i = 0, n = made.numel(); i < n; ++i)
      std::copy_n(pool.raw().data() + static_cast<size_t>(below(pool.numel())) * bytes, bytes,
                  made.raw().data() + static_cast<size_t>(i) * bytes);
    if (is_floating(pool.dtype)) return moved(made, dtype);
    if (dtype == pool.dtype) return made;
    const Tensor cast = tensor_of(made).to(dtype);
    return array_of(cast);
  }
  io::Array moved(const io::Array& array, DType dtype) {
    Tensor wide = tensor_of(array).to(DType::f64).clone();
    double* x = wide.data<double>();
    for (int64_t i = 0, n = array.numel(); i < n; ++i)
      x[i] *= 1 - 0.05 * std::uniform_real_distribution<>(0, 1)(random_);
    return array_of(wide.to(dtype));
  }
  static Tensor tensor_of(const io::Array& a) {
    return Tensor::from_bytes(a.raw().data(), a.size_bytes(), a.dtype, a.sizes);
  }
  static io::Array array_of(const Tensor& t) {
    eager::Ints sizes;
    for (const Dim d : t.sizes()) sizes.push_back(d.value());
    io::Array a = io::Array::zeros(t.dtype(), sizes);
    if (a.size_bytes() > 0)
      std::copy_n(static_cast<const std::byte*>(t.ref().data), a.size_bytes(), a.raw().data());
    return a;
  }

  const CaseFile& file_;
  const Json& golden_;
  const eager::OperatorInfo& info_;
  Random& random_;
  io::SafeTensors* content_ = nullptr;
  bool keeps_sizes_;
  DType floating_, integer_;
  std::map<int64_t, int64_t> renamed_;
};

}  // namespace

Variation vary(const CaseFile& file, const Json& golden, const eager::OperatorInfo& info,
               Random& random) {
  return Maker(file, golden, info, random).make();
}

}  // namespace taper::golden
