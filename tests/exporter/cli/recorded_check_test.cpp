// Recorded calls of several models, of buffers with several names, of halves and of training
// graphs.
#include <gmock/gmock.h>

#include <array>

#include "taper/exporter/io/safetensors.h"
#include "taper/tests/exporter/cli/programs.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tests::scratch_file;

std::string data(const std::string& name) { return tests::test_data(name).string(); }

/// The program of a model, as a file.
std::string exported(const std::string& model, const std::string& name,
                     const std::string& dtype = "") {
  const std::string program = scratch_file(name + ".taper").string();
  const Outcome o = dtype.empty() ? taper_command("export", model, "-o", program)
                                  : taper_command("export", model, "-o", program, "--dtype", dtype);
  EXPECT_EQ(o.code, success) << o.err;
  return program;
}

std::string changed(const std::string& recorded, const std::string& key, io::Array array) {
  io::SafeTensors calls = io::read_safetensors(recorded);
  calls.tensors[key] = std::move(array);
  const std::string file = scratch_file("changed.safetensors").string();
  io::write_safetensors(file, calls);
  return file;
}

// ---- several models in one archive

const std::string several = "recorded/several_models.pt2",
                  of_several = "recorded/several_models.io.safetensors";

TEST(recorded_check, makes_the_calls_of_every_model) {
  const Outcome o = taper_command("check", data(several), data(of_several));
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("ok    decoder, mul"), HasSubstr("ok    encoder, mul"),
                           HasSubstr("2 recorded calls within")));
}

TEST(recorded_check, makes_the_calls_of_the_chosen_model) {
  const Outcome o = taper_command("check", data(several), data(of_several), "--model", "encoder");
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("ok    mul"), HasSubstr("1 recorded call within")));
}

TEST(recorded_check, says_which_models_are_recorded) {
  const Outcome o = taper_command("check", data(several), data(of_several), "--model", "absent");
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("no call of absent; it records calls of decoder, encoder"));
}

TEST(recorded_check, says_which_of_several_models_is_wrong) {
  io::Array wrong = io::read_safetensors(data(of_several)).at("encoder.set0.output.0").clone();
  wrong.values<float>()[0] += 1;
  const Outcome o = taper_command("check", data(several),
                                  changed(data(of_several), "decoder.set0.output.0", wrong));
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.out, AllOf(HasSubstr("WRONG decoder, mul"), HasSubstr("ok    encoder, mul")));
}

TEST(recorded_check, refuses_models_of_which_a_program_has_no_method) {
  const std::string program = scratch_file("encoder.taper").string();
  ASSERT_EQ(taper_command("export", data(several), "--model", "encoder", "-o", program).code,
            success);
  const Outcome o = taper_command("check", program, data(of_several));
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr(program + " has no method decoder, but " + data(of_several) +
                               " records calls of decoder, encoder; choose those of one with "
                               "--model"));
  EXPECT_EQ(taper_command("check", program, data(of_several), "--model", "encoder").code, success);
}

TEST(recorded_check, takes_the_method_that_is_called_like_the_model) {
  const std::string program =
      tests::write_program("several.taper", {"graph encoder\ninput \"x\" = %x: f32[3]\n%y: f32[3] "
                                             "= mul.Scalar(%x, 2)\noutput \"y\" = %y\n",
                                             "graph decoder\ninput \"x\" = %x: f32[3]\n%y: f32[3] "
                                             "= mul.Scalar(%x, 3)\noutput \"y\" = %y\n"})
          .string();
  const Outcome all = taper_command("check", program, data(of_several));
  EXPECT_EQ(all.code, success) << all.err;
  EXPECT_THAT(all.out, HasSubstr("2 recorded calls within"));
  for (const char* name : {"encoder", "decoder"}) {
    const Outcome one = taper_command("check", program, data(of_several), "--method", name);
    EXPECT_EQ(one.code, success) << one.err;
    EXPECT_THAT(one.out, HasSubstr("1 recorded call within"));
  }
}

// ---- constants among the arguments

TEST(recorded_check, skips_constants_where_only_one_choice_of_inputs_is_left) {
  const std::string program =
      tests::write_program("doubled.taper", {"graph forward\ninput \"x\" = %x: f32[2]\n%y: f32[2] "
                                             "= mul.Scalar(%x, 2)\noutput \"y\" = %y\n"})
          .string();
  const auto check = [&](io::Array constant) {
    io::SafeTensors calls;
    calls.tensors["set0.input.0"] = std::move(constant);
    calls.tensors["set0.input.1"] = io::Array::of<float>({2}, std::array<float, 2>{1, 2});
    calls.tensors["set0.output.0"] = io::Array::of<float>({2}, std::array<float, 2>{2, 4});
    const std::string file = scratch_file("calls.safetensors").string();
    io::write_safetensors(file, calls);
    return taper_command("check", program, file);
  };
  for (const io::Array& other :
       {io::Array::zeros(DType::f32, {3}), io::Array::zeros(DType::i64, {2}),
        io::Array::zeros(DType::f32, {})})
    EXPECT_EQ(check(other.clone()).code, success) << other.describe();
  const Outcome both_fit = check(io::Array::of<float>({2}, std::array<float, 2>{1, 2}));
  EXPECT_EQ(both_fit.code, failure);
  EXPECT_THAT(both_fit.err, HasSubstr("2 arguments"));
}

// ---- a buffer with several names

const std::string names = "recorded/buffer_with_three_names";

TEST(recorded_check, compares_a_buffer_with_several_names_by_its_one_state) {
  const std::string model = data(names + ".pt2"), calls = data(names + ".io.safetensors");
  for (const std::string& file : {model, exported(model, "names")}) {
    const Outcome o = taper_command("check", file, calls);
    EXPECT_EQ(o.code, success) << file << o.err;
    EXPECT_THAT(o.out, HasSubstr("ok    state alias  0 of the largest"));
    EXPECT_THAT(o.out, HasSubstr("ok    state total  recorded as a part of alias"));
    EXPECT_THAT(o.out, HasSubstr("ok    state first  recorded as a part of alias"));
  }
}

TEST(recorded_check, does_not_take_another_buffer_for_a_name_of_a_state) {
  const std::string model = data(names + ".pt2"), calls = data(names + ".io.safetensors");
  const Outcome o =
      taper_command("check", exported(model, "names"),
                    changed(calls, "set1.buffer.total", io::Array::zeros(DType::f32, {3})));
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("no state total"));
}

TEST(taper, refuses_bounds_of_sizes_for_a_program) {
  const std::string program = exported(tests::linear_model(), "bounded"),
                    calls = data("pt2/v2_9_linear.io.safetensors");
  for (const Outcome& o : {taper_command("check", program, "--dim", "batch=1..4"),
                           taper_command("check", program, calls, "--dim", "batch=1..4"),
                           taper_command("inspect", program, "--dim", "batch=1..4")}) {
    EXPECT_EQ(o.code, usage);
    EXPECT_THAT(o.err, HasSubstr("its sizes were bounded when it was exported"));
  }
}

// ---- tolerances

TEST(recorded_check, allows_halves_what_their_roundings_take) {
  const std::string model = data("recorded/in_halves.pt2"),
                    calls = data("recorded/in_halves.io.safetensors");
  io::Array near = io::read_safetensors(calls).at("set0.output.0").clone();
  for (float& x : near.values<float>()) x *= 1.01f;
  const std::string recorded = changed(calls, "set0.output.0", near);
  for (const std::string& file : {model, exported(model, "halves")}) {
    const Outcome o = taper_command("check", file, recorded);
    EXPECT_EQ(o.code, success) << o.out << o.err;
    EXPECT_THAT(o.out, HasSubstr("1 recorded call within 0.02"));
    EXPECT_EQ(taper_command("compare", file, recorded).code, success);
    EXPECT_EQ(taper_command("check", file, recorded, "--tolerance", "1e-3").code, failure);
    EXPECT_EQ(taper_command("compare", file, recorded, "--tolerance", "1e-3").code, failure);
  }
}

TEST(recorded_check, allows_f32_a_ten_thousandth) {
  const std::string calls = data("pt2/v2_9_linear.io.safetensors");
  io::Array near = io::read_safetensors(calls).at("set0.output.0").clone();
  for (float& x : near.values<float>()) x *= 1.01f;
  const std::string recorded = changed(calls, "set0.output.0", near);
  EXPECT_THAT(taper_command("check", tests::linear_model(), recorded).out,
              HasSubstr("of the largest magnitude, more than 0.0001: element"));
  // weights in halves
  const std::string model = data("pt2/weights_of_all_kinds.pt2");
  EXPECT_THAT(taper_command("check", exported(model, "halves", "f16"),
                            data("pt2/weights_of_all_kinds.io.safetensors"))
                  .out,
              HasSubstr("within 0.02"));
}

TEST(recorded_check, compares_complex_numbers_by_their_magnitude) {
  const std::string model = data("pt2/complex_numbers.pt2"),
                    calls = data("pt2/complex_numbers.io.safetensors");
  for (const std::string& file : {model, exported(model, "complex")}) {
    const Outcome o = taper_command("check", file, calls);
    EXPECT_EQ(o.code, success) << o.out << o.err;
    EXPECT_THAT(o.out, HasSubstr("within 0.0001"));
  }
  io::Array far = io::read_safetensors(calls).at("set0.output.0").clone();
  far.values<Complex64>()[0].imag += 0.1f;
  const Outcome o = taper_command("check", model, changed(calls, "set0.output.0", far));
  EXPECT_NE(o.code, success);
  EXPECT_THAT(o.out, testing::ContainsRegex("element 0 of call 0 is .*j, not .*j"));
}

/// The weights are int8, the computation is f32.
TEST(recorded_check, allows_int8_weights_what_f32_takes) {
  const std::string model = data("pt2/torchao_int8.pt2"),
                    calls = data("pt2/torchao_int8.io.safetensors");
  for (const std::string& file : {model, exported(model, "int8")}) {
    const Outcome o = taper_command("check", file, calls);
    EXPECT_EQ(o.code, success) << o.out << o.err;
    EXPECT_THAT(o.out, HasSubstr("within 0.0001"));
  }
}

/// Two results: 2 x, and x - y, whose terms cancel.
TEST(recorded_check, allows_what_rounding_leaves_of_terms_that_cancel) {
  const std::string program =
      tests::write_program(
          "cancel.taper",
          {"graph forward\ninput \"x\" = %x: f32[2]\ninput \"y\" = %y: f32[2]\n%a: f32[2] = "
           "mul.Scalar(%x, 2)\n%b: f32[2] = sub.Tensor(%x, %y, 1)\noutput \"double\" = "
           "%a\noutput \"rest\" = %b\n"})
          .string();
  // x and the difference that is expected, in units of which the results have some
  const auto check = [&](float x, float rest) {
    io::SafeTensors calls;
    calls.tensors["set0.input.0"] = io::Array::of<float>({2}, std::array<float, 2>{x, x});
    calls.tensors["set0.input.1"] = io::Array::of<float>({2}, std::array<float, 2>{x, x});
    calls.tensors["set0.output.0"] = io::Array::of<float>({2}, std::array<float, 2>{2 * x, 2 * x});
    calls.tensors["set0.output.1"] = io::Array::of<float>({2}, std::array<float, 2>{rest, 0});
    const std::string file = scratch_file("calls.safetensors").string();
    io::write_safetensors(file, calls);
    EXPECT_EQ(taper_command("compare", file, program).code,
              taper_command("check", program, file).code);
    return taper_command("check", program, file);
  };
  const Outcome rounding = check(1, 9e-7f);
  EXPECT_EQ(rounding.code, success) << rounding.out;
  EXPECT_THAT(rounding.out, HasSubstr("ok    rest  differs by 9e-07, which is rounding"));
  EXPECT_EQ(check(1, 2e-6f).code, failure);
  EXPECT_EQ(check(1000, 2e-6f).code, failure);   // other results do not excuse more
  EXPECT_EQ(check(1e-3f, 9e-7f).code, failure);  // if all are small, less is rounding
}

// ---- training graphs

TEST(recorded_check, takes_training_graphs_with_absent_gradients) {
  const std::string model = data("pt2/frozen_in_training.pt2"),
                    calls = data("pt2/frozen_in_training.io.safetensors");
  for (const std::string& file : {model, exported(model, "frozen")}) {
    const Outcome o = taper_command("check", file, calls);
    EXPECT_EQ(o.code, success) << o.out << o.err;
    EXPECT_THAT(o.out, HasSubstr(".grad"));
  }
}

/// (x, None, 2 x) as PyTorch gives it.
TEST(recorded_check, takes_an_empty_tensor_for_an_absent_result) {
  const std::string model = data("recorded/absent_result.pt2"),
                    calls = data("recorded/absent_result.io.safetensors");
  for (const std::string& file : {model, exported(model, "absent")}) {
    EXPECT_EQ(taper_command("check", file, calls).code, success) << file;
    const std::string empty = changed(calls, "set0.output.1", io::Array::zeros(DType::f32, {0}));
    const Outcome o = taper_command("check", file, empty);
    EXPECT_EQ(o.code, success) << o.out << o.err;
  }
  const Outcome o = taper_command(
      "check", model, changed(calls, "set0.output.1", io::Array::zeros(DType::f32, {2})));
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.out, HasSubstr("WRONG result 1  absent, not f32 (2,)"));
}

/// Such a recording has the new buffers in front of the results.
TEST(recorded_check, leaves_out_the_buffers_that_a_training_graph_gives_first) {
  const std::string calls = data("recorded/absent_result.io.safetensors");
  io::SafeTensors file = io::read_safetensors(calls), shifted;
  for (const auto& [key, array] : file.tensors) {
    const std::string output = "set0.output.";
    const bool is_output = key.starts_with(output);
    shifted.tensors[is_output ? output + std::to_string(std::stoi(key.substr(output.size())) + 2)
                              : key] = array;
  }
  for (const char* key : {"set0.output.0", "set0.output.1"})
    shifted.tensors[key] = io::Array::zeros(DType::f32, {7});
  const std::string recorded = scratch_file("shifted.safetensors").string();
  io::write_safetensors(recorded, shifted);
  const std::string model = data("recorded/absent_result.pt2");
  for (const std::string& program : {model, exported(model, "absent")}) {
    const Outcome o = taper_command("check", program, recorded);
    EXPECT_EQ(o.code, success) << o.out << o.err;
  }
}

}  // namespace
}  // namespace taper::cli
