#include "taper/exporter/inspect/summary.h"

#include <cstddef>
#include <cstring>
#include <set>
#include <vector>

#include "taper/exporter/inspect/extras.h"
#include "taper/exporter/inspect/program_text.h"
#include "taper/exporter/io/format_text.h"
#include "taper/runtime/extension/module/asset.h"
#include "taper/runtime/packing/packing.h"
#include "taper/runtime/program/format.h"
#include "taper/runtime/program/tables.h"

namespace taper::inspect {
namespace {

using internal::none;

template <class T, class Visit>
void for_each(const flatbuffers::Vector<T>* vector, Visit&& visit) {
  for (index_t i = 0; i < internal::count_of(vector); ++i)
    visit(vector->Get(static_cast<uint32_t>(i)), static_cast<uint32_t>(i));
}

std::string text_or_empty(const flatbuffers::String* text) {
  return text == nullptr ? "" : text->str();
}

// The paths of the states that are results of instructions.
std::vector<std::string> states_written(const Program& program, const MethodText& text) {
  const format::Method& m = text.table();
  std::set<std::string> paths;
  for_each(m.instructions(), [&](const format::Instruction* in, uint32_t) {
    int results = in->kind() == format::InstructionKind::copy ? 1 : in->results();
    if (in->kind() == format::InstructionKind::kernel)
      results = program.kernel(in->target()).result_count;
    for (uint32_t i =
             in->arguments_first() + in->arguments_count() - static_cast<uint32_t>(results);
         i < in->arguments_first() + in->arguments_count(); ++i) {
      const format::Argument& a = *m.arguments()->Get(i);
      if (a.form() != format::ArgumentForm::literal) continue;
      const format::Value& v = *m.values()->Get(static_cast<uint32_t>(a.content()));
      if (v.storage() == format::Storage::state) paths.insert(text.storage_path(v));
    }
  });
  return {paths.begin(), paths.end()};
}

std::string check_text(const MethodText& text, const format::Check& check) {
  std::string message = check.message()->str();
  for (const uint32_t value : internal::span_of(check.values()))
    if (const size_t at = message.find("{}"); at != std::string::npos)
      message.replace(at, 2, text.expression(value));
  return text.expression(check.condition()) + ": " + message;
}

MethodSummary summarize_method(const ProgramFile& file, index_t index) {
  const MethodText text(file.program(), index);
  const format::Method& m = text.table();
  MethodSummary s;
  s.name = m.name()->str();
  for_each(m.inputs(), [&](const format::Input* in, uint32_t) {
    s.inputs.push_back(in->name()->str() + ": " +
                       (in->value() != none ? text.type(in->value()) : type_text(in->type())));
  });
  for_each(m.outputs(), [&](const format::Output* o, uint32_t) {
    s.outputs.push_back(
        o->name()->str() + ": " +
        (o->value() != none ? text.type(o->value()) : text.expression(o->expression())));
  });
  for_each(m.symbols(), [&](const format::Symbol* symbol, uint32_t i) {
    s.symbols.push_back(
        {text.symbol(i), text.symbol_source(*symbol), symbol->minimum(), symbol->maximum()});
  });
  for_each(m.checks(),
           [&](const format::Check* c, uint32_t) { s.checks.push_back(check_text(text, *c)); });
  for_each(m.instructions(), [&](const format::Instruction* in, uint32_t) {
    ++s.operators[text.instruction_name(*in)];
  });
  s.instructions = internal::count_of(m.instructions());
  s.values = internal::count_of(m.values());
  s.buffers = internal::count_of(m.buffers());
  s.states_written = states_written(file.program(), text);
  s.memory = file.requirements(index);
  s.lower_bound_bytes = static_cast<int64_t>(m.lower_bound_bytes());
  return s;
}

int64_t dense_size(format::DType dtype, const flatbuffers::Vector<int64_t>* sizes) {
  size_t bytes = 0;
  (void)internal::dense_bytes(internal::span_of(sizes), static_cast<DType>(dtype),
                              bytes);  // loading has verified it
  return static_cast<int64_t>(bytes);
}

std::vector<KernelSummary> summarize_kernels(const Program& program) {
  std::vector<KernelSummary> kernels;
  for_each(program.table().kernels(), [&](const format::Kernel* k, uint32_t i) {
    const Kernel& record = program.kernel(i);
    kernels.push_back({signature_text(*k, record.result_count), &record, 0});
  });
  for_each(program.table().methods(), [&](const format::Method* m, uint32_t) {
    for_each(m->instructions(), [&](const format::Instruction* in, uint32_t) {
      if (in->kind() == format::InstructionKind::kernel) ++kernels[in->target()].instructions;
    });
  });
  return kernels;
}

std::vector<PartSummary> summarize_parts(const ProgramFile& file) {
  FileHeader header;
  std::memcpy(&header, file.bytes().data(), sizeof header);
  std::vector<PartSummary> parts{{"header", sizeof header},
                                 {"metadata", static_cast<int64_t>(header.metadata_bytes)}};
  int64_t rest = static_cast<int64_t>(file.bytes().size() - sizeof header - header.metadata_bytes);
  for_each(file.program().table().segments(), [&](const format::Segment* s, uint32_t) {
    parts.push_back(
        {format::EnumNameSegmentKind(s->kind()), static_cast<int64_t>(s->size_bytes())});
    rest -= static_cast<int64_t>(s->size_bytes());
  });
  parts.push_back({"padding", rest});
  return parts;
}

std::string target_text(const format::Target& t) {
  std::vector<std::string> sets;
  for_each(t.kernel_sets(),
           [&](const flatbuffers::String* set, uint32_t) { sets.push_back(set->str()); });
  std::string text = text_or_empty(t.name());
  if (!sets.empty()) text += (text.empty() ? "" : " with ") + io::joined(sets);
  return text;
}

std::vector<AssetSummary> summarize_assets(const ProgramFile& file) {
  Result<std::vector<Asset>> assets = assets_of(file.program());
  if (!assets.ok())
    throw ExportError(file.path().string() + ": its assets are damaged; export it again");
  std::vector<AssetSummary> summaries;
  for (const Asset& asset : assets.value())
    summaries.push_back(
        {std::string(asset.name), std::string(asset.media_type), asset.bytes.size()});
  return summaries;
}

}  // namespace

Summary summarize(const ProgramFile& file) {
  const Program& program = file.program();
  const format::Program& table = program.table();
  Summary s;
  s.path = file.path().string();
  s.name = text_or_empty(table.name());
  s.producer = text_or_empty(table.producer());
  s.file_bytes = static_cast<int64_t>(file.bytes().size());
  FileHeader header;
  std::memcpy(&header, file.bytes().data(), sizeof header);
  s.format_version = header.version;
  for_each(table.targets(), [&](const format::Target* t, uint32_t) {
    if (t->exact()) s.exact = true;
    if (std::string text = target_text(*t); !text.empty()) s.targets.push_back(std::move(text));
  });
  for (index_t i = 0; i < program.method_count(); ++i)
    s.methods.push_back(summarize_method(file, i));
  for_each(table.states(), [&](const format::State* state, uint32_t) {
    s.states.push_back({state->path()->str(), format::EnumNameStateKind(state->kind()),
                        type_text(state->dtype(), state->sizes()),
                        dense_size(state->dtype(), state->sizes())});
  });
  for_each(table.constants(), [&](const format::Constant* c, uint32_t i) {
    std::string outside;
    if (c->source() == format::ConstantSource::external)
      outside = "in " + text_or_empty(c->external_file());
    if (c->source() == format::ConstantSource::slot) outside = "slot " + text_or_empty(c->slot());
    ConstantSummary& constant = s.constants.emplace_back(
        ConstantSummary{text_or_empty(c->path()), type_text(c->dtype(), c->sizes()),
                        dense_size(c->dtype(), c->sizes()), outside, ""});
    if (const internal::PlacedConstant& placed = program.data().constants[i]; placed.is_packed()) {
      constant.size_bytes = static_cast<int64_t>(placed.bytes);
      constant.layout = format::EnumNameLayout(static_cast<format::Layout>(placed.layout));
    }
  });
  s.kernels = summarize_kernels(program);
  for (const io::BundledTest& test : bundled_tests(file))
    s.tests.push_back({test.method, test.name, test.relative_tolerance, test.size_bytes()});
  s.assets = summarize_assets(file);
  s.parts = summarize_parts(file);
  s.session_bytes = static_cast<int64_t>(program.session_bytes());
  std::vector<std::max_align_t> workspace(packing_workspace(program) / sizeof(std::max_align_t) +
                                          1);
  s.packed_bytes = static_cast<int64_t>(
      find_packed(program, {reinterpret_cast<std::byte*>(workspace.data()),
                            static_cast<index_t>(packing_workspace(program))}));
  return s;
}

}  // namespace taper::inspect
