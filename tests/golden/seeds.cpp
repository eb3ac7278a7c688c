#include "seeds.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>

#include "run_case.h"

namespace taper::golden {
namespace {

/// How many elements variations draw from, at least.
constexpr int64_t pool_size = 64;

DType dtype_named(const std::string& name) {
  for (const DType d : {DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64,
                        DType::f16, DType::bf16, DType::f32, DType::f64})
    if (name == name_of(d)) return d;
  throw std::runtime_error("there is no dtype '" + name + "'");
}

double number_in(const std::string& text) {
  size_t used = 0;
  const double number = std::stod(text, &used);
  if (used != text.size()) throw std::runtime_error("'" + text + "' is no number");
  return number;
}

class Reader {
 public:
  Reader(CaseFile& file, const eager::OperatorInfo& info, uint64_t seed)
      : file_(file), info_(info), random_(seed) {}

  void read(const Json& line) {
    golden_ = {{"id", file_.name + "/s" + std::to_string(file_.cases.size())},
               {"args", Json::array()},
               {"kwargs", Json::object()},
               {"outputs", Json::array()},
               {"grads", Json::object()}};
    for (size_t i = 1; i < line.size(); ++i) {
      if (line[i].is_object()) {
        named(line[i]);
        continue;
      }
      const Parameter& p = parameter(i - 1);
      golden_["args"].push_back(argument(line[i], p, "args." + std::to_string(i - 1)));
    }
    file_.cases.push_back(golden_);
  }

 private:
  const Parameter& parameter(size_t i) const {
    if (i >= static_cast<size_t>(info_.schema.parameter_count))
      throw std::runtime_error("too many arguments");
    return info_.schema.parameters[i];
  }

  void named(const Json& arguments) {
    for (const auto& [name, value] : arguments.items()) {
      if (name == "random") {
        golden_["random"] = value;
        continue;
      }
      const int i = info_.schema.find(name);
      if (i < 0) throw std::runtime_error("there is no argument '" + name + "'");
      golden_["kwargs"][name] = argument(value, info_.schema.parameters[i], "kwargs." + name);
    }
  }

  Json argument(const Json& value, const Parameter& p, const std::string& path) {
    if (value.is_null()) return {{"none", true}};
    if (value.is_array()) {
      Json list = Json::array();
      for (size_t k = 0; k < value.size(); ++k)
        list.push_back(argument(value[k], p, path + "." + std::to_string(k)));
      return {{"list", list}};
    }
    if (p.kind == Kind::tensor) return tensor(value.get<std::string>(), path);
    if (p.kind == Kind::dtype) return {{"dtype", value}};
    return {{value.is_boolean()          ? "bool"
             : value.is_number_integer() ? "int"
             : value.is_number()         ? "float"
                                         : "str",
             value}};
  }

  Json tensor(const std::string& text, const std::string& path) {
    const size_t open = text.find('['), close = text.find(']');
    if (open == std::string::npos || close == std::string::npos)
      throw std::runtime_error("a tensor is 'f32[2,3]', not '" + text + "'");
    const DType dtype = dtype_named(text.substr(0, open));
    eager::Ints sizes;
    std::istringstream extents(text.substr(open + 1, close - open - 1));
    for (std::string extent; std::getline(extents, extent, ',');)
      sizes.push_back(static_cast<int64_t>(number_in(extent)));

    Json made = Json::object();
    bool constant = !is_floating(dtype);
    double low = is_floating(dtype) ? -2 : 0, high = is_floating(dtype) ? 2 : 9;
    std::vector<double> elements;
    std::istringstream words(text.substr(close + 1));
    for (std::string word; words >> word;) {
      if (word == "=") {
        while (words >> word) elements.push_back(number_in(word));
        made["kept"] = true;
      } else if (word == "constant") {
        constant = true;
      } else if (word == "ascending" || word == "diagonal") {
        made[word] = true;
      } else if (const size_t dots = word.find(".."); dots != std::string::npos) {
        low = number_in(word.substr(0, dots)), high = number_in(word.substr(dots + 2));
      } else {
        throw std::runtime_error("a tensor's elements are not '" + word + "'");
      }
    }
    int64_t count = 1;
    for (const int64_t extent : sizes) count *= extent;
    if (made.contains("kept")) {
      if (static_cast<int64_t>(elements.size()) != count)
        throw std::runtime_error("'" + text + "' has " + std::to_string(elements.size()) +
                                 " elements, not " + std::to_string(count));
    } else {
      elements = drawn(std::max(count, pool_size), dtype, low, high);
    }
    if (!constant) golden_["grads"][path] = Json::object();

    const std::string key = golden_.at("id").get<std::string>() + " " + path;
    const Tensor pool = Tensor::from(elements, {static_cast<int64_t>(elements.size())}).to(dtype);
    io::Array array = io::Array::zeros(dtype, {static_cast<int64_t>(elements.size())});
    std::copy_n(static_cast<const std::byte*>(pool.ref().data), array.size_bytes(),
                array.raw().data());
    file_.content.tensors[key] = std::move(array);

    eager::Ints strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
    made["tensor"] = key;
    made["sizes"] = sizes, made["strides"] = strides, made["offset"] = 0;
    return made;
  }

  std::vector<double> drawn(int64_t count, DType dtype, double low, double high) {
    std::vector<double> elements;
    for (int64_t i = 0; i < count; ++i)
      elements.push_back(
          is_floating(dtype)
              ? std::uniform_real_distribution<>(low, high)(random_)
              : static_cast<double>(std::uniform_int_distribution<int64_t>(
                    static_cast<int64_t>(low), static_cast<int64_t>(high))(random_)));
    if (dtype == DType::boolean)
      for (double& x : elements) x = x > (low + high) / 2;
    return elements;
  }

  CaseFile& file_;
  const eager::OperatorInfo& info_;
  std::mt19937_64 random_;
  Json golden_;
};

}  // namespace

std::vector<CaseFile> read_seeds(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::map<std::string, CaseFile> files;
  uint64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    try {
      const Json call = Json::parse(line);
      const std::string name = call.at(0).get<std::string>();
      CaseFile& file = files[name];
      file.name = name;
      Reader(file, *target_of(name).info, number).read(call);
    } catch (const std::exception& e) {
      throw std::runtime_error(path.string() + ":" + std::to_string(number) + ": " + e.what());
    }
  }
  std::vector<CaseFile> list;
  for (auto& [name, file] : files) list.push_back(std::move(file));
  return list;
}

}  // namespace taper::golden
