#include "taper/benchmarks/operator_cases.h"

#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>

#include "taper/exporter/eager/ops/movement.h"

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

io::Array random_array(const Described& d) {
  io::Array f64 = io::Array::zeros(DType::f64, d.sizes);
  uint64_t state = 1;
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

/// An argument of the file as golden cases write theirs; its tensors go to `file`.
Json long_form(const Json& value, golden::CaseFile& file) {
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
  file.content.tensors[text] = random_array(d);
  if (d.permutation.empty()) return {{"tensor", text}};
  const std::vector<int64_t> dense = [&] {
    std::vector<int64_t> strides(d.sizes.size(), 1);
    for (size_t i = strides.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * d.sizes[i];
    return strides;
  }();
  Json sizes, strides;
  for (const int64_t p : d.permutation)
    sizes.push_back(d.sizes[static_cast<size_t>(p)]),
        strides.push_back(dense[static_cast<size_t>(p)]);
  return {{"tensor", text}, {"sizes", sizes}, {"strides", strides}, {"offset", 0}};
}

double count(const Tensor& t) { return static_cast<double>(t.numel().value()); }
double extent(const Tensor& t, int64_t dim) { return static_cast<double>(t.size(dim).value()); }
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
  const bool looks_up =
      op == "embedding" || op == "index.Tensor" || op == "index_select" || op == "gather";
  for (const auto& [path, tensor] : call->tensors())
    read += looks_up && path == "args.0" ? std::min(written, bytes_of(*tensor)) : bytes_of(*tensor);
  return read + written;
}

double OperatorCase::flops(const Tensor& result) const {
  if (op == "linear" || op == "mm" || op == "bmm")
    return 2 * count(result) * extent(call->at("args.0"), -1);
  if (op == "addmm") return 2 * count(result) * extent(call->at("args.1"), -1);
  if (op == "convolution") {
    const Tensor x = call->at("args.0"), w = call->at("args.1");
    const bool transposed = extent(result, 1) != extent(w, 0);
    return 2 * count(transposed ? x : result) * count(w) / extent(w, 0);
  }
  if (op == "scaled_dot_product_attention")  // a causal one needs half; counted whole
    return 2 * count(result) * extent(call->at("args.1"), -2) * 2;
  return 0;
}

double OperatorCase::elements(const Tensor& result) const {
  const Tensor x = first();
  const bool reduces = x.defined() && count(x) > count(result) && op != "embedding" &&
                       op.rfind("index", 0) != 0 && op != "gather";
  return reduces ? count(x) : count(result);
}

OperatorCases::OperatorCases(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw ExportError(path + ": there is no such file");
  const Json file = Json::parse(in);
  for (const Json& c : file.at("cases")) cases_.push_back(c);
}
std::string OperatorCases::name(size_t i) const {
  std::string arguments = cases_[i][2].dump();
  if (cases_[i].size() > 3) arguments += cases_[i][3].dump();
  return cases_[i][0].get<std::string>() + " " + arguments;
}
OperatorCase OperatorCases::make(size_t i) const {
  const Json& line = cases_.at(i);
  golden::CaseFile file;
  Json args = Json::array(), kwargs = Json::object();
  for (const Json& v : line[2]) args.push_back(long_form(v, file));
  if (line.size() > 3)
    for (const auto& [key, v] : line[3].items()) kwargs[key] = long_form(v, file);
  OperatorCase c;
  c.op = line[0].get<std::string>();
  c.arguments = line[2].dump();
  c.target = golden::target_of(c.op);
  c.call = std::make_unique<golden::Call>(file, Json{{"args", args}, {"kwargs", kwargs}},
                                          *c.target.info);
  return c;
}

}  // namespace taper
