// Volumes (batch, channels, depth, height, width), which XNNPACK computes as images.
#include "delegated.h"

namespace taper::delegates::xnnpack {
namespace {

const Tensor volumes = random_tensor({2, 6, 7, 9, 8}, 1);

Tensor weights(const std::vector<int64_t>& sizes) { return random_tensor(sizes, 2); }

TEST(xnnpack_volumes, are_convolved_one_image_deep) {
  const Tensor flat = weights({4, 6, 1, 3, 3}), bias = random_tensor({4}, 3);
  expect_as_eager(
      [&](const Tensor& x) {
        return conv3d(x, flat, bias, {1, 2, 1}, {0, 1, 2});
      },
      volumes);
  expect_as_eager([&](const Tensor& x) { return conv3d(x, weights({4, 6, 1, 1, 1})); }, volumes);
  expect_as_eager(
      [&](const Tensor& x) {
        return conv3d(x, weights({4, 3, 1, 3, 3}), {}, 1, 0, 1, 2);
      },
      volumes);
}

TEST(xnnpack_volumes, are_convolved_along_their_depth) {
  const Tensor deep = weights({4, 6, 3, 1, 1}), bias = random_tensor({4}, 4);
  expect_as_eager(
      [&](const Tensor& x) {
        return conv3d(x, deep, bias, {2, 1, 1}, {1, 0, 0});
      },
      volumes);
  expect_as_eager(
      [&](const Tensor& x) {
        return conv3d(x, deep, {}, 1, {2, 0, 0}, {2, 1, 1});
      },
      volumes);
  const Tensor depthwise = weights({6, 1, 3, 1, 1}), grouped = weights({4, 3, 2, 1, 1});
  expect_as_eager([&](const Tensor& x) { return conv3d(x, depthwise, {}, 1, 0, 1, 6); }, volumes);
  expect_as_eager([&](const Tensor& x) { return conv3d(x, grouped, {}, 1, 0, 1, 2); }, volumes);
}

TEST(xnnpack_volumes, are_convolved_in_all_dimensions) {
  const Tensor bias = random_tensor({4}, 5);
  for (const int64_t depth : {2, 3, 7})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t padding : {0, 1})
        for (const int64_t dilation : {1, 2}) {
          if (dilation * (depth - 1) + 1 > 7 + 2 * padding) continue;
          SCOPED_TRACE(testing::Message() << depth << " deep, stride " << stride << ", padding "
                                          << padding << ", dilation " << dilation);
          const Tensor weight = weights({4, 6, depth, 3, 2});
          expect_as_eager(
              [&](const Tensor& x) {
                return conv3d(x, weight, bias, {stride, 1, 2}, {padding, 1, 0}, {dilation, 1, 1});
              },
              volumes);
        }
}

TEST(xnnpack_volumes, are_convolved_in_steps_of_one_image) {
  const Tensor patches = weights({5, 6, 2, 3, 4}), pixels = weights({5, 6, 1, 1, 1});
  expect_as_eager([&](const Tensor& x) { return conv3d(x, patches, {}, {2, 3, 4}); }, volumes);
  expect_as_eager([&](const Tensor& x) { return conv3d(x, pixels, {}, 2); }, volumes);
}

TEST(xnnpack_volumes, are_convolved_channel_by_channel) {
  const Tensor depthwise = weights({6, 1, 3, 3, 3}), bias = random_tensor({6}, 6);
  for (const int64_t stride : {1, 2})
    expect_as_eager(
        [&](const Tensor& x) {
          return conv3d(x, depthwise, bias, {stride, 2, 2}, 1, 1, 6);
        },
        volumes);
}

TEST(xnnpack_volumes, keep_their_order_between_convolutions) {
  const Tensor all = weights({6, 6, 3, 3, 3}), flat = weights({6, 6, 1, 3, 3}),
               slopes = random_tensor({6}, 7), offsets = random_tensor({6, 1, 1, 1}, 8);
  const auto network = [&](const Tensor& x) {
    Tensor y = relu(conv3d(x, all, {}, 1, 1)) + offsets;
    y = max_pool3d(cat({y, relu(conv3d(y, flat, {}, 1, {0, 1, 1}))}, 1), {1, 2, 2});
    y = avg_pool3d(slice(y, 1, 3, 9), 2);
    return mean(batch_norm(y, slopes, slopes, offsets.reshape({6}), abs(slopes), false, 0.1, 1e-3),
                {2, 3, 4}, false);
  };
  expect_as_eager(network, volumes);
  Delegated program(network, {2, 6, 7, 9, 8});
  EXPECT_EQ(program.report.methods[0].border_transposes, 1) << "of the input";
}

TEST(xnnpack_volumes, are_pooled) {
  const auto behind = [](auto pool) {
    return [pool](const Tensor& x) { return pool(conv3d(x, weights({6, 6, 1, 1, 1}))); };
  };
  expect_as_eager(behind([](const Tensor& x) { return max_pool3d(x, 3, 2, 1); }), volumes);
  expect_as_eager(behind([](const Tensor& x) {
                    return max_pool3d(x, {1, 3, 3}, {1, 2, 2}, {0, 1, 1});
                  }),
                  volumes);
  expect_as_eager(behind([](const Tensor& x) { return max_pool3d(x, {3, 1, 1}, 1); }), volumes);
  expect_as_eager(behind([](const Tensor& x) {
                    return avg_pool3d(x, {2, 3, 2}, {2, 2, 1});
                  }),
                  volumes);
  for (const eager::Ints& size : {eager::Ints{1, 1, 1}, {7, 3, 4}, {1, 9, 2}, {7, 9, 8}})
    expect_as_eager(behind([&](const Tensor& x) {
                      return adaptive_avg_pool3d(x, {size[0], size[1], size[2]});
                    }),
                    volumes);
}

TEST(xnnpack_volumes, come_in_any_number) {
  const Tensor weight = weights({4, 6, 3, 3, 3});
  const auto network = [&](const Tensor& x) {
    return max_pool3d(relu(conv3d(x, weight, {}, 2, 1)), 2);
  };
  Delegated program(network, {Dim::symbol("batch", 1, 5), 6, 7, 9, 8});
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  for (const int n : {5, 1, 3}) {
    const Tensor x = random_tensor({n, 6, 7, 9, 8}, 9);
    expect_close(call(module.value(), x), network(x).to_vector<float>());
  }
}

TEST(xnnpack_volumes, stay_with_the_kernels_if_positions_of_maxima_are_used) {
  Delegated program(
      [&](const Tensor& x) {
        const auto [most, at] = max_pool3d_with_indices(conv3d(x, weights({6, 6, 1, 1, 1})), 2);
        return most + at.to(DType::f32);
      },
      {2, 6, 7, 9, 8}, false);
  const auto& notes = program.report.notes;
  EXPECT_NE(std::find_if(notes.begin(), notes.end(),
                         [](const std::string& line) {
                           return line.find(
                                      "1 max_pool3d_with_indices: more than its first "
                                      "result is used") != line.npos;
                         }),
            notes.end());
}

}  // namespace
}  // namespace taper::delegates::xnnpack
