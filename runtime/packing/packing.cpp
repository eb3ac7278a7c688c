#include "taper/runtime/packing/packing.h"

#include <atomic>

#include "taper/runtime/program/tables.h"

namespace taper {
namespace {

using namespace internal;

// How kernels read a constant, if all that read it agree.
struct Use {
  const Packing* packing;  // nullptr: they do not agree, or want it dense
  uint32_t method, value;  // one of their equal views of it; value `none`: nobody reads it
  // Of `pack`: the rows of a piece, and the pieces of this constant and those before it.
  uint32_t piece_rows, pieces;

  bool asks() const { return packing != nullptr && packing->bytes != nullptr; }
};
static_assert(sizeof(Use) <= 24);

struct Uses {
  const ProgramData& p;
  Use* of;  // one for each constant
};

using format::ArgumentForm;
using format::ArgumentKind;

// The value of a literal. -1 if the expression is not a literal, or is negative.
int64_t literal(const MethodView& m, uint32_t expression) {
  const format::Expression& e = m.expressions[expression];
  return e.operation() == format::Operation::literal && e.literal() >= 0 ? e.literal() : -1;
}

// The shape of a view that is the same for all input sizes and shows each element of its constant
// once. Returns false for other views.
bool fixed_shape(const ProgramData& p, const MethodView& m, const format::Value& v, Shape& shape) {
  const ConstantView c = p.view.constant(v.storage_index());
  const format::Shape& s = m.shapes[v.shape()];
  const DType dtype = static_cast<DType>(v.dtype());
  int64_t sizes[max_rank];
  for (int d = 0; d < s.rank(); ++d) sizes[d] = literal(m, m.dims[s.dims_first() + d]);
  size_t shown = 0;
  if (!dense_bytes({sizes, s.rank()}, dtype, shown) || shown != c.bytes || c.bytes == 0 ||
      literal(m, v.offset()) != 0)
    return false;
  const int64_t count = static_cast<int64_t>(c.bytes) / size_bytes(dtype);
  int64_t last = 0;
  shape.rank = s.rank();
  for (int d = 0; d < s.rank(); ++d) {
    const int64_t stride = literal(m, m.dims[s.dims_first() + s.rank() + d]);
    if (stride < 0 || stride > count / sizes[d]) return false;
    shape.sizes[d] = static_cast<index_t>(sizes[d]),
    shape.strides[d] = static_cast<index_t>(stride);
    last += (sizes[d] - 1) * stride;  // at most `count` for each dimension
  }
  return last < count;
}

// The view of a constant that is packed.
TensorRef dense_view(const ProgramData& p, const Use& use, Shape& shape) {
  const MethodView m(*p.method(use.method));
  const format::Value& v = m.values[use.value];
  (void)fixed_shape(p, m, v, shape);
  const PlacedConstant& c = p.constants[v.storage_index()];
  return {const_cast<void*>(c.data), &shape, static_cast<DType>(v.dtype()), c.layout};
}

// Packed constants must follow from the file alone, so constants in slots are left out.
bool may_be_packed(const ProgramData& p, uint32_t constant) {
  const ConstantView c = p.view.constant(constant);
  return c.space == 0 && c.source != format::ConstantSource::slot &&
         p.constants[constant].data != nullptr;
}

// The packing that serves both readers: that of one that asks for it. nullptr: there is none.
const Packing* common(const Packing& a, const Packing& b) {
  if (a.layout != b.layout) return nullptr;
  if (a.bytes == nullptr) return &b;
  return b.bytes == nullptr || (a.bytes == b.bytes && a.pack == b.pack) ? &a : nullptr;
}

// What reads a value: argument `position` of a kernel, or, without a kernel, something that wants
// it dense.
struct Reader {
  const Kernel* kernel = nullptr;
  Span<const format::Argument> arguments;
  index_t position = 0;

  // How the kernel asks for a constant in the layout `from`. nullptr: it does not ask. Nothing asks
  // for one that is packed in the file already.
  const Packing* packing(Layout from) const {
    if (kernel == nullptr) return nullptr;
    for (const Packing& p : kernel->packings) {
      if (p.argument != position || p.from != from) continue;
      if (p.unless < 0) return &p;
      const format::Argument& flag = arguments[p.unless];
      if (flag.form() == ArgumentForm::literal && flag.content() == 0) return &p;
    }
    return nullptr;
  }
};

// Notes that something reads value `i` of a method.
void add_use(const Uses& uses, const MethodView& m, uint32_t method, int64_t i,
             const Reader& reader) {
  const ProgramData& p = uses.p;
  if (i < 0) return;  // an absent element of a list
  const format::Value& v = m.values[static_cast<index_t>(i)];
  if (v.storage() != format::Storage::constant) return;
  Use& use = uses.of[v.storage_index()];
  const Packing* packing = reader.packing(p.constants[v.storage_index()].layout);
  const bool is_first = use.value == none;
  if (!is_first && packing != nullptr)
    packing = use.packing == nullptr ? nullptr : common(*use.packing, *packing);
  Shape shape, earlier;
  if (packing != nullptr && (!may_be_packed(p, v.storage_index()) || !fixed_shape(p, m, v, shape)))
    packing = nullptr;
  if (packing != nullptr && packing->bytes != nullptr &&
      packing->bytes({nullptr, &shape, static_cast<DType>(v.dtype()), packing->from}) == 0)
    packing = nullptr;
  if (packing != nullptr && !is_first) {
    // unused places of `sizes` are 0 and used ones are not, so this also compares the ranks
    (void)dense_view(p, use, earlier);
    if (std::memcmp(shape.sizes, earlier.sizes, sizeof shape.sizes) != 0 ||
        std::memcmp(shape.strides, earlier.strides, sizeof shape.strides) != 0)
      packing = nullptr;
  }
  use = {packing, method, static_cast<uint32_t>(i), 0, 0};
}

void add_uses(const Uses& uses, uint32_t method) {
  const ProgramData& p = uses.p;
  const MethodView m(*p.method(method));
  const auto add = [&](int64_t value, const Reader& reader) {
    add_use(uses, m, method, value, reader);
  };
  for (const format::Instruction& in : m.instructions) {
    const Kernel* kernel =
        in.kind() == format::InstructionKind::kernel ? p.kernels[in.target()] : nullptr;
    const auto arguments = m.arguments.part(in.arguments_first(), in.arguments_count());
    for (index_t i = 0; i < arguments.size(); ++i) {
      const format::Argument& a = arguments[i];
      if (a.kind() != ArgumentKind::tensor) continue;
      if (a.form() == ArgumentForm::literal)
        add(a.content(), {kernel, arguments, i});
      else if (a.form() == ArgumentForm::list)
        for (const int64_t e : m.lists.part(static_cast<index_t>(a.content()), a.count()))
          add(e, {});
    }
  }
  for (const format::Output& out : m.outputs)
    if (out.value() != none) add(out.value(), {});
  for (const format::Symbol& s : m.symbols)
    if (s.source() == format::SymbolSource::element) add(s.first(), {});
}

// Calls body(constant, use, dense view, its entry in the memory) for each constant to pack. Returns
// the bytes that all of them take.
template <class Body>
size_t for_packed(const Uses& uses, const Body& body) {
  const index_t count = uses.p.view.constants.size();
  size_t embedded = 0;  // bytes of constants in the file
  size_t place = rounded_up(PackedConstants::bytes_of(count));
  const size_t nothing = place;
  for (index_t i = 0; i < count; ++i) {
    const Use& use = uses.of[i];
    if (!use.asks()) continue;
    Shape shape;
    const TensorRef dense = dense_view(uses.p, use, shape);
    // a hostile file may use the same bytes for many constants
    if (uses.p.view.constant(static_cast<uint64_t>(i)).is_embedded())
      embedded += uses.p.constants[i].bytes;
    if (embedded > static_cast<size_t>(uses.p.file.size())) return 0;
    const PackedConstants::Entry entry{place, use.packing->bytes(dense), use.packing->layout, {}};
    body(i, use, dense, entry);
    place += rounded_up(static_cast<size_t>(entry.bytes) + slack_bytes);
  }
  return place == nothing ? 0 : place;
}

// Some rows of a constant that are packed on their own.
struct Piece {
  const Packing* packing;
  DType dtype;
  Shape shape;
  Span<const std::byte> dense;
  size_t place;  // where they lie among the packed constants
  index_t packed_bytes;
};

index_t panels_of(const Shape& shape) { return (shape.sizes[0] + panel_width - 1) / panel_width; }

// How many rows are packed at once. Panels of sixteen rows that follow each other are packed in
// groups of about a megabyte.
index_t rows_of_piece(const Shape& shape, const PackedConstants::Entry& entry) {
  const bool in_rows =
      is_in_block_panels(entry.layout) || entry.layout == Layout::panels_of_first ||
      entry.layout == Layout::f16_panels_of_first || entry.layout == Layout::bf16_panels_of_first;
  const index_t all = shape.sizes[0], panels = panels_of(shape),
                bytes = static_cast<index_t>(entry.bytes);
  if (!in_rows || shape.rank < 2 || !shape.is_dense() || bytes % panels != 0) return all;
  constexpr index_t megabyte = 1 << 20;
  const index_t panel = bytes / panels;
  const index_t rows = panel_width * (panel < megabyte ? megabyte / panel : 1);
  return rows < all ? rows : all;
}

// Divides all constants into pieces, and returns how many there are.
index_t divide(const Uses& uses, const PackedConstants& packed) {
  uint32_t pieces = 0;
  for (index_t i = 0; i < uses.p.view.constants.size(); ++i) {
    Use& use = uses.of[i];
    if (use.asks()) {
      Shape shape;
      (void)dense_view(uses.p, use, shape);
      const index_t rows = rows_of_piece(shape, packed.of(i));
      use.piece_rows = static_cast<uint32_t>(rows);
      pieces += static_cast<uint32_t>((shape.sizes[0] + rows - 1) / rows);
    }
    use.pieces = pieces;
  }
  return static_cast<index_t>(pieces);
}

Piece piece_at(const Uses& uses, const PackedConstants& packed, index_t piece) {
  index_t constant = 0;
  while (static_cast<index_t>(uses.of[constant].pieces) <= piece) ++constant;
  const Use& use = uses.of[constant];
  const PackedConstants::Entry& entry = packed.of(constant);
  if (constant > 0) piece -= static_cast<index_t>(uses.of[constant - 1].pieces);
  Piece p;
  const TensorRef whole = dense_view(uses.p, use, p.shape);
  const index_t all = p.shape.sizes[0], rows = static_cast<index_t>(use.piece_rows),
                first = piece * rows, left = all - first,
                row = static_cast<index_t>(uses.p.constants[constant].bytes) / all,
                panel = static_cast<index_t>(entry.bytes) / panels_of(p.shape);
  p.packing = use.packing, p.dtype = whole.dtype;
  p.shape.sizes[0] = left < rows ? left : rows;
  p.dense = {static_cast<const std::byte*>(whole.data) + first * row, p.shape.sizes[0] * row};
  p.place = static_cast<size_t>(entry.place) + static_cast<size_t>(first / panel_width * panel);
  p.packed_bytes = rows == all ? static_cast<index_t>(entry.bytes) : panels_of(p.shape) * panel;
  return p;
}

}  // namespace

size_t packed_table_bytes(const Program& program) {
  return PackedConstants::bytes_of(program.data().view.constants.size());
}

size_t packing_workspace(const Program& program) {
  return static_cast<size_t>(program.data().view.constants.size()) * sizeof(Use);
}

size_t find_packed(const Program& program, Span<std::byte> workspace) {
  const ProgramData& p = program.data();
  if (static_cast<size_t>(workspace.size()) < packing_workspace(program) ||
      reinterpret_cast<uintptr_t>(workspace.data()) % alignof(Use) != 0)
    return 0;
  const Uses uses{p, reinterpret_cast<Use*>(workspace.data())};
  for (index_t i = 0; i < p.view.constants.size(); ++i) uses.of[i] = {nullptr, 0, none, 0, 0};
  for (const format::State& s : p.view.states)  // sessions copy the first values of states
    if (s.initial() != none) uses.of[s.initial()].value = 0;
  for (index_t i = 0; i < program.method_count(); ++i) add_uses(uses, static_cast<uint32_t>(i));
  return for_packed(uses, [](auto...) {});
}

bool holds_packed(const Program& program, Span<std::byte> workspace, Span<const std::byte> memory) {
  const ProgramData& p = program.data();
  const Uses uses{p, reinterpret_cast<Use*>(workspace.data())};
  const index_t count = p.view.constants.size();
  const auto* packed = reinterpret_cast<const PackedConstants*>(memory.data());
  const size_t size = static_cast<size_t>(memory.size());
  if (reinterpret_cast<uintptr_t>(packed) % segment_alignment != 0 ||
      size < PackedConstants::bytes_of(count) || packed->key != packing_key(p) ||
      packed->bytes != size)
    return false;
  index_t right = 0;
  for (index_t i = 0; i < count; ++i)
    right += !uses.of[i].asks() && packed->of(i).layout == Layout::dense;
  const size_t bytes =
      for_packed(uses, [&](index_t i, const Use&, const TensorRef&, const auto& entry) {
        right += std::memcmp(&packed->of(i), &entry, sizeof entry) == 0;
      });
  return right == count && bytes == size;
}

Error pack(const Program& program, Span<std::byte> workspace, Span<std::byte> memory,
           const PackOptions& options) {
  const ProgramData& p = program.data();
  const Uses uses{p, reinterpret_cast<Use*>(workspace.data())};
  const size_t bytes = for_packed(uses, [](auto...) {}), table = packed_table_bytes(program);
  if (static_cast<size_t>(memory.size()) < (options.pieces == nullptr ? bytes : table) ||
      bytes == 0)
    return Error::out_of_memory;
  if (reinterpret_cast<uintptr_t>(memory.data()) % segment_alignment != 0)
    return Error::invalid_argument;
  auto* packed = new (memory.data()) PackedConstants{packing_key(p), bytes};
  const index_t count = p.view.constants.size();
  for (index_t i = 0; i < count; ++i) packed->of(i) = {0, 0, Layout::dense, {}};
  (void)for_packed(uses, [&](index_t i, const Use&, const TensorRef&, const auto& entry) {
    packed->of(i) = entry;
  });
  const PackedPieces* sink = options.pieces;
  std::atomic<Error> error{Error::ok};
  parallel_for(options.threads, divide(uses, *packed), [&](index_t i) {
    if (error != Error::ok) return;
    const Piece piece = piece_at(uses, *packed, i);
    const size_t size = static_cast<size_t>(piece.packed_bytes);
    std::byte* to = sink == nullptr ? memory.data() + piece.place : sink->memory(sink->user, size);
    if (to == nullptr) return error.store(Error::out_of_memory);
    piece.packing->pack({const_cast<std::byte*>(piece.dense.data()), &piece.shape, piece.dtype,
                         piece.packing->from},
                        to);
    if (sink != nullptr && !sink->write(sink->user, piece.place, {to, piece.packed_bytes}))
      return error.store(Error::limit_reached);
    if (options.done != nullptr) options.done(options.user, piece.dense);
  });
  if (error != Error::ok) return error;
  if (sink != nullptr && !sink->write(sink->user, 0, {memory.data(), static_cast<index_t>(table)}))
    return Error::limit_reached;
  return Error::ok;
}

}  // namespace taper
