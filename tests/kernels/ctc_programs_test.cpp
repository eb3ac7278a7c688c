// The loss of sequences whose lengths only a run knows, and its gradient, in programs.
#include <limits>

#include "taper/tests/kernels/program_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using Values = std::vector<Tensor>;

/// The loss, and the gradient of the numbers that go into the softmax.
Values loss_and_gradient(const Values& in, Reduction reduction) {
  const Tensor x = in[0].detach().set_requires_grad();
  const Tensor loss = ctc_loss(log_softmax(x, 2), in[1], in[2], in[3], 0, reduction, true);
  return {loss, grad({sum(loss)}, {x})[0]};
}
Tensor lengths(const std::vector<int64_t>& values, DType dtype = DType::i64) {
  return Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())}).to(dtype);
}
Tensor rows_of_classes(int64_t batch, int64_t length) {
  std::vector<int64_t> classes(static_cast<size_t>(batch * length));
  for (size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<int64_t>(1 + i * i % 4);
  return Tensor::from(classes, {batch, length});
}

// Outside a trace, `ctc_loss` calls the operator whose lengths are numbers.
TEST(ctc_loss, reads_lengths_when_a_program_runs) {
  const Dim batch = Dim::symbol("batch", 1, 4), time = Dim::symbol("time", 1, 9);
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const auto f = [&](const Values& in) { return loss_and_gradient(in, reduction); };
    const std::vector<Values> calls{
        {random_tensor({9, 3, 5}), rows_of_classes(3, 4), lengths({9, 5, 7}), lengths({4, 0, 2})},
        {random_tensor({6, 2, 5}, 2), rows_of_classes(2, 4), lengths({6, 0}), lengths({3, 0})},
        {random_tensor({2, 1, 5}, 3), rows_of_classes(1, 4), lengths({2}), lengths({4})}};
    expect_same_bits_in_program(
        f,
        {input("x", {time, batch, 5}), input("targets", {batch, 4}, DType::i64),
         input("times", {batch}, DType::i64), input("lengths", {batch}, DType::i64)},
        calls);
  }
}
TEST(ctc_loss, reads_lengths_of_targets_in_one_line) {
  const auto f = [](const Values& in) { return loss_and_gradient(in, Reduction::mean); };
  const std::vector<InputSpec> inputs{input("x", {6, 3, 5}), input("targets", {5}, DType::i64),
                                      input("times", {3}, DType::i32),
                                      input("lengths", {3}, DType::i32)};
  const Tensor targets = lengths({1, 2, 2, 4, 3});
  std::vector<Values> calls;
  for (const std::vector<int64_t>& each : {std::vector<int64_t>{3, 0, 2}, {1, 1, 3}, {0, 5, 0}})
    calls.push_back({random_tensor({6, 3, 5}), targets, lengths({6, 5, 4}, DType::i32),
                     lengths(each, DType::i32)});
  expect_same_bits_in_program(f, inputs, calls);
}
TEST(ctc_loss, refuses_lengths_that_a_run_finds_outside) {
  const auto f = [](const Values& in) {
    return Values{ctc_loss(in[0], in[1], in[2], in[3], 0, Reduction::none)};
  };
  const InProgram rows(f, {input("x", {4, 2, 3}), input("targets", {2, 3}, DType::i64),
                           input("times", {2}, DType::i64), input("lengths", {2}, DType::i64)});
  const Tensor x = zeros({4, 2, 3}), targets = ones({2, 3}, DType::i64);
  constexpr int64_t far = std::numeric_limits<int64_t>::max();
  for (const int64_t bad : {int64_t{-1}, int64_t{5}, far, -far})
    EXPECT_EXPORT_ERROR(rows.run({x, targets, lengths({4, bad}), lengths({3, 3})}),
                        "input length " + std::to_string(bad) + " is outside [0, 4]");
  for (const int64_t bad : {int64_t{-1}, int64_t{4}, far, -far})
    EXPECT_EXPORT_ERROR(rows.run({x, targets, lengths({4, 4}), lengths({bad, 3})}),
                        "target length " + std::to_string(bad) + " is outside [0, 3]");
  EXPECT_EXPORT_ERROR(rows.run({x, targets * 3, lengths({4, 4}), lengths({3, 3})}),
                      "target 3 is outside [0, 3)");
  const InProgram line(f, {input("x", {4, 2, 3}), input("targets", {3}, DType::i64),
                           input("times", {2}, DType::i64), input("lengths", {2}, DType::i64)});
  EXPECT_EXPORT_ERROR(line.run({x, lengths({1, 1, 2}), lengths({4, 4}), lengths({2, 2})}),
                      "target length 2 is outside [0, 1]");
  EXPECT_EXPORT_ERROR(line.run({x, lengths({1, 1, 2}), lengths({4, 4}), lengths({1, 1})}),
                      "there are 3 targets, their lengths make 2");
}
TEST(ctc_loss, takes_one_sequence_without_a_batch_in_programs) {
  const auto f = [](const Values& in) { return Values{ctc_loss(in[0], in[1], in[2], in[3])}; };
  const auto number = [](int64_t n) { return full({}, n, DType::i64); };
  expect_same_bits_in_program(
      f,
      {input("x", {4, 3}), input("targets", {2}, DType::i64), input("time", {}, DType::i64),
       input("length", {}, DType::i64)},
      {{log_softmax(random_tensor({4, 3}), 1), lengths({1, 2}), number(4), number(2)},
       {log_softmax(random_tensor({4, 3}), 1), lengths({1, 2}), number(3), number(1)}});
}

}  // namespace
}  // namespace taper::eager
