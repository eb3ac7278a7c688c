// `taper quantize`, and the options of other commands that quantize.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "taper/exporter/data/images.h"
#include "taper/exporter/data/loader.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/io/png.h"
#include "taper/exporter/io/safetensors.h"
#include "taper/tests/exporter/cli/taper_command.h"
#include "taper/tests/support/page.h"

namespace taper::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string scratch(const std::string& name) { return tests::scratch_file(name).string(); }

TEST(taper_quantize, says_what_became_of_each_weight) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  const std::string program = scratch("lenet.taper");
  const Outcome o =
      taper_command("quantize", model.string(), "--recipe", "int4-g32", "-o", program);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("fc2.weight (84, 120), rows padded to 128"));
  EXPECT_THAT(o.out, HasSubstr("left 2 weights, 10.2 kB: no kernel reads weights of convolutions"));
  EXPECT_THAT(o.out,
              HasSubstr("int4-g32: 3 weights of 5 in 5.10 bits an element, all weights 176.8 "
                        "kB -> 36.7 kB\n"));
  EXPECT_THAT(o.out, HasSubstr("3 taper::block_linear_q8"));
  // its test expects what the quantized model gives
  const Outcome check = taper_command("check", program);
  EXPECT_EQ(check.code, success) << check.err;
  EXPECT_THAT(check.out, HasSubstr("1 test passed"));
}

TEST(taper_quantize, prunes_and_says_what_it_is_worth) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(digits, "pt2/lenet.io.safetensors");
  const std::string program = scratch("pruned.taper"), whole = scratch("whole.taper");
  const Outcome o =
      taper_command("quantize", model.string(), "--prune", "magnitude", "-o", program);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("fc1.weight (120, 256)\n"));
  EXPECT_THAT(o.out, HasSubstr("magnitude 2:4: 5 weights of 5, "));
  EXPECT_THAT(o.out, HasSubstr("zeros take as many bytes and as much time as other numbers"));
  EXPECT_THAT(taper_command("check", program).out, HasSubstr("1 test passed"));
  ASSERT_EQ(taper_command("export", model.string(), "-o", whole).code, success);
  EXPECT_EQ(std::filesystem::file_size(program), std::filesystem::file_size(whole));

  // then the zeros become integers, which are zero, too
  const auto pruned = [&](const std::string& method, const std::string& pattern,
                          const std::string& recipe) {
    const Outcome r = taper_command("quantize", model.string(), "--prune", method, "--sparsity",
                                    pattern, "--prune-exclude", "conv*", "--recipe", recipe,
                                    "--calibrate", digits.string(), "-o", program);
    EXPECT_EQ(r.code, success) << r.err;
    EXPECT_THAT(r.out, HasSubstr("left 2 weights: it is excluded"));
    EXPECT_THAT(r.out, Not(HasSubstr("warning")));
    EXPECT_THAT(taper_command("check", program).out, HasSubstr("1 test passed"));
    return r.out;
  };
  EXPECT_THAT(pruned("wanda", "0.5", "int8"), HasSubstr("wanda 0.5: 3 weights of 5"));
  EXPECT_THAT(pruned("sparsegpt", "2:4", "int8-weights"), HasSubstr("sparsegpt 2:4: 3 weights"));
  EXPECT_THAT(pruned("wanda", "0.25:4x8", "int8-weights"), HasSubstr("wanda 0.25:4x8: 3 weights"));
}

TEST(taper_quantize, widens_convolutions_if_the_recipe_says_so) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/resnet20.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(recorded, "pt2/resnet20.io.safetensors");
  const std::string program = scratch("small.taper"), recipe = scratch("small.json");
  std::ofstream(recipe)
      << R"([{"match": "*", "scheme": {"weights": "int4", "activations": "float", "widen": true}}])";
  const auto expect_small = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"quantize", model.string(), "--recipe", recipe, "-o", program};
    all.insert(all.end(), more.begin(), more.end());
    std::ostringstream out, err;
    ASSERT_EQ(run(all, out, err), success) << err.str();
    EXPECT_THAT(out.str(), HasSubstr("q4_1 mse, widened"));
    EXPECT_THAT(out.str(), Not(HasSubstr("batch_norm")));
    EXPECT_THAT(taper_command("check", program).out, HasSubstr("1 test passed"));
  };
  expect_small({});
  EXPECT_LT(std::filesystem::file_size(program), 320000u);  // of 1.2 MB in f32
  expect_small({"--target-accuracy", "cosine >= 0.995", "--evaluate", recorded.string()});
}

TEST(taper_quantize, multiplies_floats_if_the_recipe_or_the_export_says_so) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  const std::string program = scratch("lenet.taper");
  EXPECT_THAT(
      taper_command("quantize", model.string(), "--recipe", "int8-weights", "-o", program).out,
      HasSubstr("3 taper::block_linear,"));
  EXPECT_THAT(
      taper_command("quantize", model.string(), "--recipe", "mixed", "--exact", "-o", program).out,
      HasSubstr("3 taper::block_linear,"));
  EXPECT_THAT(
      taper_command("export", model.string(), "--recipe", "int8-dynamic", "-o", program).out,
      HasSubstr("3 taper::block_linear_q8,"));
}

TEST(taper_quantize, learns_from_data_in_each_form) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(recorded, "pt2/lenet.io.safetensors");
  std::vector<float> pixels(50 * 28 * 28);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 251) / 251;
  const std::string array = npy("images.npy", {50, 1, 28, 28}, pixels),
                    named = scratch("named.safetensors");
  io::SafeTensors file;
  file.tensors["x"] = io::read_npy(array);
  io::write_safetensors(named, file);
  const std::string pictures = scratch("pictures");
  std::filesystem::create_directories(pictures);
  for (const char* name : {"a.png", "b.png"}) {
    std::vector<uint8_t> grey(28 * 28);
    for (size_t i = 0; i < grey.size(); ++i) grey[i] = static_cast<uint8_t>(i * 37);
    io::write_png(pictures + "/" + name, io::Array::of<uint8_t>({28, 28, 1}, grey));
  }
  for (const std::string& data : {recorded.string(), array, named, named + ":x", pictures}) {
    const Outcome o = taper_command("quantize", model.string(), "--recipe", "int4-g32", "-o",
                                    scratch("lenet.taper"), "--calibrate", data);
    EXPECT_EQ(o.code, success) << data << ": " << o.err;
    EXPECT_THAT(o.out, HasSubstr("q4_1 gptq")) << data;
    EXPECT_THAT(o.out, HasSubstr("calibrated with")) << data;
  }
}

TEST(taper_quantize, writes_a_page_that_needs_no_other_file) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  const std::string page = scratch("lenet.html");
  const Outcome o = taper_command("quantize", model.string(), "--recipe", "int4-g32", "-o",
                                  scratch("lenet.taper"), "--report", page);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("wrote " + page));
  const std::string html = content(page);
  for (const char* reference : {" src=", " href=", "@import", "url(http", "fetch(", "import "})
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  const auto data = tests::data_of(html);
  ASSERT_EQ(data["weights"].size(), 5u);
  // from the most harmed; those that were left stand at the end
  EXPECT_EQ(data["weights"][0]["path"], "fc2.weight");
  EXPECT_LE(data["weights"][0]["sqnr_db"], data["weights"][1]["sqnr_db"]);
  EXPECT_EQ(data["weights"][0]["histogram"].size(), 41u);
  int64_t errors = 0;
  for (const int64_t count : data["weights"][0]["histogram"]) errors += count;
  EXPECT_EQ(errors, 84 * 128);
  EXPECT_EQ(data["weights"][4]["scheme"], "");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(data["weights"][i]["us"].is_number()) << i;
    EXPECT_GT(data["weights"][i]["us"], 0) << "the module of a weight takes some time";
  }
}

TEST(taper_quantize, writes_a_page_about_static_integers) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(recorded, "pt2/lenet.io.safetensors");
  const std::string page = scratch("lenet8.html");
  const Outcome o =
      taper_command("quantize", model.string(), "--recipe", "int8", "-o", scratch("lenet8.taper"),
                    "--calibrate", recorded.string(), "--report", page);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("wrote " + page));
  const std::string html = content(page), begin = "id=\"data\">";
  for (const char* reference : {" src=", " href=", "@import", "url(http", "fetch(", "import "})
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  const size_t from = html.find(begin) + begin.size();
  const auto data = nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from));
  ASSERT_EQ(data["nodes"].size(), 5u);  // two convolutions and three products
  double shares = 0;
  for (const auto& node : data["nodes"]) {
    shares += node["share"].get<double>();
    EXPECT_EQ(node["range"]["counts"].size(), 48u) << node["name"];
    EXPECT_LT(node["range"]["clipped"], 0.05) << node["name"];
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_GE(data["nodes"][0]["share"], data["nodes"][4]["share"]);
  EXPECT_EQ(data["floats"][0]["why"], "its result is an output of the model");
}

TEST(taper_quantize, writes_a_page_about_zeros) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(recorded, "pt2/lenet.io.safetensors");
  const std::string page = scratch("lenet0.html");
  for (const bool learns : {false, true}) {
    std::vector<std::string> arguments = {"quantize",
                                          model.string(),
                                          "--prune",
                                          learns ? "wanda" : "magnitude",
                                          "-o",
                                          scratch("lenet0.taper"),
                                          "--prune-exclude",
                                          "fc3*",
                                          "--report",
                                          page};
    if (learns) arguments.insert(arguments.end(), {"--calibrate", recorded.string()});
    std::ostringstream out, err;
    EXPECT_EQ(run(arguments, out, err), success) << err.str();
    EXPECT_THAT(out.str(), HasSubstr("wrote " + page));
    const std::string html = content(page);
    for (const char* reference : {" src=", " href=", "@import", "url(http", "fetch(", "import "})
      EXPECT_THAT(html, Not(HasSubstr(reference)));
    const auto data = tests::data_of(html);
    EXPECT_EQ(data["method"], learns ? "wanda" : "magnitude");
    EXPECT_EQ(data["title"], learns ? "lenet.pt2, wanda 2:4" : "lenet.pt2, magnitude 2:4");
    EXPECT_THAT(data["facts"][0].get<std::string>(), HasSubstr("4 weights of 5"));
    ASSERT_EQ(data["weights"].size(), 5u);
    for (size_t i = 0; i < 4; ++i) {
      const auto& w = data["weights"][i];
      EXPECT_EQ(w["has_output"], learns);
      EXPECT_GE(w["zeros"], w["elements"].get<double>() * 0.48) << w["path"];
      EXPECT_EQ(w["after"], w["elements"].get<int64_t>() * 4);  // f32
      if (i > 0) {
        EXPECT_GE(w["harm_db"], data["weights"][i - 1]["harm_db"]);
      }
    }
    EXPECT_EQ(data["weights"][4]["path"], "fc3.weight");
    EXPECT_EQ(data["weights"][4]["why"], "it is excluded");
  }
}

TEST(taper_quantize, takes_language_models) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/smollm");
  const std::string program = scratch("smollm.taper"), tokens = scratch("tokens.safetensors");
  io::SafeTensors file;
  std::vector<int64_t> ids(300);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 7 % 256);
  file.tensors["ids"] = io::Array::of<int64_t>({10, 30}, std::span<const int64_t>(ids));
  io::write_safetensors(tokens, file);
  const Outcome o = taper_command("quantize", folder.string(), "--recipe", "int4-g32", "-o",
                                  program, "--context", "64", "--calibrate", tokens);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("14 weights of 15"));
  EXPECT_THAT(o.out, HasSubstr("calibrated with 10 samples"));
  EXPECT_THAT(o.out, HasSubstr("a context of 64 tokens takes"));
  const Outcome exported =
      taper_command("export", folder.string(), "--recipe", "int8-weights", "-o", program);
  EXPECT_EQ(exported.code, success) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("int8-weights: 14 weights of 15"));
  EXPECT_THAT(exported.out, Not(HasSubstr("SQNR")));
}

TEST(taper_quantize, takes_experts) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/mixtral");
  const std::string program = scratch("mixtral.taper"), tokens = scratch("tokens.safetensors");
  io::SafeTensors file;
  std::vector<int64_t> ids(120);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 7 % 256);
  file.tensors["ids"] = io::Array::of<int64_t>({4, 30}, std::span<const int64_t>(ids));
  io::write_safetensors(tokens, file);
  const Outcome o = taper_command("quantize", folder.string(), "--recipe", "int4-g32", "-o",
                                  program, "--context", "64", "--calibrate", tokens);
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("layers.1.mlp.down.weight (4, 64, 64)"));
  EXPECT_THAT(o.out, HasSubstr("18 weights of 18"));
  EXPECT_THAT(o.out, HasSubstr("6 taper::grouped_block_linear_q8"));
  const Outcome timed = taper_command("profile", program);  // it runs
  EXPECT_EQ(timed.code, success) << timed.err;
}

/// A copy of a model, beside a tokenizer that reads each printable byte as a token.
std::string with_tokenizer(const std::filesystem::path& model) {
  const std::filesystem::path folder = tests::scratch_file("model");
  std::filesystem::create_directories(folder);
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(model / file, folder / file,
                               std::filesystem::copy_options::overwrite_existing);
  nlohmann::json vocabulary = {{"\u0120", 0}, {"\u010a", 1}};  // blank, end of line
  for (char c = '!'; c <= '~'; ++c) vocabulary[std::string(1, c)] = c;
  const nlohmann::json bytes = {{"type", "ByteLevel"},
                                {"add_prefix_space", false},
                                {"trim_offsets", true},
                                {"use_regex", true}};
  std::ofstream(folder / "tokenizer.json") << nlohmann::json{
      {"version", "1.0"},
      {"added_tokens", nlohmann::json::array()},
      {"pre_tokenizer", bytes},
      {"decoder", bytes},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}}};
  return folder.string();
}

TEST(taper_quantize, learns_from_a_text) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/qwen2");
  const std::string model = with_tokenizer(folder), text = scratch("story.txt");
  std::ofstream story(text);
  for (int i = 0; i < 50; ++i) story << "Once upon a time, there was a cat with a hat.\n";
  story.close();
  const Outcome o = taper_command("quantize", model, "--recipe", "int4-g32", "-o",
                                  scratch("m.taper"), "--calibrate", text, "--samples", "3");
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("q4_1 gptq"));
  EXPECT_THAT(o.out, HasSubstr("calibrated with 3 samples"));
  const Outcome none = taper_command("quantize", folder.string(), "--recipe", "int4-g32", "-o",
                                     scratch("m.taper"), "--calibrate", text);
  EXPECT_THAT(none.err, HasSubstr("it has no tokenizer"));
  // caches of several texts
  const Outcome rows = taper_command("export", model, "--recipe", "int4-g32", "--parallel", "3",
                                     "-o", scratch("m.taper"), "--calibrate", text);
  EXPECT_EQ(rows.code, success) << rows.err;
  EXPECT_THAT(rows.out, testing::Not(HasSubstr("warning: " + text)));
}

TEST(taper_quantize, refuses_texts_that_say_nothing) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/qwen2");
  const std::string model = with_tokenizer(folder), text = scratch("short.txt");
  const auto of_text = [&](const std::string& content, auto... options) {
    std::ofstream(text) << content;
    return taper_command("export", model, "-o", scratch("m.taper"), "--calibrate", text,
                         options...);
  };
  for (const char* content : {"", "x"})
    for (const auto& [option, value] :
         {std::pair("--prune", "wanda"), std::pair("--recipe", "int4-g32")})
      EXPECT_THAT(of_text(content, option, value).err, HasSubstr("which teaches nothing"))
          << option << " " << content;
  const Outcome few = of_text("Once upon a time", "--prune", "wanda");
  EXPECT_EQ(few.code, success) << few.err;
  EXPECT_THAT(few.out, HasSubstr("short.txt has only 16 tokens; the model learns little below"));
}

/// The first digits of the test set of MNIST, with their labels.
std::string labelled_digits(const std::filesystem::path& mnist, int64_t count) {
  const data::Images digits = data::mnist(mnist / "t10k").normalize({.1307f}, {.3081f});
  data::Loader loader(digits.range(0, count), {.batch_size = count});
  io::SafeTensors file;
  for (auto [images, labels] : loader) {
    file.tensors["x"] = eager::array_of(images);
    file.tensors["labels"] = eager::array_of(labels);
  }
  io::write_safetensors(scratch("digits.safetensors"), file);
  return scratch("digits.safetensors");
}

TEST(taper_quantize, gives_layers_the_bits_that_an_accuracy_needs) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(mnist, "datasets/mnist");
  const std::string model = path.string(), digits = labelled_digits(mnist, 400),
                    recipe = scratch("least.json"), program = scratch("lenet.taper");
  // two bits where rows allow that, which is too few
  std::ofstream(recipe) << R"([{"match": "*", "scheme": {"weights": ["q2_k", "q4_0"],
                                                         "method": "nearest"}}])";
  const Outcome o = taper_command("quantize", model, "--recipe", recipe, "-o", program,
                                  "--evaluate", digits, "--target-accuracy", "cosine >= 0.998");
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("cosine >= 0.998, measured "));
  EXPECT_THAT(o.out, HasSubstr("<- written\n"));
  EXPECT_THAT(o.out, HasSubstr("too much\n"));
  EXPECT_EQ(taper_command("check", program).code, success);
  // LeNet reads 98.1 % of all digits
  const Outcome easy = taper_command("quantize", model, "--recipe", "int8", "--calibrate", digits,
                                     "-o", program, "--target-accuracy", "top-1>=0.97");
  EXPECT_EQ(easy.code, success) << easy.err;
  EXPECT_THAT(easy.out,
              HasSubstr("top-1 >= 0.97, measured 2 times; weights and results of nodes:"));
}

TEST(taper_quantize, asks_a_command_how_good_a_program_is) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "pt2/lenet.pt2");
  const std::string program = scratch("lenet.taper");
  const auto with_goal = [&](const std::string& goal) {
    return taper_command("quantize", path.string(), "--recipe", "int4-g32", "-o", program,
                         "--target-accuracy", goal);
  };
  // a strange measure, but one that is known: how large the file is
  const Outcome o = with_goal("wc -c < >= 90000");
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_GE(std::filesystem::file_size(program), 90000u);
  EXPECT_LE(std::filesystem::file_size(program), 180000u);
  EXPECT_THAT(with_goal("false >= 1").err, HasSubstr("the command `false '/"));
  EXPECT_THAT(with_goal("echo none; true >= 1").err, HasSubstr("must print a number at the end"));
}

TEST(taper_quantize, measures_the_perplexity_of_a_language_model) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/qwen2");
  const std::string model = with_tokenizer(folder), text = scratch("story.txt");
  std::ofstream(text) << "Once upon a time, there was a cat with a hat.\n";
  const auto with = [&](auto... options) {
    return taper_command("quantize", model, "--recipe", "int4-g32", "-o", scratch("m.taper"),
                         "--evaluate", text, "--target-accuracy", "perplexity <= 1e9", options...);
  };
  const Outcome o = with("--all-logits");
  EXPECT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("perplexity <= 1e+09, measured 2 times; weights that can be"));
  EXPECT_THAT(with().err, HasSubstr("language models have them with --all-logits"));
}

TEST(taper_quantize, refuses_goals_that_make_no_sense) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(recorded, "pt2/lenet.io.safetensors");
  const auto refusal = [&](const std::string& goal, auto... options) {
    const Outcome o = taper_command("quantize", path.string(), "--recipe", "int4-g32", "-o",
                                    scratch("m.taper"), "--target-accuracy", goal, options...);
    EXPECT_NE(o.code, success);
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
    return o.err;
  };
  for (const char* goal : {"0.9", "top-1", "top-1 >= ", ">= 3", "cosine >= x", "cosine >= nan"})
    EXPECT_THAT(refusal(goal), HasSubstr("is no goal; examples: ")) << goal;
  EXPECT_THAT(refusal("perplexity >= 5"), HasSubstr("perplexity must be at most a number: <="));
  EXPECT_THAT(refusal("top-1 <= 0.9"), HasSubstr("top-1 must be at least a number: >="));
  EXPECT_THAT(refusal("top-1 >= 0.9"), HasSubstr("top-1 is measured on data; name them"));
  const std::string data = recorded.string();
  EXPECT_THAT(refusal("top-1 >= 0.9", "--evaluate", data), HasSubstr("needs a tensor `labels`"));
  EXPECT_THAT(refusal("perplexity <= 9", "--evaluate", data),
              HasSubstr("perplexity needs a model that takes tokens"));
  EXPECT_THAT(refusal("cosine >= 1.5", "--evaluate", data),
              HasSubstr("so nothing meets the goal of at least 1.5"));
}

TEST(taper_generate, quantizes_a_model_while_it_loads) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/qwen2");
  const std::string model = with_tokenizer(folder);
  const auto answer = [&](auto... options) {
    return taper_command("generate", model, "--prompt", "a cat", "--greedy", "--max-tokens", "8",
                         "--json", options...);
  };
  const Outcome floats = answer(), int8 = answer("--quantize", "int8"),
                int4 = answer("--quantize", "int4"), wrong = answer("--quantize", "int3");
  EXPECT_EQ(int8.code, success) << int8.err;
  EXPECT_EQ(int4.code, success) << int4.err;
  EXPECT_EQ(nlohmann::json::parse(int4.out)["ids"].size(), 8u);
  EXPECT_EQ(nlohmann::json::parse(int8.out)["ids"][0], nlohmann::json::parse(floats.out)["ids"][0]);
  EXPECT_THAT(wrong.err, HasSubstr("there is no recipe int3"));
}

TEST(taper_quantize, refuses_a_model_that_is_quantized) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "hf_tiny/gguf/llama3-Q4_0.gguf");
  const Outcome o =
      taper_command("quantize", model.string(), "--recipe", "int4-g32", "-o", scratch("m.taper"));
  EXPECT_EQ(o.code, failure);
  EXPECT_THAT(o.err, HasSubstr("recipe int4-g32 quantizes nothing: it is quantized already"));
}

TEST(taper_quantize, refuses_what_would_make_a_bad_model) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, "pt2/lenet.pt2");
  const std::string model = path.string(), program = scratch("lenet.taper");
  const auto refusal = [&](auto... options) {
    const Outcome o = taper_command("quantize", model, "-o", program, options...);
    EXPECT_NE(o.code, success);
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
    return o.err;
  };
  EXPECT_THAT(refusal(), HasSubstr("--recipe"));
  EXPECT_THAT(refusal("--recipe", "int3"), HasSubstr("there is no recipe int3"));
  const std::string recipe = scratch("recipe.json");
  const auto with_rules = [&](const std::string& rules) {
    std::ofstream(recipe) << rules;
    return refusal("--recipe", recipe);
  };
  EXPECT_THAT(with_rules("[{]"), HasSubstr("it is no JSON"));
  EXPECT_THAT(with_rules(R"([{"match": "x*", "scheme": "int4"}])"),
              HasSubstr("matches no weight of the model, such as conv1.weight"));
  EXPECT_THAT(with_rules(R"([{"match": "conv*", "scheme": "int4"}])"),
              HasSubstr("quantizes nothing: no kernel reads weights of convolutions in blocks"));
  EXPECT_THAT(with_rules(R"([{"match": "*", "scheme": {"weights": "int4", "method": "gptq"}}])"),
              HasSubstr("weight fc1.weight: the method gptq needs calibration data"));
  EXPECT_THAT(refusal("--recipe", "int4-g32", "--calibrate", "none.npy"), HasSubstr("none.npy"));
  EXPECT_THAT(refusal("--recipe", "int4-g32", "--calibrate", model),
              HasSubstr("is no calibration data; give .safetensors, .npy, a folder of pictures"));
  EXPECT_THAT(refusal("--recipe", "int4-g32", "--calibrate", npy("a.npy", {4}, {1, 2, 3, 4})),
              HasSubstr("f32 (4,) does not fit the input x: f32[x.0, 1, 28, 28]"));
  EXPECT_THAT(refusal("--recipe", "int4-g32", "--calibrate", npy("e.npy", {0, 1, 28, 28}, {})),
              HasSubstr("has no examples"));
  EXPECT_THAT(refusal("--recipe", "int4-g32", "--calibrate",
                      npy("n.npy", {1, 1, 28, 28}, std::vector<float>(784, NAN))),
              HasSubstr("is not finite for some of the data"));
  EXPECT_THAT(refusal("--recipe", "int4-g32", "--samples", "0", "--calibrate", "x.npy"),
              HasSubstr("--samples: it must be positive"));
  EXPECT_THAT(refusal("--recipe", "int4-g32", "--report", "x.pdf"),
              HasSubstr("the name of a page must end in .html"));
  EXPECT_THAT(refusal("--recipe", "int4-g32", "--report", scratch("none/x.html")),
              HasSubstr("x.html: it cannot be written; give a file in a folder that exists"));
  EXPECT_THAT(taper_command("export", model, "-o", program, "--calibrate", "x.npy").err,
              HasSubstr("--calibrate: it needs --recipe"));
  const auto of_model = [&](const std::string& file) {
    return taper_command("quantize", file, "-o", program, "--recipe", "mixed").err;
  };
  EXPECT_THAT(of_model("none.pt2"), HasSubstr("none.pt2: there is no such file or folder"));
  EXPECT_THAT(of_model(recipe), HasSubstr("recipe.json is not a .pt2 file"));
}

}  // namespace
}  // namespace taper::cli
