#include "taper/exporter/cli/inputs.h"

#include <algorithm>
#include <random>
#include <set>

#include "taper/exporter/inspect/program_text.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/jpeg.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/png.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/runtime/program/expressions.h"
#include "taper/runtime/program/tables.h"

namespace taper::cli {
namespace {

using internal::none;

const format::Method& table_of(const RunningMethod& running) {
  return *running.program().table().methods()->Get(static_cast<uint32_t>(running.index()));
}
const format::Input& input_of(const RunningMethod& running, index_t i) {
  return *table_of(running).inputs()->Get(static_cast<uint32_t>(i));
}

// The extents of a tensor input as expressions.
std::vector<uint32_t> dims_of(const RunningMethod& running, index_t i) {
  const format::Method& m = table_of(running);
  const format::Shape& shape =
      *m.shapes()->Get(m.values()->Get(input_of(running, i).value())->shape());
  std::vector<uint32_t> dims;
  for (uint32_t d = 0; d < shape.rank(); ++d) dims.push_back(m.dims()->Get(shape.dims_first() + d));
  return dims;
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() &&
         std::ranges::equal(text.substr(text.size() - end.size()), end, {},
                            [](unsigned char c) { return std::tolower(c); });
}

bool is_jpeg(const std::string& path) {
  return ends_with(path, ".jpg") || ends_with(path, ".jpeg");
}
bool is_picture(const std::string& path) { return ends_with(path, ".png") || is_jpeg(path); }
io::Array read_picture(const std::string& path) {
  return is_jpeg(path) ? io::read_jpeg(path) : io::read_png(path);
}

class InputReader {
 public:
  InputReader(RunningMethod& running, const InputOptions& options)
      : running_(running), method_(running.method()), options_(options) {}

  std::vector<index_t> run() {
    for (const std::string& text : options_.given) read(text);
    std::vector<index_t> missing;
    for (index_t i = 0; i < method_.input_count(); ++i)
      if (!is_set_.contains(i)) missing.push_back(i);
    return missing;
  }

 private:
  void read(const std::string& text) {
    const size_t sign = text.find('=');
    const index_t named =
        sign == std::string::npos ? -1 : method_.find_input(text.substr(0, sign).c_str());
    if (named >= 0) return set(named, text.substr(sign + 1));
    if (sign != std::string::npos && !std::filesystem::exists(text))
      throw no_input(text.substr(0, sign));
    if (ends_with(text, ".safetensors")) {
      for (const auto& [name, array] : io::read_safetensors(text).tensors) {
        const index_t i = method_.find_input(name.c_str());
        if (i < 0) throw no_input(name);
        set_tensor(i, array);
      }
      return;
    }
    index_t next = 0;
    while (is_set_.contains(next)) ++next;
    if (next >= method_.input_count())
      throw ExportError("there are more --input than inputs: " + inputs_text());
    set(next, text);
  }

  void set(index_t i, const std::string& text) {
    if (text.empty())
      throw ExportError("--input gives nothing for " + input_text(running_, i) +
                        "; give NAME=FILE or NAME=NUMBER");
    if (input_of(running_, i).value() == none) return set_number(i, text);
    if (ends_with(text, ".npy")) return set_tensor(i, io::read_npy(text));
    if (is_picture(text)) return set_picture(i, text);
    if (ends_with(text, ".safetensors"))
      return set_tensor(i, io::read_safetensors(text).at(method_.input_name(i)));
    if (const size_t colon = text.rfind(':');
        colon != std::string::npos && ends_with(text.substr(0, colon), ".safetensors"))
      return set_tensor(i, io::read_safetensors(text.substr(0, colon)).at(text.substr(colon + 1)));
    throw ExportError(
        text +
        ": not a file of a kind that can be an input; give .npy, .safetensors, .png or .jpg");
  }

  void set_number(index_t i, const std::string& text) {
    const std::optional<int64_t> integer = number_of<int64_t>(text);
    const std::optional<double> real = number_of<double>(text);
    if (!real) throw ExportError(text + " is not a number for " + input_text(running_, i));
    running_.require(integer ? method_.set_number(i, *integer) : method_.set_number(i, *real));
    is_set_.insert(i);
  }

  void set_picture(index_t i, const std::string& path) {
    if (method_.input(i).dtype != DType::f32)
      throw ExportError(path + ": a picture becomes f32, the input is " + input_text(running_, i) +
                        "; give a .npy file");
    std::vector<int64_t> expected;
    for (const uint32_t dim : dims_of(running_, i)) {
      const format::Expression& e = *table_of(running_).expressions()->Get(dim);
      expected.push_back(e.operation() == format::Operation::literal ? e.literal() : any_extent);
    }
    set_tensor(i, tensor_of_picture(read_picture(path), expected, options_.pictures, path));
  }

  void set_tensor(index_t i, const io::Array& array) {
    set_input(running_, i, array);
    is_set_.insert(i);
  }

  std::string inputs_text() const {
    std::vector<std::string> names;
    for (index_t i = 0; i < method_.input_count(); ++i) names.push_back(input_text(running_, i));
    return names.empty() ? "it takes none" : io::joined(names, "; ");
  }
  ExportError no_input(const std::string& name) const {
    return ExportError(std::string(method_.name()) + " has no input " + name + "; it takes " +
                       inputs_text());
  }

  RunningMethod& running_;
  Method& method_;
  const InputOptions& options_;
  std::set<index_t> is_set_;
};

// A value for every symbol that an input's extent decides; 0 for others.
std::vector<int64_t> symbol_values(const RunningMethod& running,
                                   const std::map<std::string, int64_t>& chosen) {
  const format::Method& m = table_of(running);
  const inspect::MethodText text(running.program(), running.index());
  std::vector<int64_t> values;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < internal::count_of(m.symbols()); ++i) {
    const format::Symbol& s = *m.symbols()->Get(i);
    values.push_back(std::clamp<int64_t>(1, s.minimum(), s.maximum()));
    names.push_back(text.symbol(i));
    const auto at = chosen.find(names.back());
    if (at == chosen.end()) continue;
    if (at->second < s.minimum() || at->second > s.maximum())
      throw ExportError(names.back() + " = " + std::to_string(at->second) + " is outside " +
                        std::to_string(s.minimum()) + ".." + std::to_string(s.maximum()));
    values.back() = at->second;
  }
  for (const auto& [name, value] : chosen)
    if (std::ranges::find(names, name) == names.end())
      throw ExportError(
          "the method has no symbolic size " + name + "; " +
          (names.empty() ? "all its sizes are fixed" : "there are " + io::joined(names)));
  return values;
}

// The method's expressions with these symbols. Those that cannot be computed (they use symbols that
// only a run binds) stay 0.
std::vector<int64_t> expression_values(const format::Method& m,
                                       const std::vector<int64_t>& symbols) {
  const Span<const format::Expression> expressions = internal::span_of(m.expressions());
  std::vector<int64_t> values(static_cast<size_t>(expressions.size()), 0);
  for (size_t i = 0; i < values.size(); ++i)
    (void)internal::evaluate(expressions.data(), i, symbols.data(), values.data(), values[i]);
  return values;
}

// Uniform in [-1, 1): neither zeros, which a processor may multiply faster, nor values that
// overflow in a deep model.
void fill_randomly(const TensorRef& tensor, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  const index_t n = tensor.shape->numel();
  const auto fill = [&](auto* elements) {
    for (index_t i = 0; i < n; ++i)
      elements[i] = static_cast<std::remove_reference_t<decltype(*elements)>>(uniform(random));
  };
  switch (tensor.dtype) {
    case DType::f16:
      return fill(static_cast<Half*>(tensor.data));
    case DType::bf16:
      return fill(static_cast<BFloat16*>(tensor.data));
    case DType::f32:
      return fill(static_cast<float*>(tensor.data));
    case DType::f64:
      return fill(static_cast<double*>(tensor.data));
    default:
      std::memset(tensor.data, 0, static_cast<size_t>(tensor.size_bytes()));
  }
}

// ", n in 1..64" of the symbols that the input's sizes decide.
std::string ranges_text(const RunningMethod& running, index_t input) {
  const format::Method& m = table_of(running);
  const inspect::MethodText text(running.program(), running.index());
  std::string ranges;
  for (uint32_t i = 0; i < internal::count_of(m.symbols()); ++i) {
    const format::Symbol& s = *m.symbols()->Get(i);
    if (s.source() != format::SymbolSource::input_extent ||
        static_cast<index_t>(s.first()) != input)
      continue;
    ranges += ", " + text.symbol(i) + " in " + std::to_string(s.minimum()) + ".." +
              std::to_string(s.maximum());
  }
  return ranges;
}

}  // namespace

void set_input(RunningMethod& running, index_t i, const io::Array& array) {
  Method& method = running.method();
  const auto mismatch = [&](const std::string& why) {
    return ExportError(std::string("input ") + method.input_name(i) + " is given " +
                       array.describe() + ", and takes " + input_text(running, i) + why);
  };
  if (array.sizes.size() > max_rank) throw mismatch("");
  if (method.input(i).dtype != array.dtype) throw mismatch("; convert it first (numpy: x.astype)");
  array.settle_bools();
  const std::vector<index_t> sizes(array.sizes.begin(), array.sizes.end());
  const Shape shape = Shape::dense(sizes);
  if (method.set_input(i, TensorRef{array.bytes.get(), &shape, array.dtype}) != Error::ok)
    throw mismatch(ranges_text(running, i));
}

std::vector<index_t> set_given_inputs(RunningMethod& running, const InputOptions& options) {
  return InputReader(running, options).run();
}

void set_random_inputs(RunningMethod& running, const std::vector<index_t>& indices,
                       const std::map<std::string, int64_t>& symbols) {
  const std::vector<int64_t> symbol_value = symbol_values(running, symbols);
  const std::vector<int64_t> values = expression_values(table_of(running), symbol_value);
  std::mt19937 random(0);
  Method& method = running.method();
  for (const index_t i : indices) {
    const format::Input& input = input_of(running, i);
    if (input.value() == none) {
      running.require(
          method.set_number(i, input.symbol() == none ? int64_t{1} : symbol_value[input.symbol()]));
      continue;
    }
    std::vector<index_t> sizes;
    for (const uint32_t dim : dims_of(running, i))
      sizes.push_back(static_cast<index_t>(values[dim]));
    running.require(method.resize_input(i, sizes));
    fill_randomly(method.input(i), random);
  }
}

std::string input_text(const RunningMethod& running, index_t input) {
  const format::Input& in = input_of(running, input);
  const inspect::MethodText text(running.program(), running.index());
  return in.name()->str() + ": " +
         (in.value() == none ? format::EnumNameNumberType(in.type()) : text.type(in.value()));
}

}  // namespace taper::cli
