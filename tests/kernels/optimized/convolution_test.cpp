#include <cmath>

#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

struct Case {
  std::vector<index_t> input, weight;  // (batch, channels, extents…), as in the operator
  std::vector<int64_t> stride{1}, padding{0}, dilation{1};
  int64_t groups = 1;
  bool transposed = false;
  std::vector<int64_t> output_padding{0};
};

int64_t at(const std::vector<int64_t>& list, size_t i) { return list[list.size() == 1 ? 0 : i]; }

std::vector<index_t> output_sizes(const Case& c) {
  std::vector<index_t> sizes{c.input[0], c.transposed ? c.weight[1] * c.groups : c.weight[0]};
  for (size_t i = 0; i + 2 < c.input.size(); ++i) {
    const int64_t in = c.input[i + 2], reach = at(c.dilation, i) * (c.weight[i + 2] - 1),
                  s = at(c.stride, i), p = at(c.padding, i);
    sizes.push_back(c.transposed ? (in - 1) * s - 2 * p + reach + at(c.output_padding, i) + 1
                                 : (in + 2 * p - reach - 1) / s + 1);
  }
  return sizes;
}

// Calls body(x element, w element, y element) for each product of the cross-correlation y = x * w,
// by the definition.
template <class Body>
void for_products(const Case& c, const Body& body) {
  const std::vector<index_t> out = output_sizes(c);
  const std::vector<index_t>& x = c.transposed ? out : c.input;
  const std::vector<index_t>& y = c.transposed ? c.input : out;
  index_t in[3] = {1, 1, 1}, to[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
          padding[3] = {}, dilation[3] = {1, 1, 1};
  const size_t n = x.size() - 2;
  for (size_t i = 0; i < n; ++i) {
    const size_t d = i + 3 - n;
    in[d] = x[i + 2], to[d] = y[i + 2], kernel[d] = c.weight[i + 2];
    stride[d] = at(c.stride, i), padding[d] = at(c.padding, i), dilation[d] = at(c.dilation, i);
  }
  const index_t inputs = c.weight[1], outputs = c.weight[0] / c.groups;
  for (index_t b = 0; b < x[0]; ++b)
    for (index_t g = 0; g < c.groups; ++g)
      for (index_t o = 0; o < outputs; ++o)
        for (index_t i = 0; i < inputs; ++i)
          for (index_t p = 0; p < to[0] * to[1] * to[2]; ++p)
            for (index_t k = 0; k < kernel[0] * kernel[1] * kernel[2]; ++k) {
              const index_t ps[3] = {p / (to[1] * to[2]), p / to[2] % to[1], p % to[2]};
              const index_t ks[3] = {k / (kernel[1] * kernel[2]), k / kernel[2] % kernel[1],
                                     k % kernel[2]};
              index_t from = 0;
              bool inside = true;
              for (int d = 0; d < 3; ++d) {
                const index_t q = ps[d] * stride[d] - padding[d] + ks[d] * dilation[d];
                inside = inside && q >= 0 && q < in[d];
                from = from * in[d] + q;
              }
              if (!inside) continue;
              body(((b * c.groups + g) * inputs + i) * in[0] * in[1] * in[2] + from,
                   ((g * outputs + o) * inputs + i) * kernel[0] * kernel[1] * kernel[2] + k,
                   ((b * c.groups + g) * outputs + o) * to[0] * to[1] * to[2] + p);
            }
}

std::vector<Slot> with_parameters(std::vector<Slot> tensors, const Case& c) {
  tensors.push_back(slot(c.stride)), tensors.push_back(slot(c.padding)),
      tensors.push_back(slot(c.dilation));
  tensors.push_back(slot(c.transposed)), tensors.push_back(slot(c.output_padding)),
      tensors.push_back(slot(c.groups));
  return tensors;
}

Array forward(const Kernel& kernel, const Case& c, const Array& x, const Array& w,
              const Array* bias, const Threads* threads = nullptr) {
  Array out(output_sizes(c), 77);
  std::vector<Slot> slots = with_parameters({slot(x), slot(w), bias ? slot(*bias) : absent()}, c);
  slots.push_back(slot(out));
  call(kernel, slots, threads);
  return out;
}

struct Gradients {
  Array input, weight, bias;
};
Gradients backward(const Kernel& kernel, const Case& c, const Array& dy, const Array& x,
                   const Array& w, const Threads* threads = nullptr) {
  Gradients g{Array(c.input, 77), Array(c.weight, 77), Array({output_sizes(c)[1]}, 77)};
  const std::vector<int64_t> mask{1, 1, 1};
  std::vector<Slot> slots = with_parameters({slot(dy), slot(x), slot(w), absent_list()}, c);
  slots.push_back(slot(mask)), slots.push_back(slot(g.input)), slots.push_back(slot(g.weight)),
      slots.push_back(slot(g.bias));
  call(kernel, slots, threads);
  return g;
}

const Case cases[] = {
    {{1, 64, 300}, {48, 64, 3}, {1}, {1}},     // one row: threads share the channels
    {{2, 1, 28, 28}, {6, 1, 5, 5}, {1}, {2}},  // LeNet
    {{3, 6, 14, 14}, {16, 6, 5, 5}},
    {{1, 64, 90}, {64, 40, 3}, {2}, {1}, {1}, 1, true, {1}},  // one row, transposed
    {{9, 16, 12, 12}, {16, 16, 3, 3}, {1}, {1}},              // ResNet-20
    {{2, 16, 16, 16}, {32, 16, 3, 3}, {2}, {1}},
    {{2, 64, 8, 8}, {64, 64, 3, 3}, {1, 1}, {1, 1}},
    {{2, 24, 9, 9}, {7, 24, 1, 1}},  // a product
    {{1, 5, 8, 8}, {6, 5, 1, 1}, {2}},
    {{1, 8, 7, 7}, {8, 8, 1, 1}, {1}, {1}},
    {{2, 6, 11, 13}, {6, 1, 3, 3}, {1}, {1}, {1}, 6},  // depthwise
    {{2, 6, 11, 13}, {12, 1, 3, 3}, {2}, {1}, {1}, 6},
    {{1, 3, 14, 14}, {3, 1, 7, 7}, {1}, {3}, {1}, 3},  // rows of taps that share what they load
    {{1, 2, 16, 9}, {2, 1, 5, 5}, {1}, {2}, {1}, 2},
    {{1, 3, 9, 20}, {3, 1, 7, 7}, {1}, {3}, {1}, 3},
    {{1, 3, 30, 37}, {3, 1, 5, 3}, {2}, {2}, {1}, 3},
    {{1, 2, 19, 70}, {2, 1, 3, 5}, {2, 1}, {1, 0}, {1}, 2},
    {{1, 6, 12, 18}, {2, 3, 3, 3}, {1}, {1}, {1}, 2},
    {{1, 6, 12, 8}, {2, 3, 3, 3}, {1}, {4}, {1}, 2},
    {{1, 2, 4, 9, 12}, {2, 1, 2, 3, 3}, {1}, {1}, {1}, 2},
    {{1, 8, 10, 9}, {6, 4, 3, 2}, {1}, {0}, {1}, 2},  // groups
    {{1, 3, 15, 17}, {4, 3, 3, 3}, {1}, {2}, {2}},    // dilation
    {{1, 3, 15, 17}, {4, 3, 3, 4}, {2, 3}, {1, 2}, {3, 2}},
    {{1, 2, 9, 9}, {3, 2, 2, 2}, {3}},  // a stride beyond the kernel
    {{1, 2, 9, 9}, {3, 2, 2, 2}, {4}, {3}},
    {{1, 20, 4, 40}, {5, 20, 4, 5}},  // one row of results, a sum over 400
    {{2, 40, 6, 6}, {20, 40, 3, 3}},
    {{1, 8, 70, 130}, {4, 8, 3, 3}, {1}, {1}},  // two bands of a weight's gradient
    {{2, 4, 50}, {6, 4, 7}, {2}, {3}},          // one dimension
    {{2, 4, 50}, {4, 1, 3}, {1}, {2}, {2}, 4},
    {{1, 2, 5, 6, 7}, {3, 2, 3, 3, 3}, {1}, {1}},  // three
    {{1, 4, 6, 6, 7}, {6, 2, 2, 3, 3}, {2, 1, 2}, {1, 0, 1}, {2, 1, 1}, 2},
    {{1, 3, 4, 5, 5}, {2, 3, 1, 3, 3}, {1}, {0}},
    {{2, 5, 7, 7}, {5, 4, 3, 3}, {2}, {1}, {1}, 1, true, {1}},  // transposed
    {{1, 6, 5, 8}, {6, 2, 4, 4}, {2}, {1}, {1}, 2, true},
    {{1, 3, 5, 5}, {3, 4, 1, 1}, {1}, {0}, {1}, 1, true},
    {{1, 3, 5}, {3, 4, 3}, {3}, {0}, {2}, 1, true, {2}},
    {{1, 3, 9}, {3, 14, 20}, {7}, {2}, {1}, 1, true, {3}},
    {{1, 3, 2, 3}, {3, 5, 5, 3}, {4}, {3}, {1}, 1, true},
    {{1, 4, 8, 20}, {4, 1, 3, 3}, {1}, {1}, {1}, 4, true},
    {{1, 40, 7, 7}, {40, 40, 3, 3}, {1}, {1}},  // vectors along the channels
    {{2, 50, 5, 7}, {37, 50, 3, 3}, {1}, {1}},
    {{1, 2, 6, 6}, {13, 2, 3, 3}, {1}, {20}},  // more zeros than a vector
    {{1, 3, 40, 12}, {5, 3, 3, 3}, {2}, {3}},
    {{0, 3, 8, 8}, {4, 3, 3, 3}},  // empty
    {{2, 0, 8, 8}, {4, 0, 3, 3}},
};

TEST(convolution, is_the_cross_correlation_at_every_level) {
  ThreadPool pool(2);
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i);
    const Case& c = cases[i];
    const std::vector<index_t> sizes = output_sizes(c);
    const Array x = Array::random(c.input, 1), w = Array::random(c.weight, 2),
                bias = Array::random({sizes[1]}, 3), out(sizes);
    std::vector<double> want(size_t(out.numel())), magnitude(want.size());
    const index_t channels = sizes[1];
    const index_t plane = channels == 0 || sizes[0] == 0 ? 1 : out.numel() / (sizes[0] * channels);
    for (size_t e = 0; e < want.size(); ++e)
      want[e] = bias[index_t(e) / plane % channels], magnitude[e] = 1;
    for_products(c, [&](index_t xi, index_t wi, index_t yi) {
      const double term = double(w[wi]) * (c.transposed ? x[yi] : x[xi]);
      const size_t to = size_t(c.transposed ? xi : yi);
      want[to] += term, magnitude[to] += std::abs(term);
    });
    for (const Kernel* kernel : kernels_of(ops::convolution)) {
      const Array got = forward(*kernel, c, x, w, &bias);
      expect_near(got, want, magnitude, kernel->name);
      if (i % 3 != 0) continue;
      EXPECT_EQ(forward(*kernel, c, x, w, &bias, pool.threads()).values(), got.values())
          << kernel->name << " with two threads";
    }
  }
}

TEST(convolution_backward, is_the_gradient_at_every_level) {
  ThreadPool pool(2);
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i);
    const Case& c = cases[i];
    const Array x = Array::random(c.input, 4), w = Array::random(c.weight, 5),
                dy = Array::random(output_sizes(c), 6);
    std::vector<double> dx(size_t(x.numel())), dw(size_t(w.numel())), db(size_t(dy.size(1)));
    std::vector<double> dx_magnitude(dx.size()), dw_magnitude(dw.size()), db_magnitude(db.size());
    for_products(c, [&](index_t xi, index_t wi, index_t yi) {
      const index_t from = c.transposed ? yi : xi, to = c.transposed ? xi : yi;
      const double through_w = double(w[wi]) * dy[to], through_x = double(x[from]) * dy[to];
      dx[size_t(from)] += through_w, dx_magnitude[size_t(from)] += std::abs(through_w);
      dw[size_t(wi)] += through_x, dw_magnitude[size_t(wi)] += std::abs(through_x);
    });
    for (index_t e = 0; e < dy.numel(); ++e) {
      const size_t channel = size_t(e / (dy.numel() / (dy.size(0) * dy.size(1))) % dy.size(1));
      db[channel] += dy[e], db_magnitude[channel] += std::abs(dy[e]);
    }
    for (const Kernel* kernel : kernels_of(ops::convolution_backward)) {
      SCOPED_TRACE(kernel->name);
      const Gradients got = backward(*kernel, c, dy, x, w);
      expect_near(got.input, dx, dx_magnitude, "grad_input");
      expect_near(got.weight, dw, dw_magnitude, "grad_weight");
      expect_near(got.bias, db, db_magnitude, "grad_bias");
      if (i % 3 != 0) continue;
      const Gradients threaded = backward(*kernel, c, dy, x, w, pool.threads());
      EXPECT_EQ(threaded.input.values(), got.input.values());
      EXPECT_EQ(threaded.weight.values(), got.weight.values());
      EXPECT_EQ(threaded.bias.values(), got.bias.values());
    }
  }
}

TEST(convolution, gives_an_image_the_same_bits_alone_and_in_a_batch) {
  const Case batch{{5, 8, 13, 13}, {10, 8, 3, 3}, {1}, {1}};
  Case single = batch;
  single.input[0] = 1;
  const Array x = Array::random(batch.input, 7), w = Array::random(batch.weight, 8);
  for (const Kernel* kernel : kernels_of(ops::convolution)) {
    const Array all = forward(*kernel, batch, x, w, nullptr);
    for (index_t n = 0; n < 5; ++n) {
      Array one(single.input);
      for (index_t i = 0; i < one.numel(); ++i) one[i] = x[n * one.numel() + i];
      const Array got = forward(*kernel, single, one, w, nullptr);
      EXPECT_TRUE(std::equal(got.data(), got.data() + got.numel(), all.data() + n * got.numel()));
    }
  }
}

// Tensors are small, and the image with its zeros has 2^64 elements and more.
TEST(convolution, refuses_an_image_that_it_cannot_count_between_its_zeros) {
  const int64_t most = (int64_t{1} << 30) - 1, half = int64_t{1} << 29;
  const Case hostile[] = {
      {{1, 16, 2, 2}, {16, 16, 2, 2}, {most}, {half, most}, {most, most}},
      {{1, 16, 2, 2}, {16, 16, 2, 2}, {1}, {half}, {most}, 1, true},
      {{1, 16, 2, 2}, {16, 16, 1, 1}, {most}, {most}},
  };
  for (const Case& c : hostile) {
    const std::vector<index_t> sizes = output_sizes(c);
    for (size_t d = 0; d < sizes.size(); ++d) ASSERT_TRUE(sizes[d] > 0 && sizes[d] < 100);
    const Array x(c.input), w(c.weight), out(sizes), bias({sizes[1]});
    std::vector<Slot> slots = with_parameters({slot(x), slot(w), absent()}, c);
    slots.push_back(slot(out));
    const std::vector<int64_t> mask{1, 1, 1};
    std::vector<Slot> back = with_parameters({slot(out), slot(x), slot(w), absent_list()}, c);
    for (const Slot& s : {slot(mask), slot(x), slot(w), slot(bias)}) back.push_back(s);
    alignas(8) std::byte plan[max_plan_bytes];
    for (const Kernel* k : kernels_of(ops::convolution)) {
      Context context;
      EXPECT_EQ(k->prepare(context, plan, slots.data()), Error::not_supported) << k->name;
    }
    for (const Kernel* k : kernels_of(ops::convolution_backward)) {
      Context context;
      EXPECT_EQ(k->prepare(context, plan, back.data()), Error::not_supported) << k->name;
    }
  }
}

TEST(convolution, takes_as_little_scratch_for_a_batch_as_for_an_image) {
  for (const Kernel* kernel : kernels_of(ops::convolution)) {
    size_t bytes[2];
    for (index_t batch : {1, 32}) {
      const Case c{{batch, 16, 64, 64}, {16, 16, 3, 3}, {1}, {1}};
      const Array x(c.input), w(c.weight), out(output_sizes(c));
      std::vector<Slot> slots = with_parameters({slot(x), slot(w), absent()}, c);
      slots.push_back(slot(out));
      alignas(8) std::byte plan[max_plan_bytes];
      Context context;
      ASSERT_EQ(kernel->prepare(context, plan, slots.data()), Error::ok);
      bytes[batch > 1] = context.scratch_bytes;
    }
    EXPECT_EQ(bytes[0], bytes[1]);
    EXPECT_LE(bytes[0], size_t{512} << 10);
  }
}

// Counts how often a kernel hands tasks out.
struct CountingThreads {
  int calls = 0;
  Threads threads{2, this, [](void* self, Threads::Task task, void* context, index_t tasks) {
                    ++static_cast<CountingThreads*>(self)->calls;
                    for (index_t i = 0; i < tasks; ++i) task(context, i, 0);
                  }};
};

TEST(convolution, stays_with_one_thread_where_handing_out_would_take_longer) {
  const Case small{{2, 4, 7, 8}, {6, 4, 3, 3}, {1}, {1}},
      large{{4, 32, 28, 28}, {32, 32, 3, 3}, {1}, {1}};
  for (const Case* c : {&small, &large}) {
    const Array x = Array::random(c->input, 1), w = Array::random(c->weight, 2),
                dy = Array::random(output_sizes(*c), 3);
    for (const Kernel* kernel : kernels_of(ops::convolution)) {
      CountingThreads counting;
      forward(*kernel, *c, x, w, nullptr, &counting.threads);
      EXPECT_EQ(counting.calls > 0, c == &large) << kernel->name;
    }
    for (const Kernel* kernel : kernels_of(ops::convolution_backward)) {
      CountingThreads counting;
      backward(*kernel, *c, dy, x, w, &counting.threads);
      EXPECT_EQ(counting.calls > 0, c == &large) << kernel->name;
    }
  }
}

TEST(convolution_backward, computes_only_what_the_mask_asks_for) {
  const Case c{{2, 3, 8, 8}, {4, 3, 3, 3}, {1}, {1}};
  const Array x = Array::random(c.input, 9), w = Array::random(c.weight, 10),
              dy = Array::random(output_sizes(c), 11);
  for (const Kernel* kernel : kernels_of(ops::convolution_backward)) {
    const Gradients all = backward(*kernel, c, dy, x, w);
    Array weight(c.weight);
    const std::vector<int64_t> mask{0, 1, 0};
    std::vector<Slot> slots = with_parameters({slot(dy), slot(x), slot(w), absent_list()}, c);
    slots.push_back(slot(mask)), slots.push_back(absent()), slots.push_back(slot(weight)),
        slots.push_back(absent());
    call(*kernel, slots);
    EXPECT_EQ(weight.values(), all.weight.values());
  }
}

}  // namespace
}  // namespace taper::tests
