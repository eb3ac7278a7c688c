// Verifies the tables that methods share. See tables.h.
#include "taper/runtime/program/format.h"
#include "taper/runtime/program/tables.h"

namespace taper::internal {
namespace {

// A vector of a table, read by one function. The accessors would take twice as much code.
struct Vector {
  const uint8_t* elements;
  index_t size;

  template <class T>
  operator Span<const T>() const {
    return {reinterpret_cast<const T*>(elements), size};
  }
  template <class T>
  operator Tables<T>() const {
    return {elements, size};
  }
};

__attribute__((noinline)) Vector vector_of(const void* table, flatbuffers::voffset_t field) {
  const auto* v = static_cast<const flatbuffers::Table*>(table)
                      ->GetPointer<const flatbuffers::Vector<uint8_t>*>(field);
  if (v == nullptr || v->size() == 0) return {};  // an empty vector may lie at any address
  return {v->Data(), static_cast<index_t>(v->size())};
}

// Whether a dense tensor may have this dtype and these sizes. `bytes` gets the size of its
// elements.
bool is_stored_type(DType dtype, Span<const int64_t> sizes, size_t& bytes) {
  return reinterpret_cast<uintptr_t>(sizes.data()) % alignof(int64_t) == 0 && is_valid(dtype) &&
         dense_bytes(sizes, dtype, bytes);
}

// Whether this version knows the layout of an encoding.
bool is_known(const format::Encoding& e) { return e.layout() <= format::Layout::MAX; }

class ProgramVerifier {
 public:
  ProgramVerifier(Span<const std::byte> file, const format::Program& table, const ProgramView& p,
                  ErrorInfo& info)
      : file_(file), table_(table), p_(p), info_(info), spaces_(count_of(table.spaces())) {}

  Error verify() {
    TAPER_TRY(segments());
    TAPER_TRY(spaces_and_queues());
    TAPER_TRY(kernels());
    TAPER_TRY(quantizations());
    TAPER_TRY(constants());
    TAPER_TRY(states());
    return delegates();
  }

 private:
  Error wrong(const char* message, int64_t a = 0, const char* subject = nullptr);

  Error segments() {
    if (reinterpret_cast<uintptr_t>(p_.segments.data()) % alignof(format::Segment) != 0)
      return wrong(TAPER_TEXT("the segments are not aligned"));
    const uint64_t file_bytes = static_cast<uint64_t>(file_.size());
    for (index_t i = 0; i < p_.segments.size(); ++i) {
      const format::Segment& s = p_.segments[i];
      if (s.offset() % segment_alignment != 0 || s.offset() > file_bytes ||
          s.size_bytes() > file_bytes - s.offset() || s.kind() > format::SegmentKind::extras)
        return wrong(TAPER_TEXT("segment {} does not lie in the file"), i);
    }
    return Error::ok;
  }

  // Whether the piece, with the slack behind it, lies in its segment.
  bool holds(const format::Piece* piece) const {
    if (piece == nullptr || piece->segment() >= static_cast<uint64_t>(p_.segments.size()))
      return false;
    const uint64_t available = p_.segments[piece->segment()].size_bytes();
    const uint32_t a = piece->alignment();
    return a != 0 && (a & (a - 1)) == 0 && a <= segment_alignment && piece->offset() % a == 0 &&
           piece->offset() <= available && available - piece->offset() >= slack_bytes &&
           piece->size_bytes() <= available - piece->offset() - slack_bytes;
  }

  bool is_space(index_t space) const { return space == 0 || space < spaces_; }
  bool is_quantization(uint32_t i) const {
    return i == none || i < static_cast<uint64_t>(count_of(table_.quantizations()));
  }

  Error spaces_and_queues() {
    if (spaces_ > max_spaces)
      return fail(info_, Error::not_supported,
                  TAPER_TEXT("the program uses {} memory spaces, at most {} work here"), spaces_,
                  max_spaces);
    if (table_.queues() == nullptr) return Error::ok;
    if (p_.queues.empty() || p_.queues.size() > 255 || p_.queues[0].space() != 0)
      return wrong(TAPER_TEXT("queue 0 must be the host's"));
    for (index_t i = 0; i < p_.queues.size(); ++i)
      if (!is_space(p_.queues[i].space()))
        return wrong(TAPER_TEXT("queue {} has no memory space"), i);
    return Error::ok;
  }

  Error kernels() {
    for (index_t i = 0; i < p_.kernels.size(); ++i) {
      const format::Kernel& k = p_.kernels[i];
      bool valid = is_space(k.space());
      for (const uint8_t d : span_of(k.dtypes()))
        valid = valid && (d == 255 || is_valid(static_cast<DType>(d)));
      if (!valid) return wrong(TAPER_TEXT("kernel {} is damaged"), i, k.op()->c_str());
    }
    return Error::ok;
  }

  Error quantizations() {
    index_t i = 0;
    for (const format::Quantization& q : Tables(table_.quantizations())) {
      if (q.scheme() > format::QuantizationScheme::per_group || q.axis() >= max_rank ||
          (q.scales() != none && !p_.constants.has(q.scales())) ||
          (q.zero_points() != none && !p_.constants.has(q.zero_points())))
        return wrong(TAPER_TEXT("quantization {} is damaged"), i);
      ++i;
    }
    return Error::ok;
  }

  Error constants() {
    for (index_t i = 0; i < p_.constants.size(); ++i) {
      const ConstantView c = p_.constant(i);
      if (!c.has_type) return wrong(TAPER_TEXT("constant {} has no valid type"), i, c.path);
      if (c.source > format::ConstantSource::slot || !is_space(c.space) ||
          c.encodings.size() > 16 || (!c.is_embedded() && c.key.empty()))
        return wrong(TAPER_TEXT("constant {} is damaged"), i, c.path);
      if (!c.is_embedded()) continue;
      for (const format::Encoding& e : c.encodings) TAPER_TRY(encoding(e, c, i));
    }
    return Error::ok;
  }

  Error encoding(const format::Encoding& e, const ConstantView& c, index_t constant) {
    const format::Piece* piece = e.data();
    if (!holds(piece))
      return wrong(TAPER_TEXT("the data of constant {} does not lie in the file"), constant,
                   c.path);
    const Span<const int64_t> sizes =
        e.sizes() == nullptr ? c.sizes : vector_of(&e, format::Encoding::VT_SIZES);
    size_t bytes = 0;
    if (!is_stored_type(static_cast<DType>(e.dtype()), sizes, bytes) ||
        !is_quantization(e.quantization()))
      return wrong(TAPER_TEXT("an encoding of constant {} is damaged"), constant, c.path);
    // of a newer version; methods that read this encoding are refused
    if (!is_known(e)) return Error::ok;
    const auto layout = static_cast<Layout>(e.layout());
    // `Method::create` checks that views of a constant in panels do not reach behind it
    if ((layout != Layout::dense && (c.space != 0 || e.dtype() != format::DType::f32)) ||
        (has_exact_size(layout) && piece->size_bytes() != stored_bytes(bytes, layout)))
      return wrong(
          TAPER_TEXT("constant {} has another size than its type, or a layout that it cannot have"),
          constant, c.path);
    return Error::ok;
  }

  Error states() {
    uint64_t total = 0;  // limited, so that later sums of state sizes cannot overflow
    for (index_t i = 0; i < p_.states.size(); ++i) {
      const format::State& s = p_.states[i];
      const DType dtype = static_cast<DType>(s.dtype());
      size_t bytes = 0;
      if (!is_stored_type(dtype, vector_of(&s, format::State::VT_SIZES), bytes) ||
          s.kind() > format::StateKind::cache || !is_space(s.space()))
        return wrong(TAPER_TEXT("state {} is damaged"), i, s.path()->c_str());
      total += rounded_up(bytes + slack_bytes);
      if (bytes > PTRDIFF_MAX / 4 || total > PTRDIFF_MAX / 4)
        return wrong(TAPER_TEXT("the states are larger than memory can be"));
      const uint32_t initial = s.initial();
      if (initial == none) continue;
      if (p_.constants.has(initial)) {
        const ConstantView c = p_.constant(initial);
        if (c.has_type && c.dtype == dtype && c.bytes == bytes && c.space == 0) continue;
      }
      return wrong(
          TAPER_TEXT("state {} and its initial value differ in type, or that lies on a device"), i,
          s.path()->c_str());
    }
    return Error::ok;
  }

  Error delegates() {
    index_t i = 0;
    for (const format::Delegate& d : Tables(table_.delegates())) {
      if (!holds(d.blob()) || d.blob()->alignment() != segment_alignment)
        return wrong(TAPER_TEXT("delegate {} has no blob"), i, d.backend()->c_str());
      ++i;
    }
    return Error::ok;
  }

  Span<const std::byte> file_;
  const format::Program& table_;
  const ProgramView& p_;
  ErrorInfo& info_;
  const index_t spaces_;
};

Error ProgramVerifier::wrong(const char* message, int64_t a, const char* subject) {
  return fail(info_, Error::invalid_program, message, a, 0, 0, subject);
}

}  // namespace

Error fail(ErrorInfo& info, Error error, const char* message, int64_t a, int64_t b, int64_t c,
           const char* subject) {
  info.error = error, info.message = message, info.subject = subject;
  info.values[0] = a, info.values[1] = b, info.values[2] = c;
  return error;
}

#ifdef TAPER_NO_MESSAGES
Error fail(ErrorInfo& info, Error error) { return fail(info, error, nullptr, 0, 0, 0, nullptr); }
#endif

ConstantView::ConstantView(const format::Constant& c)
    : path(text_of(c.path())),
      sizes(vector_of(&c, format::Constant::VT_SIZES)),
      encodings(vector_of(&c, format::Constant::VT_ENCODINGS)),
      dtype(static_cast<DType>(c.dtype())),
      source(c.source()),
      space(c.space()),
      bytes(0) {
  constexpr index_t sha256_bytes = 32;
  const bool is_slot = source == format::ConstantSource::slot;
  key = vector_of(&c, is_slot ? format::Constant::VT_SLOT : format::Constant::VT_CONTENT_HASH);
  if (!is_slot && key.size() != sha256_bytes) key = {};
  has_type = is_stored_type(dtype, sizes, bytes);
}

ProgramView::ProgramView(const format::Program& p)
    : segments(vector_of(&p, format::Program::VT_SEGMENTS)),
      queues(vector_of(&p, format::Program::VT_QUEUES)),
      kernels(vector_of(&p, format::Program::VT_KERNELS)),
      constants(vector_of(&p, format::Program::VT_CONSTANTS)),
      states(vector_of(&p, format::Program::VT_STATES)) {}

MethodView::MethodView(const format::Method& m)
    : inputs(vector_of(&m, format::Method::VT_INPUTS)),
      outputs(vector_of(&m, format::Method::VT_OUTPUTS)),
      checks(vector_of(&m, format::Method::VT_CHECKS)),
      symbols(vector_of(&m, format::Method::VT_SYMBOLS)),
      expressions(vector_of(&m, format::Method::VT_EXPRESSIONS)),
      buffers(vector_of(&m, format::Method::VT_BUFFERS)),
      above(vector_of(&m, format::Method::VT_ABOVE)),
      shapes(vector_of(&m, format::Method::VT_SHAPES)),
      dims(vector_of(&m, format::Method::VT_DIMS)),
      values(vector_of(&m, format::Method::VT_VALUES)),
      arguments(vector_of(&m, format::Method::VT_ARGUMENTS)),
      lists(vector_of(&m, format::Method::VT_LISTS)),
      instructions(vector_of(&m, format::Method::VT_INSTRUCTIONS)) {}

int space_of(const ProgramData& p, const MethodView& m, const format::Value& v) {
  switch (v.storage()) {
    case format::Storage::buffer:
      return m.buffers[v.storage_index()].space();
    case format::Storage::constant:
      return p.view.constants[v.storage_index()].space();
    case format::Storage::state:
      return p.view.states[v.storage_index()].space();
  }
  return 0;
}

bool is_input_buffer(const MethodView& m, const format::Value& v) {
  for (const format::Input& input : m.inputs) {
    const uint32_t value = input.value();
    if (value != none && m.values[value].storage_index() == v.storage_index()) return true;
  }
  return false;
}

bool dense_bytes(Span<const int64_t> sizes, DType dtype, size_t& bytes) {
  if (sizes.size() > max_rank) return false;
  // the other extents of an empty tensor must have a countable product, too
  index_t product = size_bytes(dtype);
  bool empty = false;
  for (const int64_t n : sizes) {
    if (n < 0 || n > PTRDIFF_MAX) return false;
    if (n == 0)
      empty = true;
    else if (__builtin_mul_overflow(product, static_cast<index_t>(n), &product))
      return false;
  }
  bytes = empty ? 0 : static_cast<size_t>(product);
  return true;
}

Error verify_program(Span<const std::byte> file, const format::Program& table, const ProgramView& p,
                     ErrorInfo& info) {
  return ProgramVerifier(file, table, p, info).verify();
}

static_assert(static_cast<int>(format::Layout::MAX) == static_cast<int>(Layout::q3_z) &&
                  static_cast<int>(format::Layout::panels_of_first) ==
                      static_cast<int>(Layout::panels_of_first),
              "the schema and runtime/core/layout.h have the same layouts");

PlacedConstant stored_constant(Span<const std::byte> file, const ProgramView& p,
                               const ConstantView& c) {
  if (c.is_embedded())
    for (const format::Encoding& e : c.encodings) {
      const format::Piece& piece = *e.data();
      const auto layout = static_cast<Layout>(e.layout());
      const std::byte* data = file.data() + p.segments[piece.segment()].offset() + piece.offset();
      if (is_known(e) && static_cast<DType>(e.dtype()) == c.dtype &&
          (!has_exact_size(layout) || piece.size_bytes() == stored_bytes(c.bytes, layout)) &&
          reinterpret_cast<uintptr_t>(data) % static_cast<size_t>(size_bytes(c.dtype)) == 0)
        return {data, static_cast<size_t>(piece.size_bytes()), layout};
    }
  return {nullptr, c.bytes, Layout::dense};
}

}  // namespace taper::internal
