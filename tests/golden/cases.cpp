#include "cases.h"

#include <cmath>
#include <stdexcept>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/ops/complex.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::golden {
namespace {

using eager::Boxed;

double real_of(const Json& v) {
  if (v.is_string()) return v == "nan" ? NAN : v == "inf" ? INFINITY : -INFINITY;
  return v.get<double>();
}
eager::Dims to_dims(const eager::Ints& ints) { return {ints.begin(), ints.end()}; }

}  // namespace

Scalar number_of(const Json& v) {
  if (v.contains("scalar")) return number_of(v.at("scalar"));
  if (v.contains("int")) return Scalar(v.at("int").get<int64_t>());
  if (v.contains("bool")) return Scalar(v.at("bool").get<bool>());
  if (v.contains("float")) return Scalar(real_of(v.at("float")));
  if (v.contains("tensor")) throw NotHere("a tensor where a number stands");
  throw NotHere("a complex number where a real one stands");
}

DType parse_dtype(const std::string& name) {
  static const std::map<std::string, DType> dtypes = {{"bool", DType::boolean},
                                                      {"uint8", DType::u8},
                                                      {"int8", DType::i8},
                                                      {"int16", DType::i16},
                                                      {"int32", DType::i32},
                                                      {"int64", DType::i64},
                                                      {"float16", DType::f16},
                                                      {"bfloat16", DType::bf16},
                                                      {"float32", DType::f32},
                                                      {"float64", DType::f64},
                                                      {"complex64", DType::c64},
                                                      {"uint16", DType::u16},
                                                      {"uint32", DType::u32},
                                                      {"uint64", DType::u64},
                                                      {"float8_e4m3fn", DType::f8_e4m3fn},
                                                      {"float8_e5m2", DType::f8_e5m2}};
  const auto at = dtypes.find(name);
  if (at == dtypes.end()) throw NotHere("dtype " + name);
  return at->second;
}

std::string overload_of(const std::filesystem::path& path) {
  const std::string file = path.stem().string(), suffix = ".default";
  const size_t dot = file.find('.');
  const std::string space = file.substr(0, dot);
  const std::string name = (space == "aten" ? "" : space + "::") + file.substr(dot + 1);
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

CaseFile CaseFile::read(const std::filesystem::path& path) {
  CaseFile file;
  file.name = overload_of(path);
  file.content = io::read_safetensors(path);
  const Json metadata = Json::parse(file.content.metadata.at("cases"), nullptr, false);
  if (metadata.is_discarded())
    throw std::runtime_error(path.string() + ": the text of the cases is no JSON");
  for (const Json& c : metadata.at("cases")) file.cases.push_back(c);
  return file;
}
Tensor CaseFile::tensor(const std::string& key) const {
  const io::Array& array = content.at(key);
  array.settle_bools();
  return Tensor::from_bytes(array.raw().data(), array.size_bytes(), array.dtype, array.sizes);
}
Tensor CaseFile::tensor(const Json& value) const {
  const Tensor stored = tensor(value.at("tensor").get<std::string>());
  if (!value.contains("complex")) return stored;
  if (stored.dtype() != DType::f32) throw NotHere("complex numbers of f64");
  return eager::clone(eager::view_as_complex(stored));
}

Call::Call(const CaseFile& file, const Json& golden, const eager::OperatorInfo& info)
    : info_(info) {
  const Json& args = golden.at("args");
  const Json& kwargs = golden.at("kwargs");
  const Schema& schema = info.schema;
  repeats_lists_ = !golden.contains("error");
  for (int i = 0; i < schema.parameter_count; ++i) {
    const Parameter& p = schema.parameters[i];
    const std::string name(p.name);
    const bool positional = i < static_cast<int>(args.size());
    if (!reaches_kernel(p)) continue;
    if (positional)
      boxed_.push_back(box(file, args[static_cast<size_t>(i)], p, "args." + std::to_string(i)));
    else if (kwargs.contains(name))
      boxed_.push_back(box(file, kwargs.at(name), p, "kwargs." + name));
    else
      boxed_.push_back(owned_.fallback(p));
  }
}

int64_t Call::integer(std::string_view parameter) const {
  for (int i = 0; i < info_.argument_count; ++i)
    if (info_.arguments[i].name == parameter) return boxed_[static_cast<size_t>(i)].integer();
  throw std::runtime_error("no argument " + std::string(parameter));
}

Tensor Call::make_tensor(const CaseFile& file, const Json& value) const {
  const Tensor storage = file.tensor(value);
  if (!value.contains("sizes")) return storage;
  const Tensor strided = eager::as_strided(storage, to_dims(value.at("sizes").get<eager::Ints>()),
                                           to_dims(value.at("strides").get<eager::Ints>()),
                                           Dim(value.at("offset").get<int64_t>()));
  return strided.detach();
}

Boxed Call::box(const CaseFile& file, const Json& value, const Parameter& p,
                const std::string& path) {
  if (value.contains("none")) return Boxed::absent(p.kind, p.list);
  if (p.kind == Kind::tensor && p.list) {
    std::vector<Tensor>& list = tensor_lists_.emplace_back();
    for (const Json& v : value.at("list"))
      list.push_back(v.contains("none") ? Tensor() : make_tensor(file, v));
    for (size_t k = 0; k < list.size(); ++k)
      if (list[k].defined()) paths_[path + "." + std::to_string(k)] = &list[k];
    return Boxed::of(list);
  }
  if (p.kind == Kind::tensor) {
    if (!value.contains("tensor")) throw NotHere("a number where a tensor stands");
    Tensor& t = tensors_.emplace_back(make_tensor(file, value));
    paths_[path] = &t;
    return Boxed::of(t);
  }
  if (p.list && p.kind == Kind::real) {
    std::vector<double> list;
    for (const Json& v : value.at("list")) list.push_back(number_of(v).to<double>());
    return owned_.hold(std::move(list));
  }
  if (p.list) {
    eager::Dims list;
    if (value.contains("list"))
      for (const Json& v : value.at("list")) list.push_back(Dim(number_of(v).to<int64_t>()));
    else
      list.push_back(Dim(number_of(value).to<int64_t>()));
    Parameter as_given = p;
    if (!repeats_lists_) as_given.length = 0;
    return owned_.hold(as_given, std::move(list));
  }
  switch (p.kind) {
    case Kind::integer:
      return Boxed::of(Dim(number_of(value).to<int64_t>()));
    case Kind::boolean:
      return Boxed::of(number_of(value).to<int64_t>() != 0);
    case Kind::real:
      return Boxed::of(number_of(value).to<double>());
    case Kind::scalar:
      return Boxed::of(number_of(value));
    case Kind::string:
      return owned_.hold(value.at("str").get<std::string>());
    case Kind::dtype:
      return Boxed::of(parse_dtype(value.at("dtype").get<std::string>()));
    default:
      throw NotHere("an argument of this kind");
  }
}

Tensor& Call::at(const std::string& path) {
  const auto at = paths_.find(path);
  if (at == paths_.end()) throw std::runtime_error("no tensor argument " + path);
  return *at->second;
}

}  // namespace taper::golden
