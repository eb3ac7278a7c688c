#include "taper/exporter/cli/kernel_table.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <ostream>
#include <set>

#include "taper/exporter/inspect/extras.h"
#include "taper/exporter/io/format_text.h"
#include "taper/kernels/optimized/narrow_records.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/quantized/quantized.h"
#include "taper/runtime/program/tables.h"

namespace taper::cli {
namespace {

// Makes "my_net_v2" from "my-net.v2".
std::string identifier(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) text.insert(0, "_");
  return text;
}

// A name from a file in a form that a line's comment can hold.
std::string comment(const std::string& text) { return io::printable(text); }

// The namespace in which a record is declared.
const char* library_of(const Kernel* kernel) {
  const auto has = [&](KernelSet set) { return std::ranges::find(set, kernel) != set.end(); };
  return has(portable::all)    ? "taper::portable"
         : has(quantized::all) ? "taper::quantized"
                               : "taper::optimized";
}

// The sets of features between which the choice of records can differ: all unions of the needs of
// some records.
std::vector<CpuFeatures> machines(KernelSet kernels) {
  std::vector<CpuFeatures> found{{}};
  for (const Kernel* k : kernels)
    for (size_t i = 0, n = found.size(); i < n; ++i)
      if (std::ranges::find(found, found[i] | k->needs) == found.end())
        found.push_back(found[i] | k->needs);
  return found;
}

// The smallest first.
std::vector<const optimized::NarrowRecord*> narrow_records(const Kernel* any) {
  std::vector<const optimized::NarrowRecord*> found;
  for (const auto& records : {optimized::narrow_products, optimized::narrow_convolutions})
    for (const optimized::NarrowRecord& r : records)
      if (r.any == any) found.push_back(&r);
  return found;
}

// The records that a program uses, on any machine.
struct Uses {
  std::set<const Kernel*> records;
  std::set<const optimized::NarrowRecord*> unfit;  // for some call

  const Kernel* smallest(const Kernel* k) const {
    for (const optimized::NarrowRecord* r : narrow_records(k))
      if (!unfit.contains(r)) return r->narrow;
    return k;
  }
};

// Sizes that a program does not fix are unknown. So are strides.
Shape known_shape(const internal::MethodView& view, const format::Value& value) {
  const format::Shape& stored = view.shapes[value.shape()];
  Shape shape;
  shape.rank = stored.rank();
  for (int d = 0; d < shape.rank; ++d) {
    const format::Expression& e =
        view.expressions[view.dims[stored.dims_first() + static_cast<uint32_t>(d)]];
    shape.sizes[d] = e.operation() == format::Operation::literal
                         ? e.literal()
                         : optimized::NarrowRecord::unknown_size;
  }
  return shape;
}

// The literals of an instruction, the sizes of its tensors, and the layouts of its constants:
// NarrowRecord::fits reads no more.
struct KnownArguments {
  std::vector<Shape> shapes;
  std::vector<TensorRef> tensors;
  std::vector<Slot> slots;

  KnownArguments(const Program& program, const internal::MethodView& view,
                 const format::Instruction& in)
      : shapes(in.arguments_count()), tensors(in.arguments_count()), slots(in.arguments_count()) {
    for (size_t i = 0; i < slots.size(); ++i) {
      const format::Argument& a =
          view.arguments[static_cast<index_t>(in.arguments_first()) + static_cast<index_t>(i)];
      Slot& s = slots[i];
      s.kind = static_cast<Kind>(a.kind()), s.size = a.count();
      s.present = a.form() != format::ArgumentForm::absent;
      if (a.kind() != format::ArgumentKind::tensor) {
        if (a.form() == format::ArgumentForm::list)
          s.integers = view.lists.data() + a.content();
        else if (a.form() == format::ArgumentForm::expression_list)
          s.integers = nullptr, s.size = 0;  // not known: `prepare` sees it
        else
          s.integer = a.content();
        continue;
      }
      s.tensor = &tensors[i], tensors[i].shape = &shapes[i];
      if (a.form() != format::ArgumentForm::literal) continue;
      const format::Value& v = view.values[static_cast<index_t>(a.content())];
      shapes[i] = known_shape(view, v);
      if (v.storage() == format::Storage::constant)
        tensors[i].layout = program.data().constants[v.storage_index()].layout;
    }
  }
};

void add_calls(const Program& program, Uses& uses) {
  for (index_t m = 0; m < program.method_count(); ++m) {
    const internal::MethodView view(*program.table().methods()->Get(static_cast<uint32_t>(m)));
    for (const format::Instruction& in : view.instructions) {
      if (in.kind() != format::InstructionKind::kernel) continue;
      const Kernel* record = &program.kernel(in.target());
      for (const optimized::NarrowRecord* narrow : narrow_records(record))
        if (!narrow->fits(KnownArguments(program, view, in).slots.data()))
          uses.unfit.insert(narrow);
    }
  }
}

// Adds the records that a machine with these CPU features uses for a program.
void add_machine(const std::filesystem::path& path, KernelSet kernels, CpuFeatures cpu, Uses& uses,
                 LinkedProgram& linked) {
  const inspect::ProgramFile file(path, kernels, cpu);
  const Program& program = file.program();
  const index_t count = internal::count_of(program.table().kernels());
  for (index_t i = 0; i < count; ++i) uses.records.insert(&program.kernel(i));
  add_calls(program, uses);
  const internal::ProgramView& view = program.data().view;
  for (index_t i = 0; i < view.constants.size(); ++i) {
    const internal::ConstantView c = view.constant(static_cast<uint64_t>(i));
    if (c.source == format::ConstantSource::external)
      linked.outside = c.path != nullptr ? c.path : "a constant";
  }
  linked.bytes = inspect::without_extras(file);
  linked.load_bytes = file.metadata_bytes();
  linked.session_bytes = program.session_bytes();
  linked.methods.resize(static_cast<size_t>(program.method_count()));
  for (index_t i = 0; i < program.method_count(); ++i) {
    LinkedMethod& m = linked.methods[static_cast<size_t>(i)];
    m.name = program.method_name(i);
    m.bytes = std::max(m.bytes, file.requirements(i).total());
  }
}

// Writes 16 bytes in a line.
void write_bytes(std::ostream& out, const std::vector<std::byte>& bytes) {
  for (size_t i = 0; i < bytes.size(); ++i)
    out << static_cast<int>(bytes[i]) << (i % 16 == 15 ? ",\n" : ",");
}

std::string array_declaration(const LinkedProgram& p) {
  return "const unsigned char " + p.name + "_taper[" + std::to_string(p.bytes.size()) + "]";
}
std::string table_declaration(const LinkedProgram& p) {
  return "const taper::Kernel* const " + p.name + "_kernels[" + std::to_string(p.kernels.size()) +
         "]";
}

}  // namespace

LinkedProgram linked_program(const std::filesystem::path& path, const std::string& name,
                             const Target& target) {
  LinkedProgram linked;
  linked.file_name = path.filename().string();
  linked.name = identifier(name.empty() ? path.stem().string() : name);
  if (!name.empty() && linked.name != name)
    throw ExportError("--name " + name + " cannot begin a C++ name; " + linked.name + " can");
  const std::vector<const Kernel*> set = target.kernels();
  Uses uses;
  for (const CpuFeatures cpu : machines(set))
    add_machine(path, set, cpu | target.has, uses, linked);
  for (const Kernel* k : set) {
    if (!uses.records.contains(k)) continue;
    const Kernel* smallest = uses.smallest(k);  // two levels may have the same one
    if (std::ranges::find(linked.kernels, smallest) == linked.kernels.end())
      linked.kernels.push_back(smallest);
  }
  if (linked.kernels.empty())
    throw ExportError(path.string() +
                      ": the program uses no kernels, so there is no table to write");
  return linked;
}

void write_kernel_table(std::ostream& out, const LinkedProgram& p) {
  out << "// The kernels that " << comment(p.file_name)
      << " needs. Written by `taper export --kernels`.\n#include \"taper/kernels/kernel.h\"\n";
  std::map<std::string, std::vector<const Kernel*>> libraries;
  for (const Kernel* k : p.kernels) libraries[library_of(k)].push_back(k);
  for (const auto& [library, kernels] : libraries) {
    out << "\nnamespace " << library << " {\nextern const Kernel\n";
    for (const Kernel* k : kernels)
      out << "    " << k->name << (k == kernels.back() ? ";\n" : ",\n");
    out << "}  // namespace " << library << '\n';
  }
  out << "\nextern " << table_declaration(p) << ";\n" << table_declaration(p) << " = {\n";
  for (const Kernel* k : p.kernels) out << "    &" << library_of(k) << "::" << k->name << ",\n";
  out << "};\n";
}

void write_array(std::ostream& out, const LinkedProgram& p) {
  out << "// " << comment(p.file_name) << ". Written by `taper export --array`.\nextern "
      << array_declaration(p) << ";\nalignas(64) " << array_declaration(p) << " = {\n";
  write_bytes(out, p.bytes);
  out << "};\n";
}

void write_header(std::ostream& out, const LinkedProgram& p) {
  out << "// " << comment(p.file_name)
      << " as part of a program. Written by `taper export --header`.\n#pragma once\n#include "
         "\"taper/kernels/kernel.h\"\n\n"
      << "extern " << array_declaration(p) << ";     // written by --array\n"
      << "extern " << table_declaration(p) << ";  // written by --kernels\n\n"
      << "// Bytes of memory, enough for 32-bit and 64-bit processors. A method needs its bytes in "
         "addition to those of the session.\n"
      << "inline constexpr unsigned long " << p.name << "_load_bytes = " << p.load_bytes
      << ";     // Program::load\n"
      << "inline constexpr unsigned long " << p.name << "_session_bytes = " << p.session_bytes
      << ";  // Session::create\n";
  std::set<std::string> taken{"load", "session"};
  for (const LinkedMethod& m : p.methods) {
    std::string name = identifier(m.name);
    while (!taken.insert(name).second) name += '_';  // "a.b" and "a-b" become the same
    out << "inline constexpr unsigned long " << p.name << "_" << name << "_bytes = " << m.bytes
        << ";  // Method::create, \"" << comment(m.name) << "\"\n";
  }
}

}  // namespace taper::cli
