#include "seeds.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string_view>

#include "run_case.h"

namespace taper::golden {
namespace {

/// How many elements variations draw from, at least.
constexpr int64_t pool_size = 64;

DType dtype_named(const std::string& name) {
  for (int i = 0; i < dtype_count; ++i)
    if (const auto d = static_cast<DType>(i); name == name_of(d)) return d;
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

  /// A call without results.
  void read(const Json& line) {
    read_call(file_.name + "/s" + std::to_string(file_.cases.size()), line);
    file_.cases.push_back(golden_);
  }

  /// A call with results and gradients.
  void read_case(const Json& written) {
    read_call(written.at("id").get<std::string>(), written.at("call"));
    golden_.erase("grads");
    if (written.contains("refused")) {
      golden_["error"] = {{"message", written.at("refused")}};
    } else {
      golden_["rtol"] = golden_["grad_rtol"] = written.value("rtol", 1e-3);
      golden_["atol"] = golden_["grad_atol"] = 1e-5;
      read_results(written);
    }
    file_.cases.push_back(golden_);
  }

 private:
  void read_call(const std::string& id, const Json& line) {
    golden_ = {{"id", id},
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
  }

  void read_results(const Json& written) {
    golden_["grad_outputs"] = Json::array();
    for (const Json& result : written.at("results")) {
      const std::string place = "results." + std::to_string(golden_["outputs"].size());
      golden_["outputs"].push_back(
          result.is_null() ? none() : stored(place, parsed(result.get<std::string>())));
      const size_t k = golden_["grad_outputs"].size();
      golden_["grad_outputs"].push_back(
          written.contains("result_gradients")
              ? gradient_given(place, written.at("result_gradients").at(k))
              : gradient_in_turn(place, result));
    }
    for (const auto& [path, gradient] : written.at("gradients").items()) {
      const std::string text = gradient.get<std::string>();
      golden_["grads"][path] =
          stored("gradients." + path, parsed(text[0] == '=' ? head(path) + text : text));
    }
  }

  /// The gradients of one result, as a case gives them or 1, -2, 0.5, 3, -1.5, 1, …
  Json gradient_given(const std::string& place, const Json& gradient) {
    if (gradient.is_null()) return none();
    return stored("gradients of " + place, parsed(gradient.get<std::string>()));
  }
  Json gradient_in_turn(const std::string& place, const Json& result) {
    if (result.is_null()) return none();
    Text gradient = parsed(result.get<std::string>());
    constexpr double factors[] = {1, -2, 0.5, 3, -1.5};
    for (size_t i = 0; i < gradient.elements.size(); ++i) gradient.elements[i] = factors[i % 5];
    return is_floating(gradient.dtype) || is_complex(gradient.dtype)
               ? stored("gradients of " + place, gradient)
               : none();
  }
  static Json none() { return {{"none", true}}; }

  /// "f32[2,3] " of the argument at a path.
  const std::string& head(const std::string& path) const {
    const auto at = heads_.find(path);
    if (at == heads_.end()) throw std::runtime_error("there is no tensor " + path);
    return at->second;
  }

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
    if (value.is_string() && p.kind != Kind::string) return {{"float", value}};  // "inf"
    return {{value.is_boolean()          ? "bool"
             : value.is_number_integer() ? "int"
             : value.is_number()         ? "float"
                                         : "str",
             value}};
  }

  /// The text of a tensor in parts.
  struct Text {
    DType dtype;
    eager::Ints sizes;
    bool constant = false, has_elements = false;
    double low = 0, high = 0;            ///< of elements that are drawn
    std::vector<double> elements;        ///< where they are written
    std::vector<std::string> structure;  ///< "ascending", "diagonal"
  };

  static Text parsed(const std::string& text) {
    const size_t open = text.find('['), close = text.find(']');
    if (open == std::string::npos || close == std::string::npos)
      throw std::runtime_error("a tensor is 'f32[2,3]', not '" + text + "'");
    Text t;
    t.dtype = dtype_named(text.substr(0, open));
    std::istringstream extents(text.substr(open + 1, close - open - 1));
    for (std::string extent; std::getline(extents, extent, ',');)
      t.sizes.push_back(static_cast<int64_t>(number_in(extent)));
    t.constant = !is_floating(t.dtype) && !is_complex(t.dtype);
    t.low = is_floating(t.dtype) ? -2 : 0, t.high = is_floating(t.dtype) ? 2 : 9;

    std::istringstream words(text.substr(close + 1));
    for (std::string word; words >> word;) {
      if (word == "=") {
        while (words >> word) t.elements.push_back(number_in(word));
        t.has_elements = true;
      } else if (word == "constant") {
        t.constant = true;
      } else if (word == "ascending" || word == "diagonal") {
        t.structure.push_back(word);
      } else if (const size_t dots = word.find(".."); dots != std::string::npos) {
        t.low = number_in(word.substr(0, dots)), t.high = number_in(word.substr(dots + 2));
      } else {
        throw std::runtime_error("a tensor's elements are not '" + word + "'");
      }
    }
    int64_t count = is_complex(t.dtype) ? 2 : 1;
    for (const int64_t extent : t.sizes) count *= extent;
    if (t.has_elements && static_cast<int64_t>(t.elements.size()) != count)
      throw std::runtime_error("'" + text + "' has " + std::to_string(t.elements.size()) +
                               " elements, not " + std::to_string(count));
    return t;
  }

  /// Keeps elements in the file, in the given sizes.
  std::string keep(const std::string& place, DType dtype, const std::vector<double>& elements,
                   const eager::Ints& sizes) {
    const std::string key = golden_.at("id").get<std::string>() + " " + place;
    const Tensor all = Tensor::from(elements, {static_cast<int64_t>(elements.size())}).to(dtype);
    io::Array array = io::Array::zeros(dtype, sizes);
    std::copy_n(static_cast<const std::byte*>(all.ref().data), array.size_bytes(),
                array.raw().data());
    file_.content.tensors[key] = std::move(array);
    return key;
  }
  Json stored(const std::string& place, const Text& t) {
    if (is_complex(t.dtype)) {
      eager::Ints sizes = t.sizes;
      sizes.push_back(2);
      return {{"tensor", keep(place, DType::f32, t.elements, sizes)}, {"complex", true}};
    }
    return {{"tensor", keep(place, t.dtype, t.elements, t.sizes)}};
  }

  Json tensor(const std::string& text, const std::string& path) {
    Text t = parsed(text);
    Json made = Json::object();
    if (t.has_elements) made["kept"] = true;
    for (const std::string& word : t.structure) made[word] = true;
    int64_t count = 1;
    for (const int64_t extent : t.sizes) count *= extent;
    if (!t.has_elements) t.elements = drawn(std::max(count, pool_size), t.dtype, t.low, t.high);
    if (!t.constant) golden_["grads"][path] = Json::object();
    heads_[path] = text.substr(0, text.find(']') + 1) + " ";

    eager::Ints strides(t.sizes.size(), 1);
    for (size_t d = t.sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * t.sizes[d];
    if (is_complex(t.dtype)) {
      if (!t.has_elements) throw std::runtime_error("complex elements are not drawn: write them");
      made["complex"] = true;
      made["tensor"] = keep(path, DType::f32, t.elements, {count, 2});
    } else {
      made["tensor"] = keep(path, t.dtype, t.elements, {static_cast<int64_t>(t.elements.size())});
    }
    made["sizes"] = t.sizes, made["strides"] = strides, made["offset"] = 0;
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
  std::map<std::string, std::string> heads_;
};

}  // namespace

namespace {

/// Calls add(reader, the line) for each line; `call_of` gives the part of it that is a call.
template <class CallOf, class Add>
std::vector<CaseFile> read_lines(const std::filesystem::path& path, const CallOf& call_of,
                                 const Add& add) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::map<std::string, CaseFile> files;
  uint64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    try {
      const Json content = Json::parse(line);
      const std::string name = call_of(content).at(0).template get<std::string>();
      CaseFile& file = files[name];
      file.name = name;
      Reader reader(file, *target_of(name).info, number);
      add(reader, content);
    } catch (const std::exception& e) {
      throw std::runtime_error(path.string() + ":" + std::to_string(number) + ": " + e.what());
    }
  }
  std::vector<CaseFile> list;
  for (auto& [name, file] : files) list.push_back(std::move(file));
  return list;
}

}  // namespace

std::vector<CaseFile> read_seeds(const std::filesystem::path& path) {
  return read_lines(
      path, [](const Json& line) -> const Json& { return line; },
      [](Reader& reader, const Json& line) { reader.read(line); });
}

std::vector<Json> pointwise_calls(const std::string& tensor) {
  static const std::set<std::string_view> rows = {
#define TAPER_POINTWISE_ROW(op, ...) #op,
#include "taper/kernels/pointwise.def"
  };
  std::vector<Json> calls;
  for (const eager::OperatorInfo* info : eager::all_operators()) {
    if (!rows.contains(info->op->identifier)) continue;
    Json call = Json::array({std::string(info->name)});
    for (int i = 0; i < info->argument_count; ++i)
      if (info->arguments[i].kind == Kind::tensor && !info->arguments[i].optional)
        call.push_back(tensor);
    if (static_cast<int>(call.size()) == info->argument_count + 1) calls.push_back(std::move(call));
  }
  return calls;
}

std::vector<CaseFile> pointwise_seeds() {
  std::vector<CaseFile> files;
  uint64_t number = 0;
  for (const Json& call : pointwise_calls("f32[3,7]")) {
    CaseFile& file = files.emplace_back();
    file.name = call[0].get<std::string>();
    Reader(file, *target_of(file.name).info, ++number).read(call);
  }
  return files;
}

std::vector<CaseFile> read_written_cases(const std::filesystem::path& path) {
  return read_lines(
      path, [](const Json& line) -> const Json& { return line.at("call"); },
      [](Reader& reader, const Json& line) { reader.read_case(line); });
}

void for_each_case_file(const std::filesystem::path& path,
                        const std::function<bool(const std::string& name)>& takes,
                        const std::function<void(const std::string& name, CaseFile& file)>& run) {
  if (path.extension() == ".jsonl") {
    for (CaseFile& file : read_written_cases(path))
      if (const std::string name = file.name + "."; takes(name)) run(name, file);
    return;
  }
  if (!std::filesystem::is_directory(path))
    throw std::runtime_error(path.string() + " is not a folder");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".safetensors" && takes(entry.path().filename().string()))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    CaseFile content = CaseFile::read(file);
    run(file.filename().string(), content);
  }
}

}  // namespace taper::golden
