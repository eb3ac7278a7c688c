#include "taper/runtime/program/structure.h"

#include <flatbuffers/reflection_generated.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "programs.h"
#include "taper/runtime/program/format.h"
#include "taper/schema/program_generated.h"

namespace taper::internal::structure {
namespace {

using test::AlignedBytes;

constexpr const char* table_names[] = {"Program",      "Space",    "Kernel",   "Delegate",
                                       "Option",       "Constant", "Encoding", "State",
                                       "Quantization", "Method",   "Input",    "Output",
                                       "Check",        "Target",   "Debug",    "MethodDebug"};
static_assert(std::size(table_names) == table_count);

/// schema/program.fbs, as `flatc --schema --binary` compiles it.
class Schema {
 public:
  Schema() {
    std::ifstream in(TAPER_BINARY_SCHEMA, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }
  const reflection::Object& table(const std::string& name) const {
    int i = 0;
    while (this->name(i) != name) ++i;
    return object(i);
  }
  std::string name(int table) const {
    const std::string full = schema().objects()->Get(static_cast<uint32_t>(table))->name()->str();
    return full.substr(full.rfind('.') + 1);
  }
  const reflection::Object& object(int i) const {
    return *schema().objects()->Get(static_cast<uint32_t>(i));
  }

 private:
  const reflection::Schema& schema() const { return *reflection::GetSchema(bytes_.data()); }
  std::vector<char> bytes_;
};

size_t bytes_of(reflection::BaseType type) {
  switch (type) {
    case reflection::UType:
    case reflection::Bool:
    case reflection::Byte:
    case reflection::UByte:
      return 1;
    case reflection::Short:
    case reflection::UShort:
      return 2;
    case reflection::Int:
    case reflection::UInt:
    case reflection::Float:
      return 4;
    default:
      return 8;
  }
}

/// "table 9" of the list is "Method".
std::string describe(Kind kind, size_t content) {
  if (kind == Kind::tables) return std::string("vector of ") + table_names[content];
  if (kind == Kind::strings) return "vector of strings";
  if (kind == Kind::string) return "string";
  return (kind == Kind::vector ? "vector of " : "") + std::to_string(content) + " bytes";
}

std::string describe(const Schema& schema, const reflection::Type& type) {
  const auto single = [&](reflection::BaseType t) -> std::string {
    if (t == reflection::String) return "strings";
    if (t != reflection::Obj) return std::to_string(bytes_of(t)) + " bytes";
    const reflection::Object& object = schema.object(type.index());
    return object.is_struct() ? std::to_string(object.bytesize()) + " bytes"
                              : schema.name(type.index());
  };
  if (type.base_type() == reflection::String) return "string";
  return type.base_type() == reflection::Vector ? "vector of " + single(type.element())
                                                : single(type.base_type());
}

TEST(structure, has_every_field_of_the_schema) {
  const Schema schema;
  std::vector<std::string> expected, found;
  const auto line = [](const std::string& table, int slot, const std::string& what, bool required) {
    return table + " " + std::to_string(slot) + ": " + what + (required ? ", required" : "");
  };
  for (const char* table : table_names) {
    for (const reflection::Field* f : *schema.table(table).fields())
      if (!f->deprecated())  // nobody reads it
        expected.push_back(line(table, f->offset(), describe(schema, *f->type()), f->required()));
  }
  for (const Field& f : fields())
    found.push_back(line(table_names[f.owner], f.slot, describe(f.kind, f.content), f.required));
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

Span<const std::byte> metadata_of(const AlignedBytes& file) {
  FileHeader h;
  std::memcpy(&h, file.data(), sizeof h);
  return {file.data() + h.metadata_offset, static_cast<index_t>(h.metadata_bytes)};
}

bool flatbuffers_accept(Span<const std::byte> bytes) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()),
                                 static_cast<size_t>(bytes.size()));
  return format::VerifyProgramBuffer(verifier);
}

// What is_valid lets pass, the generated functions let pass, too. The other way round nearly: they
// read an offset of 0 in a vector, and is_valid refuses it.
TEST(structure, is_as_strict_as_the_generated_verifiers) {
  test::ProgramFile program = test::sums_program();
  program.constant<float>("w", {4}, {1, 2, 3, 4});
  program.state("cache", {4, 2}, DType::f32);
  const AlignedBytes file = program.bytes();
  const Span<const std::byte> good = metadata_of(file);
  ASSERT_TRUE(is_valid(good, structure::program));
  ASSERT_TRUE(flatbuffers_accept(good));

  AlignedBytes bytes(static_cast<size_t>(good.size()));
  const Span<const std::byte> view(bytes.data(), good.size());
  std::mt19937 random(1);
  int refused = 0, differ = 0;
  for (int round = 0; round < 40000; ++round) {
    std::memcpy(bytes.data(), good.data(), bytes.size());
    for (uint32_t k = 0; k <= random() % 2; ++k) {
      const size_t at = random() % bytes.size();
      bytes.data()[at] = static_cast<std::byte>(random() % 3 == 0 ? random() % 8 : random());
    }
    const bool ours = is_valid(view, structure::program) &&
                      format::ProgramBufferHasIdentifier(reinterpret_cast<void*>(bytes.data()));
    const bool theirs = flatbuffers_accept(view);
    ASSERT_TRUE(!ours || theirs) << "round " << round;
    refused += !ours, differ += ours != theirs;
  }
  EXPECT_GT(refused, 4000);
  EXPECT_LT(differ, 40);

  for (index_t size = 0; size < good.size(); size += 5)
    EXPECT_FALSE(is_valid({bytes.data(), size}, structure::program) &&
                 !flatbuffers_accept({bytes.data(), size}));
}

// A vector that many tables name has to be verified for each of them: a megabyte would take hours.
TEST(structure, refuses_vectors_that_tables_share) {
  const auto is_accepted = [](uint32_t methods, uint32_t names) {
    flatbuffers::FlatBufferBuilder b;
    const auto texts = b.CreateVectorOfStrings(std::vector<std::string>(names, "n"));
    const auto name = b.CreateString("forward");
    std::vector<flatbuffers::Offset<format::Method>> tables;
    for (uint32_t i = 0; i < methods; ++i) {
      format::MethodBuilder method(b);
      method.add_name(name), method.add_symbol_names(texts);
      tables.push_back(method.Finish());
    }
    const auto vector = b.CreateVector(tables);
    format::ProgramBuilder program(b);
    program.add_methods(vector);
    b.Finish(program.Finish(), format::ProgramIdentifier());
    AlignedBytes bytes(b.GetSize());
    std::memcpy(bytes.data(), b.GetBufferPointer(), bytes.size());
    EXPECT_TRUE(flatbuffers_accept(bytes));
    return is_valid(bytes, structure::program);
  };
  EXPECT_TRUE(is_accepted(1, 1000));
  EXPECT_FALSE(is_accepted(1000, 1000));
}

}  // namespace
}  // namespace taper::internal::structure
