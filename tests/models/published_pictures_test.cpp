// What published networks make of pictures: imported from PyTorch's files, run as programs, and
// compared with the figures published of them and with the results of other implementations.
#include <cmath>
#include <fstream>

#include "taper/exporter/data/data.h"
#include "taper/exporter/eager/files.h"
#include "taper/tests/models/imported.h"

namespace taper {
namespace {

using tests::expect_near;
using tests::Imported;
using tests::index_of_largest;
TAPER_PUBLISHED(published_classifier);
TAPER_PUBLISHED(published_detector);
TAPER_PUBLISHED(published_super_resolution);

/// How the bytes of a picture become a network's input: planes of (byte - mean) * scale.
struct Preparation {
  bool blue_first = false;
  std::vector<float> mean = {0, 0, 0};
  float scale = 1;
};
const Preparation caffe{true, {104, 117, 123}, 1};

/// A binary PPM or PGM as (1, channels, height, width). Throws std::runtime_error.
Tensor read_picture(const std::filesystem::path& path, const Preparation& how) {
  std::ifstream in(path, std::ios::binary);
  std::string magic;
  int64_t width = 0, height = 0, maximum = 0;
  in >> magic >> width >> height >> maximum;
  in.get();
  const int64_t channels = magic == "P6" ? 3 : 1, area = width * height;
  std::string bytes(static_cast<size_t>(channels * area), '\0');
  if (!in.read(bytes.data(), channels * area))
    throw std::runtime_error(path.string() + ": no such picture");
  std::vector<float> planes(bytes.size());
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t from = how.blue_first ? channels - 1 - c : c;
    for (int64_t i = 0; i < area; ++i)
      planes[c * area + i] =
          (static_cast<float>(static_cast<uint8_t>(bytes[i * channels + from])) - how.mean[c]) *
          how.scale;
  }
  return Tensor::from(planes, {1, channels, height, width});
}

// ---- classification ----

struct Accuracy {
  int64_t right = 0;
  double worst = 0;  ///< difference of the first outputs from the golden ones
};

Accuracy accuracy(Imported& program, const data::Images& pictures, const io::Array& golden,
                  int64_t batch_size) {
  Accuracy result;
  const std::span<const float> want = golden.values<float>();
  size_t compared = 0;
  for (auto [images, labels] : data::Loader(pictures, {.batch_size = batch_size})) {
    const OwnedTensor scores = program.run({Input(images.ref())})[0];
    const std::vector<int64_t> truth = labels.to_vector<int64_t>();
    for (size_t i = 0; i < truth.size(); ++i)
      result.right += index_of_largest(scores.data<float>() + i * 10, 10) == truth[i];
    for (index_t i = 0; i < scores.numel() && compared < want.size(); ++i, ++compared)
      result.worst = std::max(
          result.worst, std::abs(static_cast<double>(scores.data<float>()[i]) - want[compared]));
  }
  EXPECT_EQ(compared, want.size());
  return result;
}

TEST_P(published_classifier, lenet_reads_9813_of_10000_digits) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "checkpoints/lenet_mnist/golden_first1000.npy");
  TAPER_GOLDEN_DATA_OR_SKIP(mnist, "datasets/mnist");
  Imported program(file, exact());
  const Accuracy a = accuracy(program, data::mnist(mnist / "t10k").normalize({.1307f}, {.3081f}),
                              io::read_npy(golden), 500);
  EXPECT_EQ(a.right, 9813);
  EXPECT_LT(a.worst, 1e-5);
}

TEST_P(published_classifier, resnet20_knows_999_of_1000_pictures) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/resnet20.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "checkpoints/cifar10_resnet/resnet20_golden_logits.npy");
  TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
  Imported program(file, exact());
  const Accuracy a = accuracy(
      program, data::cifar10(cifar).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f}),
      io::read_npy(golden), 100);
  EXPECT_EQ(a.right, 999);
  EXPECT_LT(a.worst, 1e-4);
}

TEST_P(published_classifier, cifar_net_knows_655_of_1000_pictures) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/cifar_net.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "checkpoints/cifar_net/golden_probs.npy");
  TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
  Imported program(file, exact());
  const Accuracy a =
      accuracy(program, data::cifar10(cifar).normalize({.5f, .5f, .5f}, {.5f, .5f, .5f}),
               io::read_npy(golden), 4);
  EXPECT_EQ(a.right, 655);
  EXPECT_LT(a.worst, 1e-4);
}

TEST_P(published_classifier, squeezenet_names_six_photographs) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/squeezenet1_1.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "checkpoints/squeezenet");
  struct Photograph {
    const char* name;
    int64_t label;
  };
  const Photograph photographs[] = {{"cat_285", 281}, {"dog_207", 207}, {"zebra_340", 340},
                                    {"dog", 258},     {"hot_dog", 965}, {"parrot", 88}};
  Imported program(file, exact());
  const Tensor golden = eager::load_npy(folder / "golden_probs.npy");
  for (int64_t i = 0; i < 6; ++i) {
    const Photograph& p = photographs[i];
    const Tensor picture = read_picture(folder / (std::string(p.name) + "_227x227.ppm"), caffe);
    OwnedTensor scores = program.run({Input(picture.ref())})[0];
    EXPECT_EQ(index_of_largest(scores.data<float>(), 1000), p.label) << p.name;
    const std::vector<float> got = eager::softmax(eager::tensor_of(tests::array_of(scores)), 1)
                                       .to_vector<float>(),
                             want = golden.slice(0, i, i + 1).to_vector<float>();
    double worst = 0;
    for (size_t c = 0; c < want.size(); ++c)
      worst = std::max(worst, std::abs(static_cast<double>(got[c]) - want[c]));
    EXPECT_LT(worst, 1e-5) << p.name;
  }
}

// ---- detection ----

/// The anchors whose second score, that of a face, is above a half.
std::vector<int64_t> faces(std::span<const float> scores) {
  std::vector<int64_t> found;
  for (size_t i = 0; i < scores.size() / 2; ++i)
    if (scores[2 * i + 1] > 0.5f) found.push_back(static_cast<int64_t>(i));
  return found;
}
std::span<const float> elements(const OwnedTensor& t) {
  return {t.data<float>(), static_cast<size_t>(t.numel())};
}

/// The same anchors are faces, and the best one has the published score, to four digits.
void expect_same_faces(const OwnedTensor& got, const io::Array& want, double best_score,
                       const std::string& picture) {
  EXPECT_EQ(faces(elements(got)), faces(want.values<float>())) << picture;
  float best = 0;
  for (index_t i = 0; i < got.numel() / 2; ++i) best = std::max(best, elements(got)[2 * i + 1]);
  EXPECT_NEAR(best, best_score, 5e-5) << picture;
}

struct Portrait {
  const char* name;
  double best_score;
};

TEST_P(published_detector, ultraface_finds_the_faces_that_the_onnx_file_finds) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/ultraface_rfb320.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "checkpoints/ultraface");
  Imported program(file, exact());
  for (const Portrait& p : {Portrait{"face", 1.0}, {"grace_hopper", 1.0}}) {
    const std::string name = p.name;
    const Tensor picture =
        read_picture(folder / (name + "_320x240.ppm"), {false, {127, 127, 127}, 1 / 128.f});
    const std::vector<OwnedTensor> got = program.run({Input(picture.ref())});
    const io::Array scores = io::read_npy(folder / ("version-RFB-320_" + name + "_scores.npy"));
    expect_near(got[0], scores, 1e-4, name + " scores");
    expect_near(got[1], io::read_npy(folder / ("version-RFB-320_" + name + "_boxes.npy")), 1e-4,
                name + " boxes");
    expect_same_faces(got[0], scores, p.best_score, name);
  }
}

TEST_P(published_detector, retinaface_finds_faces_and_landmarks) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/retinaface_mobilenet025.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "checkpoints/retinaface");
  TAPER_GOLDEN_DATA_OR_SKIP(pictures, "checkpoints/ultraface");
  Imported program(file, exact());
  for (const Portrait& p : {Portrait{"face", 0.9993}, {"grace_hopper", 0.9987}}) {
    const std::string name = p.name;
    const Tensor picture = read_picture(pictures / (name + "_320x240.ppm"), caffe);
    const std::vector<OwnedTensor> got = program.run({Input(picture.ref())});
    const char* results[] = {"_boxes", "_scores", "_landmarks"};
    for (size_t i = 0; i < 3; ++i)
      expect_near(got[i], io::read_npy(folder / (name + results[i] + ".npy")), 1e-4,
                  name + results[i]);
    expect_same_faces(got[1], io::read_npy(folder / (name + "_scores.npy")), p.best_score, name);
  }
}

TEST_P(published_detector, yunet_gives_what_the_onnx_file_gives) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/yunet_n.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "checkpoints/yunet");
  Imported program(file, exact());
  const Tensor picture = read_picture(folder / "grace_hopper_320x320.ppm", {.blue_first = true});
  const std::vector<OwnedTensor> got = program.run({Input(picture.ref())});
  size_t i = 0;
  for (const char* result : {"cls", "obj", "bbox", "kps"})
    for (const char* stride : {"8", "16", "32"}) {
      const std::string name = std::string(result) + "_" + stride;
      expect_near(got[i++], io::read_npy(folder / ("yunet_n_grace_hopper_" + name + ".npy")), 1e-4,
                  name);
    }
}

// ---- pictures out of pictures ----

TEST_P(published_super_resolution, enlarges_as_the_onnx_file_does) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/superres.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "checkpoints/superres");
  Imported program(file, exact());
  const Tensor luma = read_picture(folder / "luma_224x224.pgm", {.scale = 1 / 255.f});
  OwnedTensor got = program.run({Input(luma.ref())})[0];
  got.sizes = {672, 672};
  // the golden picture was rounded to f16
  const Tensor golden = eager::load_npy(folder / "golden_output_f16.npy").to(DType::f32);
  expect_near(got, eager::array_of(golden), 1e-3, "the picture");
}

}  // namespace
}  // namespace taper
