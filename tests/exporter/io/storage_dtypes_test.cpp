// Files that hold u16, u32, u64 and floats of 8 bits.
#include "taper/exporter/io/element.h"
#include "taper/exporter/io/file.h"
#include "taper/exporter/io/npy.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/exporter/io/torch_checkpoint.h"
#include "taper/kernels/float8.h"
#include "taper/tests/exporter/io/io_testing.h"
#include "taper/tests/support/data.h"

namespace taper::io {
namespace {

const std::vector<std::pair<std::string, DType>> dtypes = {{"f8_e4m3fn", DType::f8_e4m3fn},
                                                           {"f8_e5m2", DType::f8_e5m2},
                                                           {"u16", DType::u16},
                                                           {"u32", DType::u32},
                                                           {"u64", DType::u64}};

std::filesystem::path recorded(const std::string& name) {
  return tests::test_data("storage_dtypes/" + name);
}
/// 1, 2 and then 200, which floats of 8 bits round, or the largest u64.
void expect_recorded_values(const Array& array, DType dtype) {
  EXPECT_EQ(array.dtype, dtype);
  EXPECT_EQ(array.sizes, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(element(array, 0), 1);
  EXPECT_EQ(element(array, 1), 2);
  EXPECT_EQ(element(array, 2), dtype == DType::u64 ? 0x1p64 : is_float8(dtype) ? 192 : 200);
}

TEST(storage_dtypes, are_read_from_checkpoints_of_pytorch) {
  const Bytes file = read_file(recorded("checkpoint.pt"));
  const auto tensors = parse_torch_checkpoint(file, "checkpoint.pt");
  ASSERT_EQ(tensors.size(), dtypes.size());
  for (const auto& [name, dtype] : dtypes)
    expect_recorded_values(tensors.at(name).to_array(), dtype);
}
TEST(storage_dtypes, are_read_and_written_as_npy) {
  for (const char* name : {"u16", "u32", "u64"}) {
    const Bytes file = read_file(recorded(std::string(name) + ".npy"));
    const Array array = parse_npy(file, name);
    EXPECT_EQ(name_of(array.dtype), std::string(name));
    expect_recorded_values(array, array.dtype);
    EXPECT_EQ(element(parse_npy(format_npy(array), name), 2), element(array, 2));
  }
  EXPECT_THROW(format_npy(Array::zeros(DType::f8_e4m3fn, {1})), FileError);
}
TEST(storage_dtypes, are_written_and_read_as_safetensors) {
  SafeTensors content;
  for (const auto& [name, dtype] : dtypes) {
    content.tensors[name] = Array::zeros(dtype, {5});
    for (size_t i = 0; i < content.tensors[name].raw().size(); ++i)
      content.tensors[name].raw()[i] = static_cast<std::byte>(i * 7);
  }
  const std::filesystem::path path = tests::scratch_file("all.safetensors");
  write_safetensors(path, content);
  const SafeTensors back = read_safetensors(path);
  for (const auto& [name, array] : content.tensors) {
    EXPECT_EQ(back.at(name).dtype, array.dtype);
    EXPECT_TRUE(std::ranges::equal(back.at(name).raw(), array.raw()));
  }
}

}  // namespace
}  // namespace taper::io
