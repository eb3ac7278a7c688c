#include "taper/runtime/extension/llm/model_identity.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/language_model_parts.h"
#include "taper/runtime/extension/llm/row_caches.h"
#include "taper/runtime/extension/module/sample.h"
#include "taper/runtime/program/format.h"
#include "taper/runtime/program/tables.h"

namespace taper::llm {
namespace {

constexpr Sample of_constant{4096, 2};

/// A checksum of numbers, texts and bytes.
class Sum {
 public:
  template <class T>
  void add_number(T number) {
    const auto word = static_cast<uint64_t>(number);
    value_ = checksum({reinterpret_cast<const std::byte*>(&word), sizeof word}, value_);
  }
  void add(Span<const std::byte> bytes) {
    add_number(bytes.size());
    add_number(checksum_of_sample(bytes, of_constant, checksum_of_nothing));
  }
  void add_all(Span<const std::byte> bytes) {
    add_number(bytes.size());
    add_number(checksum(bytes));
  }
  void add(const char* text) {
    const size_t size = text == nullptr ? 0 : std::strlen(text);
    add_all({reinterpret_cast<const std::byte*>(text), static_cast<index_t>(size)});
  }
  void add_type(DType dtype, Span<const int64_t> sizes) {
    add_number(dtype);
    for (const int64_t size : sizes) add_number(size);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = checksum_of_nothing;
};

/// The same in any order, and however often each number is there.
uint64_t sum_of_set(std::vector<uint64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  Sum sum;
  for (const uint64_t number : numbers) sum.add_number(number);
  return sum.value();
}

/// What an adapter has in a constant of all adapters with names. The first slice is that of none.
Span<const std::byte> slice_of(const StoredConstant& c, index_t adapter) {
  const index_t bytes = c.bytes.size() / c.sizes[0];
  return c.bytes.part(adapter * bytes, bytes);
}

constexpr char down_name[] = ".lora_down", up_name[] = ".lora_up";

bool ends_with(const std::string& text, const char* end) {
  const size_t size = std::strlen(end);
  return text.size() >= size && text.compare(text.size() - size, size, end) == 0;
}

bool is_of_adapters(const StoredConstant& c, const TextParts& text) {
  const auto count = static_cast<int64_t>(text.adapters.size());
  const std::string path = c.path == nullptr ? "" : c.path;
  return count > 0 && c.layout == Layout::dense && c.sizes.size() == 3 && c.sizes[0] == count + 1 &&
         (ends_with(path, down_name) || ends_with(path, up_name));
}

uint64_t sum_of_state(const format::State& s, bool rewinds) {
  Sum sum;
  sum.add(s.path()->c_str());
  std::vector<int64_t> sizes;
  const Span<const int64_t> all = internal::span_of(s.sizes());
  for (index_t d = 0; d < all.size(); ++d)
    if (d != rows_dim && !(rewinds && d == context_dim)) sizes.push_back(all[d]);
  sum.add_type(static_cast<DType>(s.dtype()), sizes);
  return sum.value();
}

bool is_literal(const format::Argument& a, format::ArgumentKind kind) {
  return a.kind() == kind && a.form() == format::ArgumentForm::literal;
}

/// The real numbers that the instructions of a method take, such as the epsilon of a norm.
std::vector<uint64_t> real_numbers(const format::Method& method) {
  std::vector<uint64_t> numbers;
  for (const format::Argument& a : internal::span_of(method.arguments()))
    if (is_literal(a, format::ArgumentKind::real))
      numbers.push_back(static_cast<uint64_t>(a.content()));
  return numbers;
}

/// Operators whose integers and flags say how a model computes: the window of an attention, how
/// embeddings rotate, how many experts a token takes. Those of others may be sizes of the caches.
bool has_choices(const std::string& op) {
  const std::string name = op.substr(0, op.find('.'));  // without its overload
  return name == "taper::attention_cached" || name == "taper::rotary_embedding" || name == "topk";
}

/// A checksum of these integers and flags, in the order of the layers.
uint64_t sum_of_choices(const internal::Tables<format::Kernel>& kernels,
                        const format::Method& method) {
  Sum sum;
  const Span<const format::Argument> arguments = internal::span_of(method.arguments());
  for (const format::Instruction& in : internal::span_of(method.instructions())) {
    if (in.kind() != format::InstructionKind::kernel) continue;
    if (!has_choices(kernels[in.target()].op()->str())) continue;
    for (const format::Argument& a : arguments.part(in.arguments_first(), in.arguments_count()))
      if (is_literal(a, format::ArgumentKind::integer) ||
          is_literal(a, format::ArgumentKind::boolean))
        sum.add_number(a.content());
  }
  return sum.value();
}

/// How many rows of (rank, in) an adapter has: others may have more, so zeros fill them up.
index_t rank_of(Span<const std::byte> down, index_t row_bytes) {
  const std::byte* end = down.end();
  while (end != down.begin() && end[-1] == std::byte{0}) --end;
  return (end - down.begin() + row_bytes - 1) / row_bytes;
}

}  // namespace

uint64_t identity_of(const Module& module, const TextParts& text) {
  const Program program = module.program();
  const format::Program& table = program.table();
  const internal::ProgramView& view = program.data().view;
  std::vector<uint64_t> parts;
  for (const StoredConstant& c : module.constants()) {
    if (is_of_adapters(c, text)) continue;
    Sum sum;
    sum.add(c.path), sum.add_type(c.dtype, c.sizes), sum.add_number(c.layout), sum.add(c.bytes);
    parts.push_back(sum.value());
  }
  for (const format::State& state : view.states) parts.push_back(sum_of_state(state, text.rewinds));
  Sum sum;
  sum.add_number(sum_of_set(std::move(parts)));
  const auto* methods = table.methods();
  if (const auto* method = methods == nullptr ? nullptr : methods->LookupByKey(method_name)) {
    sum.add_number(sum_of_set(real_numbers(*method)));
    sum.add_number(sum_of_choices(view.kernels, *method));
  }
  if (table.targets() != nullptr)
    for (const format::Target* target : *table.targets()) sum.add_number(target->exact());
  return sum.value();
}

uint64_t identity_of_adapter(const Module& module, const TextParts& text, index_t adapter) {
  const std::vector<StoredConstant> constants = module.constants();
  std::map<std::string, const StoredConstant*> ups;
  for (const StoredConstant& c : constants)
    if (is_of_adapters(c, text) && ends_with(c.path, up_name)) ups[c.path] = &c;
  std::vector<uint64_t> parts;
  for (const StoredConstant& down : constants) {
    if (!is_of_adapters(down, text) || !ends_with(down.path, down_name)) continue;
    std::string matrix = down.path;
    matrix.resize(matrix.size() - std::strlen(down_name));
    const auto up = ups.find(matrix + up_name);
    const index_t element = size_bytes(down.dtype), row = down.sizes[2] * element;
    const Span<const std::byte> own = slice_of(down, adapter);
    const index_t rank = rank_of(own, row);
    if (up == ups.end() || rank == 0 || up->second->dtype != down.dtype ||
        up->second->sizes[2] != down.sizes[1])
      continue;
    const Span<const std::byte> products = slice_of(*up->second, adapter);
    const index_t out = up->second->sizes[1], stride = up->second->sizes[2] * element;
    std::vector<std::byte> packed;  // (out, rank)
    for (index_t i = 0; i < out; ++i) {
      const Span<const std::byte> line = products.part(i * stride, rank * element);
      packed.insert(packed.end(), line.begin(), line.end());
    }
    Sum sum;
    sum.add(matrix.c_str()), sum.add_number(down.dtype);
    sum.add_all(own.part(0, rank * row)), sum.add_all(packed);
    parts.push_back(sum.value());
  }
  return sum_of_set(std::move(parts));
}

}  // namespace taper::llm
