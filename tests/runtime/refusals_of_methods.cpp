// What `Program::load` refuses in a method's tables but its instructions.
#include "everything.h"

namespace taper::test {
namespace {

constexpr NumberType i64 = NumberType::i64, f64 = NumberType::f64, boolean = NumberType::boolean;
constexpr uint32_t none_such = 1000;

std::function<void(Everything&)> unaligned(flatbuffers::voffset_t field) {
  return
      [field](Everything& e) { e.then([field](WrittenFile& f) { misalign(&f.method(), field); }); };
}

// A node that nobody uses, made wrong. Operands: 1, 0.5 and true.
Edit node(const char* what, Operation op, NumberType type, uint32_t Everything::*a,
          uint32_t Everything::*b = &Everything::one, uint32_t Everything::*c = &Everything::one) {
  return {what, [=](Everything& e) { e.method().node(op, type, e.*a, e.*b, e.*c); }};
}
template <class T>
Edit node_field(const char* what, T ExpressionFields::*field, long long value) {
  return {what, [=](Everything& e) {
            e.method().node(Operation::add, i64, e.one, e.one);
            set(e.method().expressions.back(), field, value);
          }};
}
// Every operation with operands or a result that it does not take.
std::vector<Edit> damaged_expressions() {
  constexpr auto one = &Everything::one, half = &Everything::half, yes = &Everything::yes;
  std::vector<Edit> edits = {
      node_field("an unknown type", &ExpressionFields::type, 3),
      node_field("an unknown operation", &ExpressionFields::operation, 28),
      node_field("an operand that does not exist", &ExpressionFields::a, none_such),
      node_field("a second operand that does not exist", &ExpressionFields::b, none_such),
      node_field("a third operand that does not exist", &ExpressionFields::c, none_such),
      EDIT("an operand that stands behind",
           m.node(Operation::add, i64, MethodTables::size(m.expressions) + 1, e.one), m.literal(1)),
      EDIT("itself as an operand",
           m.node(Operation::add, i64, e.one, MethodTables::size(m.expressions))),
      EDIT("a boolean that is 2", m.literal(2, boolean)),
      EDIT("a symbol that does not exist", m.of_symbol(none_such)),
      EDIT("a symbol of another type", m.of_symbol(0, f64)),
      node("f64 = f64 // i64", Operation::floor_divide, f64, half, one),
      node("i64 / i64", Operation::true_divide, i64, one, one),
      node("f64 = i64 / f64", Operation::true_divide, f64, one, half),
      node("f64 = f64 / i64", Operation::true_divide, f64, half, one),
      node("i64 = f64 / f64", Operation::true_divide, i64, half, half),
      node("boolean = - boolean", Operation::negate, boolean, yes),
      node("f64 = - i64", Operation::negate, f64, one),
      node("boolean = absolute boolean", Operation::absolute, boolean, yes),
      node("f64 = absolute i64", Operation::absolute, f64, one),
      node("i64 = square root of f64", Operation::square_root, i64, half),
      node("f64 = square root of i64", Operation::square_root, f64, one),
      node("f64 = f64 of f64", Operation::to_f64, f64, half),
      node("i64 = f64 of i64", Operation::to_f64, i64, one),
      node("i64 = i64 of i64", Operation::to_i64, i64, one),
      node("f64 = i64 of boolean", Operation::to_i64, f64, yes),
      node("not of i64", Operation::logical_not, boolean, one),
      node("i64 = not of boolean", Operation::logical_not, i64, yes),
      node("select by i64", Operation::select, i64, one, one, one),
      node("select with another first", Operation::select, i64, yes, half, one),
      node("select with another second", Operation::select, i64, yes, one, half),
  };
  for (const Operation op :
       {Operation::add, Operation::subtract, Operation::multiply, Operation::floor_divide,
        Operation::modulo, Operation::minimum, Operation::maximum, Operation::power}) {
    edits.push_back(node("arithmetic of f64 and i64", op, i64, half, one));
    edits.push_back(node("arithmetic of i64 and f64", op, i64, one, half));
    edits.push_back(node("arithmetic with another result", op, f64, one, one));
    edits.push_back(node("arithmetic of booleans", op, boolean, yes, yes));
  }
  for (const Operation op :
       {Operation::floor, Operation::ceil, Operation::round, Operation::truncate}) {
    edits.push_back(node("rounding of i64", op, i64, one));
    edits.push_back(node("rounding to f64", op, f64, half));
  }
  for (const Operation op :
       {Operation::equal, Operation::not_equal, Operation::less, Operation::less_equal}) {
    edits.push_back(node("comparison of i64 and f64", op, boolean, one, half));
    edits.push_back(node("comparison with an i64 result", op, i64, one, one));
  }
  for (const Operation op : {Operation::less, Operation::less_equal})
    edits.push_back(node("order of booleans", op, boolean, yes, yes));
  for (const Operation op : {Operation::logical_and, Operation::logical_or}) {
    edits.push_back(node("logic of i64 and boolean", op, boolean, one, yes));
    edits.push_back(node("logic of boolean and i64", op, boolean, yes, one));
    edits.push_back(node("logic with an i64 result", op, i64, yes, yes));
  }
  return edits;
}

// A symbol that nobody uses.
Edit symbol(const char* what, SymbolSource source, uint32_t first, uint32_t second = 0,
            NumberType type = i64) {
  return {what, [=](Everything& e) { e.method().symbol(source, first, second, 0, 1, type); }};
}
Edit element(const char* what, uint32_t Everything::*value, NumberType type) {
  return {what, [=](Everything& e) {
            e.method().symbol(SymbolSource::element, e.*value, 0, 0, 1, type);
          }};
}

template <class T>
Edit buffer(const char* what, uint32_t i, T BufferFields::*field, long long value) {
  return {what, [=](Everything& e) { set(e.method().buffers[i], field, value); }};
}
// A buffer that lies above no other.
Edit alone(const char* what, Region region, int space = 0) {
  return {what, [=](Everything& e) { e.method().buffer(e.one, {}, region, space); }};
}
template <class T>
Edit shape(const char* what, T ShapeFields::*field, long long value) {
  return {what, [=](Everything& e) { set(e.method().shapes.back(), field, value); }};
}
template <class T>
Edit value(const char* what, uint32_t Everything::*v, T ValueFields::*field, long long to) {
  return {what, [=](Everything& e) { set(e.method().values[e.*v], field, to); }};
}
Edit real_for(const char* what, uint32_t ValueFields::*field) {
  return {what, [=](Everything& e) { set(e.method().values[e.a], field, e.half); }};
}
// A check that holds, made wrong.
Edit check(const char* what, std::function<void(Everything&, MethodTables::Condition&)> change) {
  return {what, [=](Everything& e) { change(e, e.method().checks[0]); }};
}
// The value of input 0 (x) or output 0 (y).
Edit input(const char* what, uint32_t Everything::*v) {
  return {what, [=](Everything& e) { e.method().inputs[0].value = e.*v; }};
}

}  // namespace

std::vector<Refusal> refusals_of_methods() {
  using M = format::Method;
  using E = Everything;
  return {
      {"a table is not aligned",
       {{"symbols", unaligned(M::VT_SYMBOLS)},
        {"expressions", unaligned(M::VT_EXPRESSIONS)},
        {"arguments", unaligned(M::VT_ARGUMENTS)},
        {"lists", unaligned(M::VT_LISTS)}}},
      {"expression {} is damaged", damaged_expressions()},
      {"symbol {} is damaged",
       {symbol("an unknown type", SymbolSource::input_number, 1, 0, static_cast<NumberType>(3)),
        EDIT("a minimum above the maximum", m.symbol(SymbolSource::input_extent, 0, 0, 2, 1)),
        symbol("an unknown source", static_cast<SymbolSource>(5), 0),
        symbol("an extent that is f64", SymbolSource::input_extent, 0, 0, f64),
        symbol("an extent of no input", SymbolSource::input_extent, 6),
        symbol("an extent of a number", SymbolSource::input_extent, 1),
        symbol("an extent of no dimension", SymbolSource::input_extent, 0, 2),
        symbol("a number of no input", SymbolSource::input_number, 6),
        symbol("a number that is a tensor", SymbolSource::input_number, 0),
        symbol("a number of another type", SymbolSource::input_number, 1, 0, f64),
        symbol("an element of no value", SymbolSource::element, none_such),
        element("an integer of a float tensor", &E::x, i64),
        element("a real of an integer tensor", &E::index, f64),
        element("a boolean of an integer tensor", &E::index, boolean),
        {"an element on a device",
         [](E& e) {
           auto& m = e.method();
           const auto& v = m.values[e.on_first];
           m.values.emplace_back(v.storage_index(), v.offset(), v.shape(), none, v.storage(),
                                 format::DType::i64);
           m.symbol(SymbolSource::element, m.size(m.values) - 1, 0, 0, 1);
         }},
        symbol("a counted extent of no value", SymbolSource::kernel_extent, none_such),
        EDIT("a counted extent of no dimension",
             m.symbol(SymbolSource::kernel_extent, e.a, 2, 0, 1)),
        symbol("a counter that is f64", SymbolSource::loop_counter, 1, 0, f64),
        symbol("a counter of no instruction", SymbolSource::loop_counter, none_such),
        symbol("a counter of no loop", SymbolSource::loop_counter, 0)}},
      {"check {} is damaged",
       {check("a condition that is an integer", [](E& e, auto& c) { c.condition = e.one; }),
        check("a condition that does not exist", [](E&, auto& c) { c.condition = none_such; }),
        check("four values", [](E& e, auto& c) { c.values.resize(4, e.one); }),
        check("a value that is f64", [](E& e, auto& c) { c.values[1] = e.half; }),
        check("a value that does not exist", [](E&, auto& c) { c.values[0] = none_such; })}},
      {"buffer {} is damaged",
       {buffer("a size that does not exist", 4, &BufferFields::size_bytes, none_such),
        EDIT("a size that is f64", set(m.buffers[4], &BufferFields::size_bytes, e.half)),
        alone("no such space", Region::activations, 3),
        alone("constants", Region::constants),
        alone("states", Region::state),
        alone("scratch", Region::scratch),
        alone("no region", static_cast<Region>(5)),
        buffer("a list that begins outside", 5, &BufferFields::above_first, none_such),
        buffer("a list that ends outside", 5, &BufferFields::above_count, none_such),
        {"a list that another buffer has",
         [](E& e) {
           auto& m = e.method();
           const auto& b = m.buffers[9];  // above five: more than the last list leaves
           m.buffers.emplace_back(b.size_bytes(), b.above_first(), b.above_count(), b.region(),
                                  uint8_t{0});
         }},
        EDIT("above itself", m.above[m.buffers[5].above_first()] = 5),
        EDIT("above one that stands behind", m.above[m.buffers[5].above_first()] = 6),
        EDIT("above one of another region", m.above[m.buffers[5].above_first()] = 0),
        {"above one of another space",
         [](E& e) {
           auto& m = e.method();
           const auto& first = m.buffers[m.values[e.on_first].storage_index()];
           m.buffer(first.size_bytes(), {m.values[e.on_first].storage_index()}, Region::activations,
                    2);
         }}}},
      {"shape {} is damaged",
       {shape("nine dimensions", &ShapeFields::rank, 9),
        EDIT("nine dimensions that are there",
             m.shape(std::vector(9, e.one), std::vector(9, e.one))),
        shape("dimensions that begin outside", &ShapeFields::dims_first, none_such),
        EDIT("strides outside", m.dims.pop_back()),
        EDIT("a size that does not exist", m.dims[m.shapes.back().dims_first()] = none_such),
        EDIT("a stride that is f64", m.dims.back() = e.half)}},
      {"value {} is damaged",
       {value("no such dtype", &E::a, &ValueFields::dtype, dtype_count),
        value("an offset that does not exist", &E::a, &ValueFields::offset, none_such),
        real_for("an offset that is f64", &ValueFields::offset),
        value("no such shape", &E::a, &ValueFields::shape, none_such),
        EDIT("the shape behind the last",
             set(m.values[e.a], &ValueFields::shape, static_cast<long long>(m.shapes.size()))),
        EDIT("the buffer behind the last", set(m.values[e.a], &ValueFields::storage_index,
                                               static_cast<long long>(m.buffers.size()))),
        EDIT(
            "the expression behind the last as its offset",
            set(m.values[e.a], &ValueFields::offset, static_cast<long long>(m.expressions.size()))),
        value("no such quantization", &E::a, &ValueFields::quantization, 2),
        value("an unknown storage", &E::a, &ValueFields::storage, 3),
        value("no such buffer", &E::a, &ValueFields::storage_index, none_such),
        value("no such constant", &E::weights, &ValueFields::storage_index, 2),
        value("no such state", &E::total, &ValueFields::storage_index, 3)}},
      {"there are more than {} inputs or outputs",
       {EDIT("4097 inputs", m.inputs.resize(4097, {"more", none, none, NumberType::i64})),
        EDIT("4097 outputs", m.outputs.resize(4097, {"more", none, 0, NumberType::i64}))}},
      {"input {} has an unknown type",
       {EDIT("type 3", m.inputs[1].type = static_cast<NumberType>(3))}},
      {"input {} does not lie in an io buffer",
       {EDIT("no such value", m.inputs[0].value = none_such), input("an activation", &E::a),
        input("a constant", &E::weights), input("a state", &E::total)}},
      {"input {} does not start its buffer",
       {EDIT("offset 1", set(m.values[e.x], &ValueFields::offset, e.one)),
        {"an offset that is 0 only for some sizes",
         [](E& e) {
           auto& m = e.method();
           const uint32_t offset = m.node(Operation::subtract, i64, e.n, e.n);
           set(m.values[e.x], &ValueFields::offset, offset);
         }}}},
      {"output {} does not exist",
       {EDIT("no such value", m.outputs[0].value = none_such),
        EDIT("no such expression", m.outputs[3].other = none_such),
        EDIT("neither", m.outputs[0].value = none)}},
      {"output {} does not outlast the method", {EDIT("an activation", m.outputs[0].value = e.a)}},
  };
}

}  // namespace taper::test
