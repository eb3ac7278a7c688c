#include "taper/exporter/io/torch_legacy.h"

#include "taper/tests/exporter/io/io_testing.h"
#include "taper/tests/support/data.h"

namespace taper::io {
namespace {

// The pickles of a checkpoint, put together by hand. Opcodes: Lib/pickletools.py.
const std::string magic("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8\x50\x19.", 15);
const std::string version("\x80\x02M\xe9\x03.", 6);
const std::string system_info("\x80\x02}.", 4);

std::string text(const std::string& s) {
  return std::string("X") + static_cast<char>(s.size()) + std::string(3, '\0') + s;
}
std::string number(int n) { return std::string("K") + static_cast<char>(n); }
std::string tuple(const std::string& items) { return "(" + items + "t"; }
std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
std::string storage(const std::string& key = "7", const std::string& type = "FloatStorage") {
  return tuple(text("storage") + global("torch", type) + text(key) + text("cpu") + number(6) +
               "N") +
         "Q";
}
std::string tensor(int offset, const std::string& sizes, const std::string& strides) {
  return global("torch._utils", "_rebuild_tensor") +
         tuple(storage() + number(offset) + tuple(sizes) + tuple(strides)) + "R";
}
std::string dict(const std::string& items) { return "}(" + items + "u"; }

/// A checkpoint with one storage of six floats, 0 to 5.
Bytes checkpoint(const std::string& object) {
  std::string file =
      magic + version + system_info + "\x80\x02" + object + "." + "\x80\x02]" + text("7") + "a.";
  const int64_t count = 6;
  file.append(reinterpret_cast<const char*>(&count), 8);
  const float values[] = {0, 1, 2, 3, 4, 5};
  file.append(reinterpret_cast<const char*>(values), sizeof values);
  return bytes_of(file);
}

std::vector<float> floats(const Array& a) {
  return {a.values<float>().begin(), a.values<float>().end()};
}

TEST(torch_legacy, reads_tensors_with_offset_and_strides) {
  const std::string object =
      dict(text("w") + tensor(0, number(2) + number(3), number(3) + number(1)) +  //
           text("t") + tensor(0, number(3) + number(2), number(1) + number(3)) + text("last") +
           tensor(5, "", ""));
  const ArrayMap tensors = parse_torch_legacy(checkpoint(object), "x");
  EXPECT_EQ(floats(tensors.at("w")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(floats(tensors.at("t")), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(floats(tensors.at("last")), (std::vector<float>{5}));
}

TEST(torch_legacy, reads_complex_numbers_but_no_lazy_conjugates) {
  const auto complex_tensor = [](const std::string& notes) {
    const std::string hooks = global("collections", "OrderedDict") + tuple("") + "R";
    return dict(text("z") + global("torch._utils", "_rebuild_tensor_v2") +
                tuple(storage("7", "ComplexFloatStorage") + number(1) + tuple(number(2)) +
                      tuple(number(1)) + "\x89" + hooks + notes) +
                "R");
  };
  const auto complex_checkpoint = [&](const std::string& notes) {
    Bytes file = checkpoint(complex_tensor(notes));
    const int64_t count = 3;  // of six floats
    std::memcpy(file.data() + file.size() - 6 * sizeof(float) - 8, &count, 8);
    return file;
  };
  const Bytes file = complex_checkpoint("");
  const Array z = parse_torch_legacy(file, "x").at("z");
  EXPECT_EQ(z.dtype, DType::c64);
  EXPECT_EQ(z.values<Complex64>()[0].real, 2);
  EXPECT_EQ(z.values<Complex64>()[1].imag, 5);
  EXPECT_FILE_ERROR(parse_torch_legacy(complex_checkpoint(dict(text("conj") + "\x88")), "x"),
                    "tensor 'z' is a lazy conjugate; save x.resolve_conj()");
}

TEST(torch_legacy, descends_to_the_state_dict_and_cuts_the_prefix) {
  const std::string state = dict(text("module.w") + tensor(0, number(1), number(1)));
  const std::string object = dict(text("epoch") + number(3) + text("state_dict") + state);
  const ArrayMap tensors = parse_torch_legacy(checkpoint(object), "x", "module.");
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors.begin()->first, "w");
}

TEST(torch_legacy, executes_nothing) {
  const auto refused = [](const std::string& object, const char* why) {
    EXPECT_FILE_ERROR(parse_torch_legacy(checkpoint(object), "x"), why);
  };
  refused(global("os", "system") + tuple(text("true")) + "R", "refusing the global \"os.system\"");
  refused(global("models.yolo", "Model") + tuple("") + "R", "save model.state_dict() instead");
  refused("I1\n", "refusing the opcode 0x49");
  refused(dict(number(1)), "a dict gets a key without a value");
  refused(number(1) + dict(""), "leaves values on the stack");
  refused("h\x05", "recalls a value that was not remembered");
  refused("R", "takes a value from an empty stack");
  refused("t", "looks for a mark that is not there");
}

TEST(torch_legacy, refuses_tensors_that_reach_outside_their_storage) {
  const auto refused = [](const std::string& call) {
    EXPECT_FILE_ERROR(parse_torch_legacy(checkpoint(dict(text("w") + call)), "x"),
                      "tensor 'w' reaches outside its storage");
  };
  refused(tensor(1, number(2) + number(3), number(3) + number(1)));
  refused(tensor(0, number(2), number(6)));
  refused(tensor(0, number(200), number(0)));  // a broadcast that would grow the file
}

TEST(torch_legacy, refuses_other_files) {
  EXPECT_FILE_ERROR(parse_torch_legacy(bytes_of("PK\3\4..."), "x.pth"),
                    "x.pth: this is the zip form that PyTorch writes since 1.6");
  EXPECT_FILE_ERROR(parse_torch_legacy(bytes_of("GGUF"), "x"), "not a PyTorch checkpoint");
  EXPECT_FILE_ERROR(parse_torch_legacy(bytes_of("\x80\x02}."), "x"), "another pickle");
}

TEST(torch_legacy, refuses_every_shortened_file) {
  const Bytes whole = checkpoint(dict(text("w") + tensor(0, number(6), number(1))));
  EXPECT_EQ(parse_torch_legacy(whole, "x").size(), 1u);
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_THROW(parse_torch_legacy(std::span(whole).first(n), "x"), FileError) << n;
}

TEST(torch_legacy, reads_the_published_resnet_20) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "checkpoints/cifar10_resnet/resnet20-12fca82f.th");
  const ArrayMap tensors = read_torch_legacy(path, "module.");
  EXPECT_EQ(tensors.size(), 97u);
  EXPECT_EQ(tensors.at("conv1.weight").describe(), "f32 (16, 3, 3, 3)");
  EXPECT_EQ(tensors.at("linear.bias").describe(), "f32 (10,)");
}

}  // namespace
}  // namespace taper::io
