// The programs of README.md and docs/running.md, with the file that README's own training writes.
#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <stdexcept>

#include "lenet.h"
#include "taper/runtime/extension/module/module.h"
#ifdef TAPER_HAS_THREADS
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#endif

namespace firmware {
#include "firmware.inc"
}

namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

using Scores = std::array<float, 10>;

// Of exactly one picture, so that a sanitizer sees who reads more.
std::vector<float> some_image() {
  std::vector<float> image(28 * 28);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 7) / 7;
  return image;
}

Scores readme_module(const std::vector<float>& image) {
#include "module.inc"
  return scores;
}

Scores running_module(const std::vector<float>& image) {
#include "running.inc"
  return scores;
}

#ifdef TAPER_HAS_THREADS
Scores running_threads(const std::vector<float>& image) {
#include "threads.inc"
  if (!model.ok()) throw std::runtime_error("cannot load");
  Scores scores;
  if (model->forward({{image.data(), {1, 1, 28, 28}}}, {scores}) != taper::Error::ok)
    throw std::runtime_error(model->message());
  return scores;
}
#endif

class documentation : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::current_path(TAPER_README_FOLDER); }
  const std::vector<float> image = some_image();
};

TEST_F(documentation, runs_on_a_phone_and_a_laptop) {
  const Scores scores = readme_module(image);
  EXPECT_EQ(running_module(image), scores);
#ifdef TAPER_HAS_THREADS
  // with all kernels, the fastest of which round in another way
  EXPECT_THAT(running_threads(image), Pointwise(FloatNear(1e-4f), scores));
#endif
}

TEST_F(documentation, says_that_a_file_is_missing) {
  std::filesystem::current_path("/");
  for (const auto run : {readme_module, running_module}) try {
      run(image);
      FAIL() << "ran without a file";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("lenet.taper: No such file"));
    }
}

TEST_F(documentation, classifies_one_picture_on_a_microcontroller) {
  Scores scores;
  ASSERT_EQ(firmware::classify(image.data(), scores.data()), taper::Error::ok);
  EXPECT_EQ(scores, readme_module(image));
}

}  // namespace
