// Each row of the table beside eager. A product makes a part pay, so each function has one.
#include <gmock/gmock.h>

#include "delegated.h"

namespace taper::delegates::xnnpack {
namespace {

using testing::Contains, testing::HasSubstr;

const Tensor vectors = random_tensor({3, 8}, 1), images = random_tensor({2, 6, 9, 11}, 2),
             square = random_tensor({8, 8}, 3), filter = random_tensor({4, 6, 3, 3}, 4),
             same_channels = random_tensor({6, 6, 1, 1}, 5);

/// A function of vectors behind a product, and of images behind a convolution.
template <class F>
void expect_pointwise(F&& function, float tolerance = 1e-4f) {
  expect_as_eager([&](const Tensor& x) { return function(linear(x, square)); }, vectors, tolerance);
  expect_as_eager([&](const Tensor& x) { return function(conv2d(x, same_channels)); }, images,
                  tolerance);
}

TEST(xnnpack, takes_convolutions) {
  const Tensor bias = random_tensor({4}, 6);
  expect_as_eager([&](const Tensor& x) { return conv2d(x, filter); }, images);
  expect_as_eager([&](const Tensor& x) { return conv2d(x, filter, bias, {2, 1}, {1, 2}); }, images);
  expect_as_eager([&](const Tensor& x) { return conv2d(x, filter, bias, 1, 2, {2, 3}); }, images);
}

TEST(xnnpack, takes_grouped_and_depthwise_convolutions) {
  const Tensor grouped = random_tensor({4, 3, 3, 3}, 7), depthwise = random_tensor({6, 1, 3, 3}, 8),
               doubled = random_tensor({12, 1, 3, 3}, 9), bias = random_tensor({12}, 10);
  expect_as_eager([&](const Tensor& x) { return conv2d(x, grouped, {}, 1, 1, 1, 2); }, images);
  expect_as_eager([&](const Tensor& x) { return conv2d(x, depthwise, {}, 2, 1, 1, 6); }, images);
  expect_as_eager([&](const Tensor& x) { return conv2d(x, doubled, bias, 1, 0, 1, 6); }, images);
}

TEST(xnnpack, takes_transposed_convolutions) {
  const Tensor up = random_tensor({6, 4, 3, 2}, 22), bias = random_tensor({4}, 23);
  expect_as_eager([&](const Tensor& x) { return conv_transpose2d(x, up); }, images);
  expect_as_eager(
      [&](const Tensor& x) {
        return conv_transpose2d(x, up, bias, 2, 1, {1, 0});
      },
      images);
  expect_as_eager(
      [&](const Tensor& x) {
        return conv_transpose2d(x, up, bias, {3, 2}, 0, {2, 1}, 1, 2);
      },
      images);
}

TEST(xnnpack, takes_transposed_convolutions_of_groups) {
  const Tensor many = random_tensor({2, 32, 5, 6}, 25), bias = random_tensor({24}, 26);
  for (const int64_t groups : {2, 4, 8}) {
    const Tensor up = random_tensor({32, 24 / groups, 3, 2}, 27);
    expect_as_eager(
        [&](const Tensor& x) {
          return conv_transpose2d(x, up, bias, 2, 1, {1, 0}, groups);
        },
        many);
  }
  const Tensor line = random_tensor({2, 8, 9}, 28), up = random_tensor({8, 3, 4}, 29);
  expect_as_eager([&](const Tensor& x) { return conv_transpose1d(x, up, {}, 2, 1, 0, 2); }, line);
}

TEST(xnnpack, takes_convolutions_of_lines) {
  const Tensor lines = random_tensor({2, 6, 31}, 60), wide = random_tensor({4, 6, 5}, 61),
               grouped = random_tensor({4, 3, 3}, 62), depthwise = random_tensor({6, 1, 3}, 63),
               up = random_tensor({6, 4, 3}, 64), bias = random_tensor({4}, 65);
  expect_as_eager([&](const Tensor& x) { return conv1d(x, wide, bias); }, lines);
  expect_as_eager([&](const Tensor& x) { return conv1d(x, wide, {}, 2, 3, 2); }, lines);
  expect_as_eager([&](const Tensor& x) { return conv1d(x, grouped, {}, 1, 1, 1, 2); }, lines);
  expect_as_eager([&](const Tensor& x) { return conv1d(x, depthwise, {}, 1, 1, 1, 6); }, lines);
  expect_as_eager([&](const Tensor& x) { return conv_transpose1d(x, up, bias, 2, 1, 1); }, lines);
}

TEST(xnnpack, keeps_lines_turned_between_convolutions) {
  const Tensor lines = random_tensor({2, 6, 32}, 70), weight = random_tensor({6, 6, 3}, 71),
               slopes = random_tensor({6}, 72), offsets = random_tensor({6, 1}, 73);
  const auto conv = [&](const Tensor& x) { return conv1d(x, weight, {}, 1, 1); };
  expect_as_eager(
      [&](const Tensor& x) {
        Tensor y = prelu(conv(x), slopes) + offsets;
        y = max_pool1d(cat({y, conv(y)}, 1), 3, 2, 1);
        y = conv(slice(y, 1, 3, 9)) * mean(slice(y, 1, 3, 9), {2}, true);
        return mean(y, {2}, false);
      },
      lines);
}

TEST(xnnpack, takes_lines_of_any_length) {
  const Tensor weight = random_tensor({6, 6, 3}, 80);
  const Dim length = Dim::symbol("length", 8, 40);
  const auto network = [&](const Tensor& x) {
    return relu(conv1d(relu(conv1d(x, weight)), weight));
  };
  Delegated program(network, {2, 6, length});
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  for (const int n : {8, 40, 17}) {
    const Tensor x = random_tensor({2, 6, n}, 81);
    expect_close(call(module.value(), x), network(x).to_vector<float>());
  }
}

TEST(xnnpack, resizes_images) {
  const auto resized = [](eager::Ints size, bool align) {
    expect_as_eager(
        [=](const Tensor& x) {
          return interpolate(conv2d(x, same_channels), {size[0], size[1]}, "bilinear", align);
        },
        images);
  };
  resized({18, 22}, false);
  resized({5, 30}, false);
  resized({18, 22}, true);
  resized({1, 4}, true);
}

TEST(xnnpack, repeats_the_nearest_pixels) {
  const auto resized = [](eager::Ints size, const char* mode) {
    expect_as_eager(
        [=](const Tensor& x) {
          return interpolate(conv2d(x, same_channels), {size[0], size[1]}, mode);
        },
        images);
  };
  for (const char* mode : {"nearest", "nearest-exact"}) {
    resized({18, 22}, mode);
    resized({27, 11}, mode);
    resized({45, 77}, mode);
  }
  // scales, for all sizes
  for (const double scale : {2.0, 3.0, 4.0, 5.0, 6.0, 7.0})
    expect_as_eager(
        [=](const Tensor& x) {
          return interpolate_by(conv2d(x, random_tensor({1, 1, 1, 1}, 30)), {scale, scale});
        },
        random_tensor({1, 1, 31, 43}, 31));
}

/// A program of which XNNPACK leaves some nodes with this reason. It computes the same as eager.
template <class F>
void expect_left(F&& function, const Tensor& x, const std::string& reason) {
  const std::vector<index_t> sizes = sizes_of(x);
  Delegated program(function, eager::Dims(sizes.begin(), sizes.end()), false);
  EXPECT_THAT(program.report.notes, Contains(HasSubstr(reason)));
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  expect_close(call(module.value(), x), function(x).template to_vector<float>());
}

TEST(xnnpack, leaves_nearest_pixels_that_PyTorch_rounds_to_others) {
  const Tensor one = Tensor::from<float>({1}, {1, 1, 1, 1}),
               x = Tensor::from<float>({0, 1, 2, 3}, {1, 1, 1, 4});
  for (const int64_t times : {41, 47, 55, 61, 82}) {
    const auto network = [&](const Tensor& t) {
      return interpolate(conv2d(t, one), {1, 4 * times}, "nearest");
    };
    expect_left(network, x, "upsample_nearest2d: its positions are rounded to other pixels");
    // PyTorch's formula
    const std::vector<float> pixels = network(x).to_vector<float>();
    const float step = 4.0f / static_cast<float>(4 * times);
    for (size_t i = 0; i < pixels.size(); ++i)
      EXPECT_EQ(pixels[i], std::floor(static_cast<float>(i) * step)) << times << ": " << i;
  }
}

TEST(xnnpack, leaves_steps_and_windows_that_are_too_large) {
  const Tensor one = Tensor::from<float>({1}, {1, 1, 1, 1}),
               image = random_tensor({1, 1, 200, 200}, 140), row = random_tensor({1, 1, 1, 9}, 141);
  const auto behind = [&](auto then) {
    return [&one, then](const Tensor& x) { return then(conv2d(x, one)); };
  };
  const std::string window = "its window has more than 32768 elements",
                    step = "a window, a stride, a padding or a dilation is larger than 32768";
  expect_left(behind([](const Tensor& x) { return avg_pool2d(x, 200); }), image, window);
  expect_left(behind([](const Tensor& x) { return max_pool2d(x, 200); }), image, window);
  expect_left(behind([](const Tensor& x) {
                return adaptive_avg_pool2d(x, {1, 2});
              }),
              random_tensor({1, 1, 200, 400}, 145), window);
  expect_left(behind([](const Tensor& x) {
                return constant_pad_nd(x, {40000, 0}, 0.5);
              }),
              row, step);
  expect_left(behind([&](const Tensor& x) { return conv2d(x, one, {}, 40000); }), row, step);
  expect_left(behind([](const Tensor& x) {
                return interpolate(x, {1, 40000}, "bilinear");
              }),
              row, "an image has a side of more than 32768 pixels");
  const Tensor long_filter = random_tensor({1, 1, 1, 40000}, 142);
  expect_left(behind([&](const Tensor& x) { return conv2d(x, long_filter); }),
              random_tensor({1, 1, 1, 40009}, 143), step);
  expect_left(behind([](const Tensor& x) {
                return avg_pool3d(unsqueeze(x, 1), {1, 200, 200});
              }),
              image, "its window has more than 32768 pixels");
}

TEST(xnnpack, leaves_biases_that_broadcast_and_paddings_of_NaN) {
  const Tensor bias = random_tensor({1}, 144);
  expect_left([&](const Tensor& x) { return mm(addmm(bias, x, square), square); }, vectors,
              "addmm: what is added is no number for each column");
  const auto padded = [](const Tensor& x) { return constant_pad_nd(mm(x, square), {1, 0}, NAN); };
  Delegated program(padded, {3, 8}, false);
  EXPECT_THAT(program.report.notes, Contains(HasSubstr("constant_pad_nd: its number is NaN")));
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  EXPECT_TRUE(std::isnan(call(module.value(), vectors)[0]));
}

TEST(xnnpack, takes_gates_of_large_numbers) {
  const std::vector<float> large = {1e27f, 1e30f, 1e34f, 3e38f, -1e27f, -1e30f, -1e34f, -3e38f};
  std::vector<float> numbers;  // the library computes 64 at once
  for (int i = 0; i < 64; ++i) numbers.push_back(large[static_cast<size_t>(i) % large.size()]);
  const Tensor x = Tensor::from<float>(numbers, {1, 1, 8, 8}),
               one = Tensor::from<float>({1}, {1, 1, 1, 1});
  const auto results = [&](auto function) {
    Delegated program([&](const Tensor& t) { return function(conv2d(t, one)); }, {1, 1, 8, 8});
    EXPECT_EQ(program.delegates(), 1);
    Result<Module> module = program.load();
    return module.ok() ? call(module.value(), x) : std::vector<float>(64, NAN);
  };
  const std::vector<float> gates = results([](const Tensor&t) { return sigmoid(t); }),
                           products = results([](const Tensor&t) { return silu(t + 1.0); });
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(gates[i], numbers[i] > 0 ? 1 : 0) << numbers[i];
    EXPECT_EQ(products[i], std::max(numbers[i], 0.0f)) << numbers[i];
  }
}

TEST(xnnpack, leaves_roots) {
  const auto roots = [](const Tensor& x) {
    const Tensor y = mm(x, Tensor::from<float>({1}, {1, 1}));
    return cat({sqrt(y), rsqrt(y)}, 1);
  };
  const std::vector<float> numbers = {0, 1e-40f, 4, INFINITY};
  Delegated program(roots, {4, 1}, false);
  EXPECT_THAT(program.report.notes, Contains(HasSubstr("rsqrt: the backend has no such operator")));
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  const std::vector<float> have = call(module.value(), Tensor::from<float>(numbers, {4, 1}));
  ASSERT_EQ(have.size(), 8u);
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_FLOAT_EQ(have[2 * i], std::sqrt(numbers[i]));
    EXPECT_FLOAT_EQ(have[2 * i + 1], 1 / std::sqrt(numbers[i]));
  }
}

TEST(xnnpack, shuffles_pixels) {
  const Tensor weight = random_tensor({12, 6, 3, 3}, 32), again = random_tensor({4, 3, 3, 3}, 33);
  expect_as_eager([&](const Tensor& x) { return pixel_shuffle(conv2d(x, weight), 2); }, images);
  expect_as_eager(
      [&](const Tensor& x) { return conv2d(relu(pixel_shuffle(conv2d(x, weight), 2)), again); },
      images);
  expect_as_eager(
      [&](const Tensor& x) {
        return pixel_unshuffle(slice(slice(conv2d(x, weight), 2, 0, 6), 3, 0, 9), 3);
      },
      images);
}

TEST(xnnpack, takes_matrix_products) {
  const Tensor weight = random_tensor({5, 8}, 11), bias = random_tensor({5}, 12),
               batches = random_tensor({4, 8, 8}, 13);
  expect_as_eager([&](const Tensor& x) { return linear(x, weight, bias); }, vectors);
  expect_as_eager([&](const Tensor& x) { return linear(x, weight); }, random_tensor({2, 3, 8}, 14));
  expect_as_eager([&](const Tensor& x) { return mm(x, square); }, vectors);
  expect_as_eager([&](const Tensor& x) { return addmm(bias, x, transpose(weight, 0, 1)); },
                  vectors);
  expect_as_eager([&](const Tensor& x) { return bmm(x, x); }, batches);
  expect_as_eager([&](const Tensor& x) { return baddbmm(slice(x, 0, 0, 1), x, x); }, batches);
  expect_as_eager([&](const Tensor& x) { return mm(x, x); }, square);
}

TEST(xnnpack, takes_pools) {
  const auto behind = [](auto pool) {
    return [pool](const Tensor& x) { return pool(conv2d(x, same_channels)); };
  };
  expect_as_eager(behind([](const Tensor& x) { return max_pool2d(x, 3, 2, 1); }), images);
  expect_as_eager(behind([](const Tensor& x) { return max_pool2d(x, {2, 3}); }), images);
  expect_as_eager(behind([](const Tensor& x) { return max_pool2d(x, 3, 2, 0, 1, true); }), images);
  expect_as_eager(behind([](const Tensor& x) { return avg_pool2d(x, {3, 2}); }), images);
  expect_as_eager(behind([](const Tensor& x) { return avg_pool2d(x, 3, 2, 1, false, false); }),
                  images);
  expect_as_eager(behind([](const Tensor& x) { return avg_pool2d(x, 3, 2, 1); }), images);
  // one pixel of four, and windows beyond the border
  expect_as_eager(behind([](const Tensor& x) { return max_pool2d(x, 1, 2); }), images);
  expect_as_eager(behind([](const Tensor& x) { return max_pool2d(x, 2, 2, 0, 1, true); }), images);
  expect_as_eager(behind([](const Tensor& x) {
                    return max_pool2d(x, {3, 4}, {3, 3}, 1, {1, 2}, true);
                  }),
                  images);
}

TEST(xnnpack, takes_adaptive_pools_whose_windows_divide_the_image) {
  const auto behind = [](eager::Ints size) {
    return [=](const Tensor& x) {
      return adaptive_avg_pool2d(conv2d(x, same_channels), {size[0], size[1]});
    };
  };
  expect_as_eager(behind({3, 11}), images);
  expect_as_eager(behind({9, 1}), images);
  expect_as_eager(behind({1, 1}), images);
  expect_as_eager(behind({9, 11}), images);  // each pixel
  expect_as_eager([&](const Tensor& x) { return relu(behind({9, 11})(x)); }, images);
  Delegated program(behind({2, 2}), {2, 6, 9, 11}, false);
  EXPECT_THAT(program.report.notes,
              Contains(HasSubstr("_adaptive_avg_pool2d: its windows are not of one size")));
  const Tensor weight = random_tensor({6, 6, 3}, 34);
  for (const int64_t size : {1, 4, 12})
    expect_as_eager([&](const Tensor& x) { return adaptive_avg_pool1d(conv1d(x, weight), size); },
                    random_tensor({2, 6, 14}, 35));
}

TEST(xnnpack, takes_means) {
  const auto behind = [](eager::Ints dims, bool keeps) {
    return [=](const Tensor& x) { return mean(conv2d(x, same_channels), dims, keeps); };
  };
  expect_as_eager(behind({2, 3}, true), images);
  expect_as_eager(behind({-1, -2}, false), images);
  expect_as_eager(behind({1}, true), images);
  expect_as_eager([&](const Tensor& x) { return mean(linear(x, square), {0}, false); }, vectors);
  expect_as_eager([&](const Tensor& x) { return sum(linear(x, square), {-1}, true); }, vectors);
  expect_as_eager(
      [&](const Tensor& x) {
        return sum(conv2d(x, same_channels), {2, 3}, true);
      },
      images);
  const Tensor weight = random_tensor({6, 6, 3}, 36);
  for (const bool keeps : {false, true})
    for (const eager::Ints& dims : {eager::Ints{2}, eager::Ints{1, 2}, eager::Ints{0, 2}})
      expect_as_eager([&](const Tensor& x) { return mean(conv1d(x, weight), dims, keeps); },
                      random_tensor({2, 6, 14}, 37));
}

TEST(xnnpack, takes_functions_of_one_tensor) {
  expect_pointwise([](const Tensor& x) { return relu(x); });
  expect_pointwise([](const Tensor& x) { return hardtanh(x, 0, 0.5); });
  expect_pointwise([](const Tensor& x) { return clamp(x, -0.25, 0.5); });
  expect_pointwise([](const Tensor& x) { return clamp(x, 0.125, 0.5); });
  expect_pointwise([](const Tensor& x) { return clamp(x, {}, -0.125); });
  expect_pointwise([](const Tensor& x) { return clamp(x, 0.5, 0.125); });
  expect_pointwise([](const Tensor& x) { return clamp_min(x, 0.125); });
  expect_pointwise([](const Tensor& x) { return clamp_min(x, -0.125); });
  expect_pointwise([](const Tensor& x) { return clamp_max(x, 0.125); });
  expect_pointwise([](const Tensor& x) { return elu(x); });
  expect_pointwise([](const Tensor& x) { return elu(x, 0.5); });
  expect_pointwise([](const Tensor& x) { return pow(x, 2.0); });
  expect_pointwise([](const Tensor& x) { return pow(x, 3.0); });
  expect_pointwise([](const Tensor& x) { return abs(x); });
  expect_pointwise([](const Tensor& x) { return ceil(x * 3); });
  expect_pointwise([](const Tensor& x) { return floor(x * 3); });
  expect_pointwise([](const Tensor& x) { return exp(x); });
  expect_pointwise([](const Tensor& x) { return gelu(x); });
  expect_pointwise([](const Tensor& x) { return hardsigmoid(x * 4); });
  expect_pointwise([](const Tensor& x) { return hardswish(x * 4); });
  expect_pointwise([](const Tensor& x) { return leaky_relu(x, 0.1); });
  expect_pointwise([](const Tensor& x) { return log(abs(x) + 1); });
  expect_pointwise([](const Tensor& x) { return neg(x); });
  expect_pointwise([](const Tensor& x) { return sigmoid(x); });
  expect_pointwise([](const Tensor& x) { return silu(x); });
  expect_pointwise([](const Tensor& x) { return tanh(x); });
}

TEST(xnnpack, takes_functions_of_two_tensors) {
  expect_pointwise([](const Tensor& x) { return x + sigmoid(x); });
  expect_pointwise([](const Tensor& x) { return x - sigmoid(x); });
  expect_pointwise([](const Tensor& x) { return x * sigmoid(x); });
  expect_pointwise([](const Tensor& x) { return x / (sigmoid(x) + 1); });
  expect_pointwise([](const Tensor& x) { return maximum(x, neg(x)); });
  expect_pointwise([](const Tensor& x) { return minimum(x, sigmoid(x)); });
  expect_pointwise([](const Tensor& x) { return prelu(x, Tensor::from<float>({0.25f}, {1})); });
  const Tensor slopes = random_tensor({6}, 24);
  expect_as_eager([&](const Tensor& x) { return prelu(conv2d(x, same_channels), slopes); }, images);
  expect_pointwise([](const Tensor& x) { return ((x + 2) * 3 - 1) / 2; });
}

TEST(xnnpack, takes_batch_norms) {
  const Tensor weight = random_tensor({6}, 38), bias = random_tensor({6}, 39),
               mean = random_tensor({6}, 40), variance = random_tensor({6}, 41, 0.5, 2);
  const auto norm = [&](const Tensor& x, const Tensor& w, const Tensor& b) {
    return batch_norm(relu(x), w, b, mean, variance, false, 0.1, 1e-3);
  };
  for (const Tensor& w : {weight, Tensor()})
    for (const Tensor& b : {bias, Tensor()}) {
      expect_as_eager([&](const Tensor& x) { return norm(conv2d(x, same_channels), w, b); },
                      images);
      expect_as_eager(
          [&](const Tensor& x) {
            return norm(linear(x, random_tensor({6, 8}, 42)), w, b);
          },
          vectors);
    }
  const Tensor line = random_tensor({6, 6, 3}, 43);
  expect_as_eager([&](const Tensor& x) { return norm(conv1d(x, line), weight, bias); },
                  random_tensor({2, 6, 14}, 44));
  // of what lies in plain order
  expect_as_eager([&](const Tensor& x) { return conv2d(norm(x, weight, bias), same_channels); },
                  images);
}

TEST(xnnpack, broadcasts_constants_over_images) {
  const auto with = [](const Tensor& constant) {
    expect_as_eager([&](const Tensor& x) { return conv2d(x, same_channels) * constant; }, images);
  };
  with(random_tensor({6, 1, 1}, 15));
  with(random_tensor({1, 6, 1, 1}, 16));
  with(random_tensor({11}, 17));
  with(random_tensor({9, 1}, 18));
  with(random_tensor({9, 11}, 19));
  with(random_tensor({2, 6, 9, 11}, 20));
  with(random_tensor({1}, 21));
}

TEST(xnnpack, takes_softmax_along_the_last_dimension) {
  expect_as_eager([&](const Tensor& x) { return softmax(linear(x, square), -1); }, vectors);
}

TEST(xnnpack, takes_copies) {
  const auto copy = [](const Tensor& x) {
    return clone(permute(relu(conv2d(x, same_channels)), {0, 2, 3, 1}));
  };
  expect_as_eager(copy, images);
  expect_as_eager([&](const Tensor& x) { return relu(copy(x)); }, images);
}

TEST(xnnpack, takes_what_moves_elements) {
  const auto behind = [](auto moves) {
    return [moves](const Tensor& x) { return relu(moves(conv2d(x, same_channels))); };
  };
  expect_as_eager(behind([](const Tensor& x) { return cat({x, relu(x)}, 1); }), images);
  expect_as_eager(behind([](const Tensor& x) {
                    return cat({x, relu(x), neg(x), x, x}, -1);
                  }),
                  images);
  expect_as_eager(behind([](const Tensor& x) {
                    return cat({x, relu(x), neg(x), x, x, abs(x), x}, 1);
                  }),
                  images);
  expect_as_eager(behind([](const Tensor& x) { return cat({x}, 1); }), images);
  expect_as_eager([&](const Tensor& x) { return cat({conv2d(x, same_channels)}, 1); }, images);
  expect_as_eager(
      [&](const Tensor& x) {
        return cat({conv1d(x, random_tensor({6, 6, 3}, 46))}, 1);
      },
      random_tensor({2, 6, 9}, 47));
  expect_as_eager(behind([](const Tensor& x) { return slice(x, 2, 1, 7); }), images);
  expect_as_eager(behind([](const Tensor& x) { return slice(x, 1, 2, 5); }), images);
  expect_as_eager(behind([](const Tensor& x) { return permute(x, {0, 2, 3, 1}); }), images);
  expect_as_eager(behind([](const Tensor& x) { return transpose(x, 1, -1); }), images);
  expect_as_eager(behind([](const Tensor& x) { return reshape(x, {2, 6, 99}); }), images);
  expect_as_eager(behind([](const Tensor& x) { return unsqueeze(x, 1); }), images);
  expect_as_eager(behind([](const Tensor& x) {
                    return constant_pad_nd(x, {1, 2, 0, 3}, 0.5);
                  }),
                  images);
}

TEST(xnnpack, copies_images_at_borders_alone) {
  const auto transposes = [](auto function) {
    const Delegated program(function, {2, 6, 9, 11});
    return program.report.methods[0].border_transposes;
  };
  const auto conv = [](const Tensor& x) { return conv2d(x, same_channels); };
  EXPECT_EQ(transposes(conv), 2);
  // what moves elements keeps channels last
  EXPECT_EQ(transposes([&](const Tensor& x) {
              const Tensor y = conv(x);
              return conv(slice(constant_pad_nd(cat({y, y}, 1), {1, 1, 2, 2}), 1, 3, 9));
            }),
            2);
  EXPECT_EQ(transposes([&](const Tensor& x) { return mean(conv(x), {2, 3}); }), 1);
  EXPECT_EQ(transposes([&](const Tensor& x) { return relu(permute(conv(x), {0, 2, 3, 1})); }), 1);
  EXPECT_EQ(transposes([&](const Tensor& x) { return linear(x, random_tensor({5, 11}, 45)); }), 0);
}

TEST(xnnpack, flattens_an_image_of_one_pixel) {
  const Tensor weight = random_tensor({3, 6}, 22);
  expect_as_eager(
      [&](const Tensor& x) {
        const Tensor pixel = mean(conv2d(x, same_channels), {-1, -2}, true);
        return linear(reshape(pixel, {2, 6}), weight);
      },
      images);
}

TEST(xnnpack, says_what_it_does_not_take) {
  const auto refusal = [](auto function, const eager::Dims& sizes) -> std::string {
    try {
      Delegated program(function, sizes);
    } catch (const ExportError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(refusal([&](const Tensor& x) { return relu(x); }, {2, 3}),
              HasSubstr("1 relu: its part is too small to pay"));
  EXPECT_THAT(refusal([&](const Tensor& x) { return softmax(mm(x, square), 0); }, {3, 8}),
              HasSubstr("_softmax: it goes along another dimension than the last"));
  EXPECT_THAT(refusal([&](const Tensor& x) { return conv2d(x, x); }, {6, 6, 3, 3}),
              HasSubstr("convolution: a weight or a bias is no constant"));
  EXPECT_THAT(refusal([&](const Tensor& x) { return relu(mm(x, square).to(DType::f16)); }, {3, 8}),
              HasSubstr("1 relu: a tensor is f16, not f32"));
  const Tensor volume = random_tensor({4, 2, 2, 2, 2}, 90);
  EXPECT_THAT(
      refusal([&](const Tensor& x) { return conv_transpose3d(x, volume); }, {1, 4, 3, 3, 3}),
      HasSubstr("convolution: transposed convolutions of volumes are not taken"));
  EXPECT_THAT(
      refusal([&](const Tensor& x) { return conv3d(x, volume, {}, 1, 0, 1, 2); }, {1, 4, 3, 3, 3}),
      HasSubstr("its window has depth, and its groups have several channels"));
  // the library would write beyond such a result
  EXPECT_THAT(refusal(
                  [&](const Tensor& x) {
                    return conv_transpose2d(x, random_tensor({6, 4, 3, 3}, 91), {}, 3, 1);
                  },
                  {2, 6, 1, 5}),
              HasSubstr("convolution: its result is smaller than its stride"));
  const Tensor window = random_tensor({6, 1, 7, 7}, 91);
  EXPECT_THAT(
      refusal([&](const Tensor& x) { return conv2d(x, window, {}, 1, 3, 1, 6); }, {1, 6, 9, 9}),
      HasSubstr("convolution: the library is slow with depthwise windows of 49 elements"));
  EXPECT_THAT(refusal([&](const Tensor& x) { return clamp(mm(x, square), NAN); }, {3, 8}),
              HasSubstr("1 clamp: a bound is NaN"));
  EXPECT_THAT(refusal([&](const Tensor& x) { return cumsum(mm(x, square), 0); }, {3, 8}),
              HasSubstr("cumsum: the backend has no such operator"));
}

}  // namespace
}  // namespace taper::delegates::xnnpack
