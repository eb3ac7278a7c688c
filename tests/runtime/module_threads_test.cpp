#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <thread>

#include "programs.h"
#include "taper/runtime/extension/module/module.h"
#include "test_kernels.h"
#include "written.h"

namespace taper::test {
namespace {

using testing::HasSubstr;

// docs/threads.md

std::atomic<bool> is_inside, may_leave;

// `add`, which says that a thread is inside, and keeps it there.
Kernel waiting_add() {
  Kernel k = add_f32;
  k.run = [](Context& context, const void* plan, const Slot* slots) {
    is_inside = true;
    while (!may_leave) std::this_thread::yield();
    return add_f32.run(context, plan, slots);
  };
  return k;
}

TEST(module, refuses_a_thread_while_another_one_is_inside) {
  const Kernel add = waiting_add();
  const Kernel* const set[] = {&add, &sum_rows_f32};
  is_inside = false, may_leave = false;
  Module model = Module::load(written(sums_program().bytes()), set).value();
  const std::array<float, 4> x = {1, 2, 3, 4};
  std::array<float, 1> first, second;
  std::thread inside([&] {
    EXPECT_EQ(model.forward({{x.data(), {1, 4}}}, {first}), Error::ok);
    EXPECT_EQ(model.message(), "");
  });
  while (!is_inside) std::this_thread::yield();
  const std::vector<Input> input = {{x.data(), {1, 4}}};
  EXPECT_EQ(model.forward(input, {second}), Error::busy);
  EXPECT_EQ(model.execute("forward", input).error(), Error::busy);
  EXPECT_EQ(model.method("forward").error(), Error::busy);
  EXPECT_EQ(model.state("weight").error(), Error::busy);
  EXPECT_EQ(model.set_state("weight", {}), Error::busy);
  const std::string why = "busy: another thread is inside this Module; give each thread its own";
  EXPECT_EQ(model.message(), why);
  may_leave = true;
  inside.join();
  EXPECT_EQ(first[0], 30);
  EXPECT_EQ(model.message(), why) << "why the last call of this thread failed";
  EXPECT_EQ(model.forward(input, {second}), Error::ok);
  EXPECT_EQ(model.message(), "");
  EXPECT_EQ(second[0], 30);
}

TEST(module, is_never_entered_twice) {
  Module model = Module::load(written(sums_program().bytes()), kernels).value();
  std::atomic<int> computed = 0;
  const auto call_often = [&](float start) {
    const std::array<float, 4> x = {start, 2, 3, 4};
    std::array<float, 1> sum;
    for (int i = 0; i < 2000; ++i) {
      const Error e = model.forward({{x.data(), {1, 4}}}, {sum});
      if (e == Error::ok) {
        EXPECT_EQ(sum[0], 3 * (start + 9));
        ++computed;
      } else {
        EXPECT_EQ(e, Error::busy);
        EXPECT_THAT(model.message(), HasSubstr("another thread is inside"));
      }
    }
  };
  std::thread a(call_often, 1.0f), b(call_often, 5.0f);
  a.join(), b.join();
  EXPECT_GE(computed, 1);
}

TEST(module, runs_beside_others_of_the_same_file) {
  const std::string path = written(sums_program().bytes());
  const auto call_often = [&](float start) {
    Module model = Module::load(path, kernels).value();
    const std::array<float, 4> x = {start, 2, 3, 4};
    std::array<float, 1> sum;
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(model.forward({{x.data(), {1, 4}}}, {sum}), Error::ok) << model.message();
      EXPECT_EQ(sum[0], 3 * (start + 9));
    }
  };
  std::thread a(call_often, 1.0f), b(call_often, 5.0f);
  a.join(), b.join();
}

}  // namespace
}  // namespace taper::test
