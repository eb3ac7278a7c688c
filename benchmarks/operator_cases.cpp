#include "taper/benchmarks/operator_cases.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>

#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/roofline/multiply_adds.h"
#include "taper/tests/golden/seeds.h"

namespace taper {
namespace {

using eager::Tensor;
using golden::Json;

DType dtype_named(const std::string& name) {
  for (int d = 0; d < dtype_count; ++d)
    if (name_of(static_cast<DType>(d)) == name) return static_cast<DType>(d);
  throw ExportError("operators.json: there is no dtype " + name);
}

std::vector<int64_t> integers_in(const std::string& text) {
  std::vector<int64_t> list;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) list.push_back(std::stoll(part));
  return list;
}

/// "f32[2,3] 0..1 permuted 1,0": what the text describes.
struct Described {
  DType dtype;
  std::vector<int64_t> sizes, permutation;
  double low, high;
};
bool describes_tensor(const std::string& text, Described& d) {
  static const std::regex form(
      R"(([a-z]+[0-9]*)\[([0-9,]*)\](?: ([-0-9.e]+?)\.\.([-0-9.e]+))?(?: permuted ([0-9,]+))?)");
  std::smatch m;
  if (!std::regex_match(text, m, form)) return false;
  d.dtype = dtype_named(m[1]);
  d.sizes = integers_in(m[2]), d.permutation = integers_in(m[5]);
  const bool ranged = m[3].matched;
  d.low = ranged ? std::stod(m[3]) : is_floating(d.dtype) ? -1 : 0;
  d.high = ranged ? std::stod(m[4]) : is_floating(d.dtype) ? 1 : d.dtype == DType::boolean ? 2 : 8;
  return true;
}

/// Each seed gives other numbers.
io::Array random_array(const Described& d, uint64_t seed) {
  io::Array f64 = io::Array::zeros(DType::f64, d.sizes);
  uint64_t state = seed * 0x9e3779b97f4a7c15u;
  for (double& v : f64.values<double>()) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = d.low + (d.high - d.low) * static_cast<double>(state >> 11) * 0x1p-53;
    if (!is_floating(d.dtype)) v = std::floor(v);
  }
  const Tensor cast = eager::to(
      Tensor::from_bytes(f64.raw().data(), f64.size_bytes(), DType::f64, f64.sizes), d.dtype);
  io::Array array = io::Array::zeros(d.dtype, d.sizes);
  if (array.size_bytes() > 0) std::memcpy(array.bytes.get(), cast.ref().data, array.size_bytes());
  return array;
}

/// A tensor goes to `file` under a key of its own.
std::string keep(golden::CaseFile& file, io::Array array) {
  const std::string key = std::to_string(file.content.tensors.size());
  file.content.tensors[key] = std::move(array);
  return key;
}

Json long_form(const Json& value, golden::CaseFile& file);

/// The arguments [op, args, kwargs] as golden cases write theirs.
Json arguments_of(const Json& args, const Json* kwargs, golden::CaseFile& file) {
  Json list = Json::array(), named = Json::object();
  for (const Json& v : args) list.push_back(long_form(v, file));
  if (kwargs)
    for (const auto& [key, v] : kwargs->items()) named[key] = long_form(v, file);
  return {{"args", list}, {"kwargs", named}};
}

/// What another operator gives: {"of": [op, args, kwargs], "result": 1}.
Json result_of(const Json& value, golden::CaseFile& file) {
  const Json& of = value.at("of");
  const golden::Target target = golden::target_of(of[0].get<std::string>());
  golden::Call call(file, arguments_of(of[1], of.size() > 2 ? &of[2] : nullptr, file),
                    *target.info);
  const Tensor found =
      eager::contiguous(golden::call(call, target).at(value.value("result", size_t{0})));
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < found.rank(); ++d) sizes.push_back(found.size(d).value());
  io::Array array = io::Array::zeros(found.dtype(), sizes);
  if (array.size_bytes() > 0) std::memcpy(array.bytes.get(), found.ref().data, array.size_bytes());
  return {{"tensor", keep(file, std::move(array))}};
}

/// An argument of the file as golden cases write theirs; its tensors go to `file`.
Json long_form(const Json& value, golden::CaseFile& file) {
  if (value.is_object()) return result_of(value, file);
  if (value.is_null()) return {{"none", true}};
  if (value.is_boolean()) return {{"bool", value}};
  if (value.is_number_integer()) return {{"int", value}};
  if (value.is_number()) return {{"float", value}};
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& v : value) list.push_back(long_form(v, file));
    return {{"list", list}};
  }
  const std::string text = value.get<std::string>();
  Described d;
  if (text.rfind("dtype:", 0) == 0) return {{"dtype", text.substr(6)}};
  if (!describes_tensor(text, d)) return {{"str", text}};
  const std::string key = keep(file, random_array(d, file.content.tensors.size() + 1));
  if (d.permutation.empty()) return {{"tensor", key}};
  const std::vector<int64_t> dense = [&] {
    std::vector<int64_t> strides(d.sizes.size(), 1);
    for (size_t i = strides.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * d.sizes[i];
    return strides;
  }();
  Json sizes, strides;
  for (const int64_t p : d.permutation)
    sizes.push_back(d.sizes[static_cast<size_t>(p)]),
        strides.push_back(dense[static_cast<size_t>(p)]);
  return {{"tensor", key}, {"sizes", sizes}, {"strides", strides}, {"offset", 0}};
}

double count(const Tensor& t) { return static_cast<double>(t.numel().value()); }
double bytes_of(const Tensor& t) { return count(t) * size_bytes(t.dtype()); }

}  // namespace

Tensor OperatorCase::first() const {
  for (const char* path : {"args.0", "args.0.0", "args.1"})
    if (call->has(path)) return call->at(path);
  return {};
}

double OperatorCase::bytes(const std::vector<Tensor>& results) const {
  double written = 0, read = 0;
  for (const Tensor& r : results)
    if (r.defined()) written += bytes_of(r);
  for (const auto& [path, tensor] : call->tensors())
    read += roofline::looks_up(op) && path == "args.0" ? std::min(written, bytes_of(*tensor))
                                                       : bytes_of(*tensor);
  return read + written;
}

double OperatorCase::flops(const std::vector<Tensor>& results) const {
  roofline::Call shapes{op, {}, {}};
  const auto add = [](const Tensor& t, std::vector<roofline::Sizes>& to) {
    if (!t.defined()) return;
    to.emplace_back();
    for (const Dim& size : t.sizes()) to.back().push_back(static_cast<double>(size.value()));
  };
  for (const eager::Boxed& b : given) {
    // the only flag of a convolution that is no list
    if (b.kind == Kind::boolean && b.present && !b.list) shapes.transposed = b.integer() != 0;
    if (b.kind != Kind::tensor || !b.present) continue;
    for (uint32_t i = 0; i < b.size; ++i) add(b.tensors[i], shapes.arguments);
  }
  for (const Tensor& r : results) add(r, shapes.results);
  return 2 * roofline::multiply_adds(shapes);
}

double OperatorCase::elements(const Tensor& result) const {
  const Tensor x = first();
  const bool reduces = x.defined() && count(x) > count(result) && !roofline::looks_up(op);
  return std::max(reduces ? count(x) : count(result), 1.0);
}

OperatorCases::OperatorCases(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw ExportError(path + ": there is no such file");
  const Json file = Json::parse(in);
  for (const Json& c : file.at("cases")) cases_.push_back(c);
  file.at("without").get_to(without_);
  for (const Json& call : golden::pointwise_calls("f32[1,512,768]"))
    if (const std::string op = call[0]; !has(op) && without_.count(op) == 0)
      cases_.push_back(Json::array({op, 0, Json(call.begin() + 1, call.end())}));
}
bool OperatorCases::has(const std::string& op) const {
  return std::any_of(cases_.begin(), cases_.end(), [&](const Json& c) { return c[0] == op; });
}
std::string OperatorCases::name(size_t i) const {
  std::string arguments = cases_[i][2].dump();
  if (cases_[i].size() > 3) arguments += cases_[i][3].dump();
  return cases_[i][0].get<std::string>() + " " + arguments;
}
OperatorCase OperatorCases::make(size_t i) const {
  const Json& line = cases_.at(i);
  golden::CaseFile file;
  OperatorCase c;
  c.op = line[0].get<std::string>();
  c.arguments = line[2].dump();
  c.target = golden::target_of(c.op);
  c.call = std::make_unique<golden::Call>(
      file, arguments_of(line[2], line.size() > 3 ? &line[3] : nullptr, file), *c.target.info);
  c.given.assign(c.call->boxed(), c.call->boxed() + c.target.info->argument_count);
  return c;
}

}  // namespace taper
