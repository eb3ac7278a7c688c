#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "../support/data.h"
#include "programs.h"
#include "taper/runtime/extension/module/mapped_file.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/runtime/extension/module/place_in_file.h"
#include "taper/runtime/extension/module/sha256.h"
#include "taper/runtime/extension/module/slack.h"
#include "taper/runtime/program/tables.h"
#include "test_kernels.h"
#include "written.h"

namespace taper::test {
namespace {

using testing::HasSubstr;

std::string hex(Span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : sha256(bytes)) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[static_cast<int>(b) / 16], text += digits[static_cast<int>(b) % 16];
  }
  return text;
}

// The examples of FIPS 180-2.
TEST(sha256, gives_the_digests_of_its_standard) {
  const auto digest = [](const std::string& text) {
    return hex(
        {reinterpret_cast<const std::byte*>(text.data()), static_cast<index_t>(text.size())});
  };
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// forward(x: f32[batch, 4]) -> the row sums of x + w + x. The constant w: f32[8, 4] begins with
// 1, 2, 3, 4. It lies in model.weights.taper, or in the slot `adapter`.
ProgramFile weighing(format::ConstantSource source) {
  ProgramFile p = sums_program();
  std::vector<float> w(32);
  w[0] = 1, w[1] = 2, w[2] = 3, w[3] = 4;
  p.constant<float>("encoder.weight", {8, 4}, w);
  auto& c = p.constants[0];
  c.source = source;
  if (source == format::ConstantSource::slot) c.slot = "adapter";
  c.external_file = "/elsewhere/model.weights.taper";  // the folder does not count
  for (const std::byte b : sha256(c.data)) c.hash.push_back(static_cast<uint8_t>(b));
  MethodTables& m = p.methods[0];
  m.arguments[1] =
      m.tensor(m.value(format::Storage::constant, 0, m.shape({m.dims[0], m.literal(4)})));
  return p;
}
ProgramFile weights_file() {
  ProgramFile weights;
  weights.constants = weighing(format::ConstantSource::embedded).constants;
  return weights;
}

TEST(module, finds_weights_in_a_file_beside_the_program) {
  std::string message;
  ModuleOptions options;
  options.message = &message;
  const auto weighing_program = weighing(format::ConstantSource::external);
  const std::string path = written(weighing_program.bytes());
  const std::string weights = written(weights_file().bytes(), "model.weights.taper");
  const std::array<float, 4> x = {0, 0, 0, 0};
  std::array<float, 1> sum;
  for (const Loading loading : {Loading::map, Loading::read})
    for (const bool verify : {false, true}) {
      options.loading = loading, options.verify = verify;
      Result<Module> model = Module::load(path, kernels, options);
      ASSERT_TRUE(model.ok()) << message;
      ASSERT_EQ(model->forward({{x.data(), {1, 4}}}, {sum}), Error::ok) << model->message();
      EXPECT_EQ(sum[0], 10);
    }

  const std::string folder = tests::scratch_file("weights").string();
  std::filesystem::create_directory(folder);
  std::filesystem::rename(weights, folder + "/model.weights.taper");
  EXPECT_EQ(Module::load(path, kernels, options).error(), Error::invalid_argument);
  EXPECT_THAT(message, HasSubstr("constant encoder.weight lies in another file: "));
  EXPECT_THAT(message, HasSubstr("No such file or directory; put the file there, or name its "));
  options.weights_folder = folder;
  EXPECT_TRUE(Module::load(path, kernels, options).ok()) << message;
  // a program in memory has no folder of its own
  const AlignedBytes bytes = weighing_program.bytes();
  EXPECT_TRUE(Module::load(bytes, kernels, options).ok()) << message;
}

TEST(module, refuses_weights_files_of_other_models) {
  std::string message;
  ModuleOptions options;
  options.message = &message;
  const std::string path = written(weighing(format::ConstantSource::external).bytes());
  const auto refused = [&](const AlignedBytes& file) {
    written(file, "model.weights.taper");
    EXPECT_EQ(Module::load(path, kernels, options).error(), Error::invalid_argument);
    return message;
  };
  ProgramFile other = weights_file();
  other.constants[0].hash[31] ^= 1;
  EXPECT_THAT(refused(other.bytes()), HasSubstr("the file is of another model or another export"));
  other.constants[0].hash.clear();
  EXPECT_THAT(refused(other.bytes()), HasSubstr("the file is of another model or another export"));
  ProgramFile longer = weights_file();
  longer.constants[0].sizes = {9, 4}, longer.constants[0].data.resize(144);
  EXPECT_THAT(refused(longer.bytes()), HasSubstr("encoder.weight has 128 bytes, in "));
  AlignedBytes cut(64);
  EXPECT_THAT(refused(cut), HasSubstr("this is not a Taper program"));
  EXPECT_THAT(message, HasSubstr("copy it again from where it was made"));
  EXPECT_THAT(message, Not(HasSubstr("put the file there")));
  EXPECT_THAT(refused(weighing(format::ConstantSource::embedded).bytes()),
              HasSubstr("this is a program with methods, and no weights file"));
  // another content under the same hash: found where the file is read at all
  ProgramFile forged = weights_file();
  forged.constants[0].data[3] ^= std::byte{1};
  options.verify = true;
  EXPECT_THAT(refused(forged.bytes()), HasSubstr("encoder.weight has another content in "));
}

// The weights of `weighing` lie in a file of another kind, from byte 40 on.
struct OtherKind {
  std::string file, program;
  PlaceInFile place;

  OtherKind() {
    std::vector<float> content(10 + 32, 7.0f);
    for (int i = 0; i < 4; ++i) content[10 + static_cast<size_t>(i)] = static_cast<float>(1 + i);
    std::fill(content.begin() + 14, content.end(), 0.0f);
    AlignedBytes bytes(content.size() * sizeof(float));
    std::memcpy(bytes.data(), content.data(), bytes.size());
    file = written(bytes, "weights.other");
    place = {fingerprint_of_file(), 40, Layout::dense};
    write_program();
  }
  uint64_t fingerprint_of_file() const {
    MappedFile mapped;
    std::string why;
    EXPECT_TRUE(mapped.open(file, why)) << why;
    return fingerprint(mapped);
  }
  void write_program() {
    ProgramFile p = weighing(format::ConstantSource::external);
    p.constants[0].external_file = "/elsewhere/weights.other";
    p.constants[0].hash.clear();
    for (const std::byte b : place.key()) p.constants[0].hash.push_back(static_cast<uint8_t>(b));
    program = written(p.bytes());
  }
};

TEST(module, uses_weights_where_they_lie_in_a_file_of_another_kind) {
  OtherKind other;
  std::string message;
  ModuleOptions options;
  options.message = &message;
  const std::array<float, 4> x = {0, 0, 0, 0};
  std::array<float, 1> sum;
  for (const Loading loading : {Loading::map, Loading::read}) {
    options.loading = loading;
    Result<Module> model = Module::load(other.program, kernels, options);
    ASSERT_TRUE(model.ok()) << message;
    ASSERT_EQ(model->forward({{x.data(), {1, 4}}}, {sum}), Error::ok) << model->message();
    EXPECT_EQ(sum[0], 10);
  }
  std::filesystem::last_write_time(
      other.file, std::filesystem::last_write_time(other.file) - std::chrono::seconds(1));
  EXPECT_EQ(Module::load(other.program, kernels, options).error(), Error::invalid_argument);
  EXPECT_THAT(message, HasSubstr("which is another file than the program was made of"));
  std::filesystem::remove(other.file);
  EXPECT_EQ(Module::load(other.program, kernels, options).error(), Error::invalid_argument);
  EXPECT_THAT(message, HasSubstr("No such file or directory"));
}

TEST(module, refuses_places_that_a_file_of_another_kind_does_not_have) {
  OtherKind other;
  std::string message;
  ModuleOptions options;
  options.message = &message;
  for (const PlaceInFile& place : {PlaceInFile{other.place.file, 44, Layout::dense},
                                   PlaceInFile{other.place.file, 168, Layout::dense},
                                   PlaceInFile{other.place.file, ~uint64_t{0}, Layout::dense},
                                   PlaceInFile{other.place.file, 40, Layout::q4_0_panels},
                                   PlaceInFile{other.place.file, 40, Layout::panels_of_first}}) {
    other.place = place;
    other.write_program();
    EXPECT_EQ(Module::load(other.program, kernels, options).error(), Error::invalid_argument);
    EXPECT_THAT(message, HasSubstr("does not lie in ")) << place.offset;
  }
  // an unknown layout makes it a hash, which the file, being none of weights, does not have
  other.place = {other.place.file, 40, static_cast<Layout>(layout_count)};
  other.write_program();
  EXPECT_EQ(Module::load(other.program, kernels, options).error(), Error::invalid_argument);
  EXPECT_THAT(message, HasSubstr("no weights file"));
}

TEST(fingerprint, differs_where_a_large_file_differs_at_its_ends_or_in_a_sample) {
  std::vector<char> content(1 << 21, 'x');
  const std::string path = tests::scratch_file("large").string();
  const auto of = [&] {
    std::ofstream(path, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    std::filesystem::last_write_time(path, std::filesystem::file_time_type());
    MappedFile file;
    std::string why;
    EXPECT_TRUE(file.open(path, why)) << why;
    return fingerprint(file);
  };
  const uint64_t before = of();
  EXPECT_EQ(of(), before);
  for (const size_t at : {size_t{0}, size_t{65536}, content.size() - 1}) {
    content[at] = 'y';
    EXPECT_NE(of(), before) << at;
    content[at] = 'x';
  }
  content.push_back('x');
  EXPECT_NE(of(), before);
}

TEST(module, fills_slots_with_the_tensors_of_the_application) {
  std::string message;
  ModuleOptions options;
  options.message = &message;
  const std::string path = written(weighing(format::ConstantSource::slot).bytes());
  const auto refused = [&] {
    EXPECT_EQ(Module::load(path, kernels, options).error(), Error::invalid_argument);
    return message;
  };
  EXPECT_THAT(refused(),
              HasSubstr("constant encoder.weight is the slot adapter, of type f32[8, 4]"));
  OwnedTensor value{DType::f32, {8, 4}, std::vector<std::byte>(128)};
  const std::array<float, 4> ones = {1, 1, 1, 1};
  std::memcpy(value.bytes.data(), ones.data(), 16);
  options.slots["adapter"] = value;
  Result<Module> model = Module::load(path, kernels, options);
  ASSERT_TRUE(model.ok()) << message;
  options.slots.clear();  // the module has a copy
  std::array<float, 1> sum;
  EXPECT_EQ(model->forward({{std::array<float, 4>{}.data(), {1, 4}}}, {sum}), Error::ok);
  EXPECT_EQ(sum[0], 4);

  options.slots["adapter"] = {DType::i32, {8, 4}, std::vector<std::byte>(128)};
  EXPECT_THAT(refused(), HasSubstr("slot adapter takes f32[8, 4], not i32[8, 4]"));
  options.slots["adapter"] = {DType::f32, {32}, std::vector<std::byte>(128)};
  EXPECT_THAT(refused(), HasSubstr("slot adapter takes f32[8, 4], not f32[32]"));
  options.slots = {{"adapter", value}, {"adaptor", value}};
  EXPECT_THAT(refused(), HasSubstr("the program has no slot adaptor"));
}

TEST(module, copies_no_slot_that_a_mapped_file_of_another_kind_holds) {
  std::string message;
  ModuleOptions options;
  options.message = &message;
  const std::string path = written(weighing(format::ConstantSource::slot).bytes());
  AlignedBytes tensors(3 * 128);
  const std::array<float, 4> ones = {1, 1, 1, 1};
  std::memcpy(tensors.data() + 256, ones.data(), 16);  // the last one
  MappedFile file;
  ASSERT_TRUE(file.open(written(tensors, "foreign.bin"), message)) << message;
  options.borrowed_slots["adapter"] = {
      DType::f32, {8, 4}, file.bytes().part(256, 128), file.readable()};
  Result<Module> model = Module::load(path, kernels, options);
  ASSERT_TRUE(model.ok()) << message;
  EXPECT_EQ(model->program().data().constants[0].data, file.bytes().data() + 256);
  std::array<float, 1> sum;
  EXPECT_EQ(model->forward({{std::array<float, 4>{}.data(), {1, 4}}}, {sum}), Error::ok);
  EXPECT_EQ(sum[0], 4);

  options.slots["adapter"] = {DType::f32, {8, 4}, std::vector<std::byte>(128)};
  EXPECT_EQ(Module::load(path, kernels, options).error(), Error::invalid_argument);
  EXPECT_THAT(message, HasSubstr("slot adapter is given twice"));
}

TEST(slack, copies_only_elements_without_readable_bytes_behind_them) {
  constexpr index_t bytes = 128, page = 1 << 16;  // no system has larger pages
  for (const index_t count : {3, static_cast<int>(page / bytes)})
    for (const auto access : {MappedFile::Access::read_only, MappedFile::Access::in_memory}) {
      AlignedBytes content(static_cast<size_t>(count * bytes));
      for (size_t i = 0; i < content.size(); ++i)
        content.data()[i] = static_cast<std::byte>(i / bytes);
      MappedFile file;
      std::string why;
      ASSERT_TRUE(file.open(written(content, "foreign.bin"), why, access)) << why;
      std::vector<taper::Region> copies;
      for (index_t i = 0; i < count; ++i) {
        const Span<const std::byte> tensor = file.bytes().part(i * bytes, bytes);
        const auto found = with_slack(tensor, file.readable(), 4, copies);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->size(), bytes + 64);
        EXPECT_EQ(std::memcmp(found->data(), tensor.data(), bytes), 0);
        EXPECT_EQ(found->data() == tensor.data(), copies.empty());
      }
      const bool ends_with_a_page =
          count * bytes == page || access != MappedFile::Access::read_only;
      EXPECT_EQ(copies.size(), ends_with_a_page ? 1u : 0u) << count;
    }
}

TEST(slack, copies_elements_at_odd_addresses) {
  const AlignedBytes memory(256);
  std::vector<taper::Region> copies;
  for (const index_t place : {0, 1, 2, 4}) {
    const Span<const std::byte> tensor(memory.data() + place, 128);
    const auto found = with_slack(tensor, {memory.data(), 256}, 4, copies);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->data() == tensor.data(), place % 4 == 0);
  }
  EXPECT_EQ(copies.size(), 2u);
}

}  // namespace
}  // namespace taper::test
