// What `Program::load` refuses in a method's instructions, and `Method::create` in their sizes.
#include <concepts>

#include "everything.h"

namespace taper::test {
namespace {

using E = Everything;

constexpr long long none_such = 1000;

template <class T>
Edit instruction(const char* what, uint32_t E::*i, T InstructionFields::*field, long long value) {
  return {what, [=](E& e) { set(e.method().instructions[e.*i], field, value); }};
}
// The literal 0 is a number, not a pointer to a member.
template <std::same_as<uint32_t E::*> Index>
Edit instruction(const char* what, uint32_t E::*i, uint32_t InstructionFields::*field,
                 Index value) {
  return {what, [=](E& e) { set(e.method().instructions[e.*i], field, e.*value); }};
}
template <class T>
Edit argument(const char* what, uint32_t E::*i, uint32_t a, T ArgumentFields::*field,
              long long value) {
  return {what, [=](E& e) { set(e.argument(e.*i, a), field, value); }};
}
template <std::same_as<uint32_t E::*> Index>
Edit argument(const char* what, uint32_t E::*i, uint32_t a, int64_t ArgumentFields::*field,
              Index value) {
  return {what, [=](E& e) { set(e.argument(e.*i, a), field, e.*value); }};
}
// Argument `a` of `many` in another form, with content that this form has.
Edit form(const char* what, uint32_t a, ArgumentForm form, uint32_t E::*content) {
  return {what, [=](E& e) {
            set(e.argument(e.many, a), &ArgumentFields::form, static_cast<long long>(form));
            set(e.argument(e.many, a), &ArgumentFields::content, e.*content);
          }};
}
// Control flow that has an argument.
Edit with_argument(const char* what, uint32_t E::*i) {
  return {what, [=](E& e) {
            auto& m = e.method();
            const auto first = m.instructions[e.*i].arguments_first();
            set(m.instructions[e.*i], &InstructionFields::arguments_count, 1);
            m.arguments.insert(m.arguments.begin() + first, MethodTables::integer(1));
            for (uint32_t k = e.*i + 1; k < m.instructions.size(); ++k)
              set(m.instructions[k], &InstructionFields::arguments_first,
                  m.instructions[k].arguments_first() + 1);
          }};
}
// The last argument of `i` is gone, and no gap stays.
void take_argument(E& e, uint32_t i) {
  auto& m = e.method();
  const auto& in = m.instructions[i];
  const uint32_t count = in.arguments_count() - 1u;
  m.arguments.erase(m.arguments.begin() + in.arguments_first() + count);
  set(m.instructions[i], &InstructionFields::arguments_count, count);
  for (uint32_t k = i + 1; k < m.instructions.size(); ++k)
    set(m.instructions[k], &InstructionFields::arguments_first,
        m.instructions[k].arguments_first() - 1);
}
// Instruction `i` has an argument behind its last one.
void give_argument(E& e, uint32_t i) {
  auto& m = e.method();
  const auto& in = m.instructions[i];
  const uint32_t count = in.arguments_count();
  m.arguments.insert(m.arguments.begin() + in.arguments_first() + count, MethodTables::integer(1));
  set(m.instructions[i], &InstructionFields::arguments_count, count + 1);
  for (uint32_t k = i + 1; k < m.instructions.size(); ++k)
    set(m.instructions[k], &InstructionFields::arguments_first,
        m.instructions[k].arguments_first() + 1);
}
// A value beside `v` that differs in one field.
template <class T>
uint32_t changed_value(E& e, uint32_t v, T ValueFields::*field, long long to) {
  auto& m = e.method();
  m.values.push_back(m.values[v]);
  set(m.values.back(), field, to);
  return m.size(m.values) - 1;
}

constexpr int real_one = 3, flag_one = 4, dtype_one = 5, factors = 6;  // arguments of `many`

Kernel with_result(const Kernel& k, Kind kind, bool list, Expected* expected) {
  for (int i = 0; i < k.expected_count; ++i) expected[i] = k.expected[i];
  expected[k.expected_count - 1].kind = kind, expected[k.expected_count - 1].list = list;
  Kernel changed = k;
  changed.expected = expected;
  return changed;
}

void lies_elsewhere(Everything& e, size_t constant) {
  e.file.constants[constant].source = format::ConstantSource::external;
  e.file.constants[constant].hash.assign(32, 7);
}

// A value of one more constant, four f32 elements in halves.
uint32_t constant_in_halves(Everything& e) {
  const uint32_t constant = e.file.constant<float>("halves", {4}, {0, 0, 0, 0});
  auto& c = e.file.constants[constant];
  c.layout = format::Layout::dense_bf16, c.data.resize(8);
  auto& m = e.method();
  return m.value(format::Storage::constant, constant, m.shape({m.literal(4)}));
}

}  // namespace

std::vector<Refusal> refusals_of_instructions() {
  static Expected expected[2][Schema::max_parameters] = {};
  static const Kernel list_result = with_result(add_f32, Kind::tensor, true, expected[0]),
                      number_result = with_result(add_f32, Kind::integer, false, expected[1]);
  return {
      {"lists have more than {} elements",
       {EDIT("one list", set(e.argument(e.join, 0), &ArgumentFields::count, (1 << 22) + 1)),
        EDIT("two lists of expressions and tensors",
             set(e.argument(e.join, 0), &ArgumentFields::count, 1 << 21),
             set(e.argument(e.fill, 0), &ArgumentFields::count, 1 << 21))}},
      {"the arguments of instruction {} do not stand behind those before",
       {instruction("a gap", &E::many, &InstructionFields::arguments_first, 0),
        instruction("more than there are", &E::many, &InstructionFields::arguments_count,
                    none_such)}},
      {"arguments from {} on belong to no instruction",
       {EDIT("one more argument", m.arguments.push_back(MethodTables::integer(1)))}},
      {"instruction {} has no queue",
       {instruction("of a kernel", &E::add, &InstructionFields::queue, 3),
        instruction("of a jump", &E::jump, &InstructionFields::queue, 3)}},
      {"instruction {} has no delegate",
       {EDIT("no such delegate", m.instruction(InstructionKind::delegate, 1))}},
      {"no backend was given that reads version {} of its parts",
       {EDIT("a delegate", m.instruction(InstructionKind::delegate, 0))},
       Error::not_supported},
      {"the delegate of instruction {} cannot take its arguments",
       {EDIT("more results than arguments", e.add_delegate(e.x, e.x, e.q, 4)),
        EDIT("more constants than arguments", e.add_delegate(e.x, e.x, e.q);
             set(m.instructions.back(), &InstructionFields::condition, 3)),
        EDIT("a constant that is an activation", e.add_delegate(e.x, e.a, e.q);
             set(m.instructions.back(), &InstructionFields::condition, 1)),
        EDIT("a number", e.add_delegate(e.x, e.x, e.q);
             set(m.arguments.back(), &ArgumentFields::kind, 2)),
        EDIT("no such value", e.add_delegate(e.x, e.x, none_such)),
        EDIT("a result that is an input", e.add_delegate(e.a, e.a, e.x)),
        EDIT("a result that is a constant", e.add_delegate(e.a, e.a, e.weights)),
        EDIT("a tensor on a device", e.add_delegate(e.a, e.on_first, e.q)),
        EDIT("a queue of a device", e.add_delegate(e.a, e.a, e.q);
             set(m.instructions.back(), &InstructionFields::queue, 1))}},
      {"extents that kernels write are not supported",
       {EDIT("a bind", m.instruction(InstructionKind::bind,
                                     m.symbol(SymbolSource::kernel_extent, e.a, 0, 0, 4)))},
       Error::not_supported},
      {"the target or condition of instruction {} is damaged",
       {instruction("bind without a symbol", &E::bind, &InstructionFields::target, none_such),
        instruction("bind of an extent", &E::bind, &InstructionFields::target, 0),
        instruction("bind of a counter", &E::bind, &InstructionFields::target, 7),
        with_argument("bind with an argument", &E::bind),
        instruction("wait for no queue", &E::wait, &InstructionFields::target, 3),
        with_argument("wait with an argument", &E::wait),
        instruction("jump_unless back", &E::jump_unless, &InstructionFields::target, 3),
        instruction("jump_unless to itself", &E::jump_unless, &InstructionFields::target, 4),
        instruction("jump_unless outside", &E::jump_unless, &InstructionFields::target, none_such),
        instruction("jump_unless an integer", &E::jump_unless, &InstructionFields::condition,
                    &E::one),
        instruction("jump_unless nothing", &E::jump_unless, &InstructionFields::condition,
                    none_such),
        with_argument("jump_unless with an argument", &E::jump_unless),
        instruction("jump back", &E::jump, &InstructionFields::target, 5),
        instruction("jump to itself", &E::jump, &InstructionFields::target, 6),
        instruction("jump outside", &E::jump, &InstructionFields::target, none_such),
        with_argument("jump with an argument", &E::jump),
        instruction("loop_begin to what stands before", &E::loop_begin, &InstructionFields::target,
                    0),
        instruction("loop_begin to the end", &E::loop_begin, &InstructionFields::target, 22),
        instruction("loop_begin to a kernel", &E::loop_begin, &InstructionFields::target, 2),
        instruction("loop_begin to what is no loop_end but has its target", &E::loop_end,
                    &InstructionFields::kind, 4),
        {"loop_begin to the end of another loop",
         [](E& e) {
           auto& m = e.method();
           const uint32_t outer = m.size(m.instructions);
           m.instruction(InstructionKind::loop_begin, outer + 2);
           m.instruction(InstructionKind::loop_begin, outer + 2);
           m.instruction(InstructionKind::loop_end, outer, {},
                         m.instructions[e.loop_end].condition());
         }},
        with_argument("loop_begin with an argument", &E::loop_begin),
        EDIT("a loop_end without a loop_begin",
             m.instruction(InstructionKind::loop_end, e.add, {}, 0)),
        EDIT("a loop_end for the loop_begin of another",
             m.instruction(InstructionKind::loop_end, e.loop_begin, {},
                           m.instructions[e.loop_end].condition())),
        {"a loop_end for a jump to it",
         [](E& e) {
           auto& m = e.method();
           const uint32_t to = m.instruction(InstructionKind::jump, m.size(m.instructions) + 1);
           m.instruction(InstructionKind::loop_end, to, {}, m.instructions[e.loop_end].condition());
         }},
        EDIT("a loop_end that goes forward",
             m.instruction(InstructionKind::loop_end, m.size(m.instructions) + 1, {},
                           m.instructions[e.loop_end].condition())),
        instruction("loop_end with an integer", &E::loop_end, &InstructionFields::condition,
                    &E::one),
        instruction("loop_end with no condition", &E::loop_end, &InstructionFields::condition,
                    none_such),
        with_argument("loop_end with an argument", &E::loop_end)}},
      {"instruction {} is of an unknown kind",
       {instruction("kind 9", &E::jump, &InstructionFields::kind, 9)}},
      {"instruction {} cannot copy its arguments",
       {EDIT("one argument", take_argument(e, e.copy)),
        argument("from a number", &E::copy, 0, &ArgumentFields::kind, 2),
        argument("to a number", &E::copy, 1, &ArgumentFields::kind, 2),
        argument("from a list", &E::copy, 0, &ArgumentFields::form, 3),
        argument("from nowhere", &E::copy, 0, &ArgumentFields::content, none_such),
        argument("to nowhere", &E::copy, 1, &ArgumentFields::content, -1),
        EDIT("to another dtype", set(e.argument(e.copy, 1), &ArgumentFields::content,
                                     changed_value(e, e.y, &ValueFields::dtype, 4))),
        argument("to a constant", &E::copy, 1, &ArgumentFields::content, &E::weights),
        argument("to an input", &E::copy, 1, &ArgumentFields::content, &E::spare),
        EDIT("from one device to another",
             set(e.argument(e.to_first, 0), &ArgumentFields::content, e.on_second),
             set(m.instructions[e.to_first], &InstructionFields::queue, 2)),
        instruction("by the host's queue", &E::to_first, &InstructionFields::queue, 0),
        instruction("by the queue of another device", &E::to_first, &InstructionFields::queue, 2)}},
      {"instruction {} has no kernel",
       {instruction("no such kernel", &E::add, &InstructionFields::target, 5)}},
      {"the queue of instruction {} does not run its kernel",
       {instruction("the host's", &E::device_add, &InstructionFields::queue, 0),
        instruction("another device's", &E::device_add, &InstructionFields::queue, 2),
        instruction("a device's for the host", &E::add, &InstructionFields::queue, 1)}},
      {"an operator takes {} arguments and results, not {}",
       {EDIT("one less", take_argument(e, e.add)), EDIT("one more", give_argument(e, e.add))}},
      {"results that are lists or numbers are not supported",
       {{"a kernel with a list as its result",
         [](E& e) {
           for (const Kernel*& k : e.kernels)
             if (k == &add_f32) k = &list_result;
         }},
        {"a kernel with a number as its result",
         [](E& e) {
           for (const Kernel*& k : e.kernels)
             if (k == &add_f32) k = &number_result;
           e.file.kernels[0].dtypes.pop_back();
         }}},
       Error::not_supported},
      {"an argument that the operator needs is absent",
       {argument("a tensor", &E::add, 1, &ArgumentFields::form, 0),
        argument("a number", &E::fill, 1, &ArgumentFields::form, 0)}},
      {"an argument has another kind than the operator takes",
       {argument("a number for a tensor", &E::add, 0, &ArgumentFields::kind, 2),
        argument("a tensor for a Scalar", &E::fill, 1, &ArgumentFields::kind, 1),
        argument("a text for a Scalar", &E::fill, 1, &ArgumentFields::kind, 6),
        argument("a real for an integer", &E::many, 2, &ArgumentFields::kind, 3),
        argument("an integer for a text", &E::fill, 2, &ArgumentFields::kind, 2),
        argument("nothing for a tensor", &E::add, 0, &ArgumentFields::kind, 0),
        argument("an unknown form", &E::add, 0, &ArgumentFields::form, 5)}},
      {"an argument is a list where the operator takes one, or the reverse",
       {argument("a list for a tensor", &E::add, 0, &ArgumentFields::form, 3),
        argument("a tensor for a list", &E::join, 0, &ArgumentFields::form, 1),
        argument("a number for a list", &E::fill, 0, &ArgumentFields::form, 2)}},
      {"an argument is damaged or has the wrong type",
       {argument("no such value", &E::add, 0, &ArgumentFields::content, none_such),
        argument("value -1", &E::add, 0, &ArgumentFields::content, -1),
        argument("an optional value -1", &E::many, 0, &ArgumentFields::content, -1),
        argument("an argument of another dtype than its kernel", &E::add, 0,
                 &ArgumentFields::content, &E::index),
        argument("a result of another dtype than its kernel", &E::add, 2, &ArgumentFields::content,
                 &E::copied),
        argument("a device's tensor for the host", &E::add, 0, &ArgumentFields::content,
                 &E::on_first),
        argument("the host's tensor for a device", &E::device_add, 0, &ArgumentFields::content,
                 &E::total),
        argument("another device's tensor", &E::device_add, 0, &ArgumentFields::content,
                 &E::on_second),
        argument("a constant as the result", &E::add, 2, &ArgumentFields::content, &E::weights),
        argument("an input as the result", &E::add, 2, &ArgumentFields::content, &E::x),
        argument("no such text", &E::fill, 2, &ArgumentFields::content, 1),
        argument("text -1", &E::fill, 2, &ArgumentFields::content, -1),
        argument("no such dtype", &E::many, dtype_one, &ArgumentFields::content, dtype_count),
        argument("dtype -1", &E::many, dtype_one, &ArgumentFields::content, -1),
        EDIT("boolean 2",
             e.argument(e.many, flag_one) = {2, 0, ArgumentKind::boolean, ArgumentForm::literal}),
        EDIT("boolean -1",
             e.argument(e.many, flag_one) = {-1, 0, ArgumentKind::boolean, ArgumentForm::literal}),
        argument("no such expression", &E::fill, 1, &ArgumentFields::content, none_such),
        argument("expression -1", &E::fill, 1, &ArgumentFields::content, -1),
        form("an integer that is a real expression", 2, ArgumentForm::expression, &E::half),
        form("a real that is an integer expression", real_one, ArgumentForm::expression, &E::one),
        form("a boolean that is an integer expression", flag_one, ArgumentForm::expression,
             &E::one),
        form("a tensor that is an expression", 0, ArgumentForm::expression, &E::one),
        form("a dtype that is an expression", dtype_one, ArgumentForm::expression, &E::one)}},
      {"a list does not exist",
       {argument("at -1", &E::join, 0, &ArgumentFields::content, -1),
        argument("behind all", &E::join, 0, &ArgumentFields::content, none_such),
        argument("beyond the end", &E::join, 0, &ArgumentFields::count, none_such)}},
      {"an element of a list is damaged or has the wrong type",
       {EDIT("no such value", m.lists[e.argument(e.join, 0).content()] = none_such),
        EDIT("an absent element where each is needed",
             m.lists[e.argument(e.join, 0).content()] = -1),
        EDIT("element -2 where some may be absent", m.lists[e.argument(e.many, 1).content()] = -2),
        EDIT("another dtype than the kernel takes",
             m.lists[e.argument(e.join, 0).content() + 1] = e.copied),
        EDIT("a device's tensor", m.lists[e.argument(e.join, 0).content() + 1] = e.on_first),
        EDIT("a real expression among sizes", m.lists[e.argument(e.fill, 0).content()] = e.half),
        EDIT("an expression among real numbers",
             e.argument(e.many, factors) =
                 m.list({e.half}, ArgumentKind::real, ArgumentForm::expression_list)),
        EDIT("no such expression among sizes",
             m.lists[e.argument(e.fill, 0).content() + 1] = none_such)}},
  };
}

std::vector<Refusal> refusals_of_sizes() {
  return {
      {"the size of buffer {} is not known before the first instruction",
       {EDIT("of a late symbol", m.buffer(m.of_symbol(e.late)))}},
      {"symbol {} is bound before the first instruction and cannot be bound again",
       {instruction("an element of an input", &E::bind, &InstructionFields::target, &E::first)}},
      {"constant {} is not in the file in a form that kernels here read",
       {{"stored with another dtype",
         [](E& e) {
           e.then([](WrittenFile& f) {
             overwrite_field(f.program().constants()->Get(1)->encodings()->Get(0),
                             format::Encoding::VT_DTYPE, uint8_t{4});
           });
         }},
        EDIT("stored with fewer elements", e.file.constants[1].encoded = {2},
             e.file.constants[1].data.resize(8))},
       Error::not_supported},

      {"constant {} lies in another file, which was not given",
       {EDIT("in another file", lies_elsewhere(e, 1))},
       Error::invalid_argument},
      {"constant {} is a slot to which nothing was given",
       {EDIT("a slot", e.file.constants[1].source = format::ConstantSource::slot,
             e.file.constants[1].slot = "weights")},
       Error::invalid_argument},
      {"the initial value of a state is not in the file, or is packed there",
       {EDIT("in another file", lies_elsewhere(e, 0), e.table_changes.clear()),
        EDIT("packed", e.file.constants[0].layout = format::Layout::panels_of_first)},
       Error::not_supported},
      {"an output, a size or a view in another dtype is a constant in a layout of kernels",
       {{"an output", [](E& e) { e.method().outputs[0].value = constant_in_halves(e); }},
        {"a size",
         [](E& e) {
           e.method().symbol(format::SymbolSource::element, constant_in_halves(e), 0, 0, 0,
                             NumberType::f64);
         }},
        {"a view in another dtype",
         [](E& e) {
           changed_value(e, constant_in_halves(e), &ValueFields::dtype,
                         static_cast<long long>(DType::i32));
         }}}},
      {"buffer {} has {} bytes", {EDIT("-1", m.buffer(m.literal(-1)))}},
      {"shape {} has an extent {} with stride {}",
       {EDIT("extent -1", m.shape({m.literal(-1)})),
        EDIT("stride -1", m.shape({e.one}, {m.literal(-1)})),
        {"more elements than can be counted",
         [](E& e) {
           const uint32_t large = e.method().literal(int64_t{1} << 40);
           e.method().shape({large, large}, {e.one, e.one});
         }},
        {"the same beside no elements",
         [](E& e) {
           const uint32_t large = e.method().literal(int64_t{1} << 40);
           e.method().shape({e.method().literal(0), large, large}, {e.one, e.one, e.one});
         }}}},
      {"input {} does not lie in its buffer",
       {EDIT("a buffer of one byte",
             set(m.buffers[m.values[e.spare].storage_index()], &BufferFields::size_bytes, e.one)),
        EDIT("an input that is not dense",
             m.dims[m.shapes[m.values[e.spare].shape()].dims_first() + 3] = m.literal(2))}},
      {"input {} is not dense",
       {EDIT("dense at its largest size only",
             m.dims[m.shapes[m.values[e.spare].shape()].dims_first() + 2] = m.literal(4),
             set(m.buffers[m.values[e.spare].storage_index()], &BufferFields::size_bytes,
                 m.literal(32)))}},
      {"input {} cannot be bound: its buffer is larger",
       {EDIT("a buffer of 32 bytes at every size", set(m.buffers[m.values[e.spare].storage_index()],
                                                       &BufferFields::size_bytes, m.literal(32)))}},
      {"value {} has an offset that cannot be",
       {EDIT("offset -1", m.values.push_back(m.values[e.q]),
             set(m.values.back(), &ValueFields::offset, m.literal(-1))),
        EDIT("an offset whose bytes cannot be counted", m.values.push_back(m.values[e.q]),
             set(m.values.back(), &ValueFields::offset, m.literal(INT64_MAX)))}},
      {"value {} does not lie aligned in its storage of {} bytes",
       {EDIT("one element further in a buffer", changed_value(e, e.q, &ValueFields::offset, e.one)),
        EDIT("one element further in a constant",
             changed_value(e, e.weights, &ValueFields::offset, e.one)),
        EDIT("one element further in a state",
             changed_value(e, e.total, &ValueFields::offset, e.one)),
        EDIT("more elements than the state has",
             changed_value(e, e.total, &ValueFields::shape, m.values[e.q].shape())),
        EDIT("wider elements than the constant has",
             changed_value(e, e.weights, &ValueFields::dtype, static_cast<long long>(DType::c64))),
        EDIT("wider elements than the state has",
             changed_value(e, e.total, &ValueFields::dtype, static_cast<long long>(DType::f64)))}},
      {"element {} of value {} does not exist",
       {EDIT("the third of two", set(m.symbols[e.late], &SymbolFields::second, 2)),
        EDIT("the third of an input's two", set(m.symbols[e.first], &SymbolFields::second, 2))}},
      {"what is written overlaps argument {}",
       {{"a copy one element further",
         [](E& e) {
           auto& m = e.method();
           const uint32_t two = m.shape({m.literal(2)});
           const uint32_t from = changed_value(e, e.q, &ValueFields::shape, two);
           const uint32_t to = changed_value(e, from, &ValueFields::offset, e.one);
           m.instruction(InstructionKind::copy, 0, {m.tensor(from), m.tensor(to)});
         }},
        EDIT("a kernel on the same place, which it may not overwrite",
             m.lists[e.argument(e.join, 0).content()] =
                 changed_value(e, e.q, &ValueFields::shape, m.values[e.total].shape()))}},
      {"argument {} has strides or a layout that the kernel does not take",
       {{"every second element",
         [](E& e) {
           auto& m = e.method();
           const uint32_t sparse = m.shape({m.literal(4)}, {m.literal(2)});
           set(e.argument(e.many, 0), &ArgumentFields::content,
               changed_value(e, e.q, &ValueFields::shape, sparse));
         }}}},
      {"result {} has another type than the operator gives",
       {{"another size",
         [](E& e) {
           auto& m = e.method();
           const uint32_t seven = m.shape({m.literal(7)});
           set(e.argument(e.join, 1), &ArgumentFields::content,
               changed_value(e, e.q, &ValueFields::shape, seven));
         }},
        {"another rank",
         [](E& e) {
           auto& m = e.method();
           const uint32_t flat = m.shape({m.literal(1), m.literal(8)});
           set(e.argument(e.join, 1), &ArgumentFields::content,
               changed_value(e, e.q, &ValueFields::shape, flat));
         }}}},
      {"argument {} of a delegate is not dense",
       {{"every second element",
         [](E& e) {
           auto& m = e.method();
           const uint32_t sparse = m.shape({m.literal(4)}, {m.literal(2)});
           e.add_delegate(changed_value(e, e.q, &ValueFields::shape, sparse), e.weights, e.total);
         }}}},
      {"result {} has another type than the backend gives",
       {{"another size",
         [](E& e) {
           auto& m = e.method();
           const uint32_t seven = m.shape({m.literal(7)});
           e.add_delegate(e.weights, e.weights, changed_value(e, e.q, &ValueFields::shape, seven));
         }},
        {"another dtype",
         [](E& e) {
           const uint32_t four = e.method().values[e.weights].shape();
           const uint32_t of_four = changed_value(e, e.q, &ValueFields::shape, four);
           e.add_delegate(e.weights, e.weights, changed_value(e, of_four, &ValueFields::dtype, 4));
         }}}},
      {"a copy needs two dense tensors of equal sizes",
       {{"fewer elements",
         [](E& e) {
           auto& m = e.method();
           const uint32_t two = m.shape({m.literal(2)});
           m.instruction(InstructionKind::copy, 0,
                         {m.tensor(e.weights),
                          m.tensor(changed_value(e, e.total, &ValueFields::shape, two))});
         }},
        {"from every second element",
         [](E& e) {
           auto& m = e.method();
           const uint32_t sparse = m.shape({m.literal(2)}, {m.literal(2)}),
                          two = m.shape({m.literal(2)});
           m.instruction(InstructionKind::copy, 0,
                         {m.tensor(changed_value(e, e.weights, &ValueFields::shape, sparse)),
                          m.tensor(changed_value(e, e.total, &ValueFields::shape, two))});
         }},
        {"to every second element",
         [](E& e) {
           auto& m = e.method();
           const uint32_t sparse = m.shape({m.literal(2)}, {m.literal(2)}),
                          two = m.shape({m.literal(2)});
           m.instruction(InstructionKind::copy, 0,
                         {m.tensor(changed_value(e, e.weights, &ValueFields::shape, two)),
                          m.tensor(changed_value(e, e.total, &ValueFields::shape, sparse))});
         }}}},
  };
}

}  // namespace taper::test
