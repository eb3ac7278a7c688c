#include "taper/exporter/eager/control_flow.h"

#include <algorithm>
#include <unordered_set>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager {
namespace {

using Tensors = std::vector<Tensor>;
using Step = std::function<Scanned(const Tensors& carried, const Tensors& slices)>;

Tensors joined(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Tensors part(const Tensors& list, size_t first, size_t count) {
  const auto begin = list.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

/// One boolean, from a tensor of any dtype with one element.
Tensor as_boolean(const Tensor& tensor, const char* what, Location here) {
  if (!tensor.defined()) throw EagerError(here, std::string(what) + ": the condition is undefined");
  if (!proves_equal(tensor.numel(), 1))
    throw EagerError(here, std::string(what) + ": the condition must have one element, got size " +
                               to_string(tensor.sizes()));
  return tensor.dtype() == DType::boolean ? tensor : ne(tensor, 0, here);
}

bool is_true(const Tensor& condition, const char* what, Location here) {
  return as_boolean(condition, what, here).item<bool>(here);
}

void require_defined(const Tensors& tensors, const char* what, Location here) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].defined())
      throw EagerError(here, std::string(what) + ": tensor " + std::to_string(i) + " is undefined");
}

/// The values that a loop carries keep their types, so that a program can keep each in one place.
void require_same_types(const Tensors& before, const Tensors& after, const char* what,
                        Location here) {
  if (before.size() != after.size())
    throw EagerError(here, std::string(what) + ": the body must give " +
                               std::to_string(before.size()) +
                               " tensors, as many as are carried; "
                               "it gives " +
                               std::to_string(after.size()));
  for (size_t i = 0; i < before.size(); ++i)
    if (!after[i].defined() || before[i].dtype() != after[i].dtype() ||
        !same_sizes(before[i].sizes(), after[i].sizes()))
      throw EagerError(here,
                       std::string(what) + ": carried tensor " + std::to_string(i) + " must stay " +
                           name_of(before[i].dtype()) + " " + to_string(before[i].sizes()) +
                           ", but the body gives " +
                           (after[i].defined() ? name_of(after[i].dtype()) + std::string(" ") +
                                                     to_string(after[i].sizes())
                                               : "an undefined tensor"));
}

/// Copies a result that is an operand, or that the body returns twice, as a program does. Otherwise
/// a later write to one of them would change the other.
Tensors apart_from(const Tensors& operands, Tensors results, Location here) {
  std::unordered_set<const Storage*> others;
  for (const Tensor& operand : operands) others.insert(operand.impl()->storage.get());
  for (Tensor& result : results)
    if (result.defined() && !others.insert(result.impl()->storage.get()).second)
      result = result.clone(here);
  return results;
}

bool wants_gradient(const Tensor& t) { return is_inexact(t.dtype()) && t.requires_grad(); }
bool want_gradients(const Tensors& inputs) {
  return grad_enabled() && std::ranges::any_of(inputs, wants_gradient);
}

/// Puts the results of a recorded node on the tape, with this derivative.
Tensors on_tape(const char* name, const Tensors& inputs, const Tensors& results,
                std::function<Gradients(const Tensors&, const Tensors&, const Gradients&)> backward,
                Location here) {
  return apply({name, [&](const Tensors&) { return results; }, std::move(backward)}, inputs, here);
}

// ---- derivatives of bodies ----

Tensors floating(const Tensors& tensors) {
  Tensors result;
  std::ranges::copy_if(tensors, std::back_inserter(result),
                       [](const Tensor& t) { return is_floating(t.dtype()); });
  return result;
}

/// The gradients of the floating tensors in `inputs`, and of `captured`. Runs `body` once more.
Tensors gradients_of(const Body& body, const Tensors& inputs, const Tensors& captured,
                     const Tensors& result_gradients, Location here) {
  // an input that is on the tape stays on it: then the derivative of the derivative is wanted
  const bool again = grad_enabled() && std::ranges::any_of(inputs, wants_gradient);
  const NoGrad enabled(true);
  Tensors leaves;
  for (const Tensor& t : inputs) {
    leaves.push_back(wants_gradient(t) && again ? t : t.detach());
    if (is_floating(t.dtype()) && !leaves.back().requires_grad()) leaves.back().set_requires_grad();
  }
  const Tensors results = body(leaves);
  Tensors outputs, given;
  for (size_t i = 0; i < results.size(); ++i)
    if (wants_gradient(results[i]))
      outputs.push_back(results[i]), given.push_back(result_gradients.at(i));
  const Tensors wanted = joined(floating(leaves), captured);
  Tensors gradients = outputs.empty() ? Tensors(wanted.size())
                                      : grad(outputs, wanted, given, again, again, true, here);
  const NoGrad guard;
  for (size_t i = 0; i < gradients.size(); ++i)
    if (!gradients[i].defined()) gradients[i] = zeros_like(wanted[i], {}, here);
  return gradients;
}

/// Expands `gradients`, which belong to the floating tensors in `inputs`, to one entry for each
/// input.
Gradients beside(const Tensors& inputs, const Tensors& gradients) {
  Gradients all;
  size_t next = 0;
  for (const Tensor& t : inputs)
    all.push_back(is_floating(t.dtype()) ? gradients.at(next++) : Tensor());
  return all;
}

}  // namespace

// ---- branches ----

Tensors cond(const Tensor& pred, const Body& then, const Body& otherwise, const Tensors& operands,
             Location here) {
  require_defined(operands, "cond", here);
  Recorder* const r = recorder();
  if (r == nullptr)
    return apart_from(operands, is_true(pred, "cond", here) ? then(operands) : otherwise(operands),
                      here);

  const Tensor condition = as_boolean(pred, "cond", here);
  Tensors captured;
  const Tensors results = r->branch(condition, operands, then, otherwise, captured, here);
  std::erase_if(captured, [](const Tensor& t) { return !wants_gradient(t); });
  const Tensors inputs = joined(operands, captured);
  if (!want_gradients(inputs)) return results;
  const size_t count = operands.size();
  return on_tape(
      "cond", inputs, results,
      [=](const Tensors&, const Tensors&, const Gradients& gradients) {
        const auto derivative = [&](const Body& body) -> Body {
          return [=](const Tensors& in) {
            return gradients_of(body, part(in, 0, count), captured,
                                part(in, count, in.size() - count), here);
          };
        };
        const Tensors of_inputs = cond(condition, derivative(then), derivative(otherwise),
                                       joined(operands, gradients), here);
        return beside(inputs, of_inputs);
      },
      here);
}

// ---- loops ----

Tensors while_loop(const std::function<Tensor(const Tensors&)>& condition, const Body& body,
                   const Tensors& carried, Location here) {
  require_defined(carried, "while_loop", here);
  Recorder* const r = recorder();
  if (r == nullptr) {
    Tensors now = carried;
    while (is_true(condition(now), "while_loop", here)) {
      Tensors next = body(now);
      require_same_types(now, next, "while_loop", here);
      now = std::move(next);
    }
    return apart_from(carried, now, here);
  }
  const auto test = [&](const Tensors& now) -> Tensors {
    return {as_boolean(condition(now), "while_loop", here)};
  };
  const auto round = [&](const Tensors& now) {
    Tensors next = body(now);
    require_same_types(now, next, "while_loop", here);
    return next;
  };
  Tensors captured;
  const Tensors results = r->loop(carried, test, round, captured, here);
  const Tensors inputs = joined(carried, captured);
  if (!want_gradients(inputs)) return results;
  return on_tape(
      "while_loop", inputs, results,
      [here](const Tensors&, const Tensors&, const Gradients&) -> Gradients {
        throw EagerError(here,
                         "while_loop: backward() in a trace cannot go through this loop, because "
                         "the number of rounds is known only at run time; use scan(), or detach() "
                         "the carried tensors");
      },
      here);
}

// ---- loops over slices ----

namespace {

Dim slice_count(const Tensors& xs, Location here) {
  require_defined(xs, "scan", here);
  if (xs.empty()) throw EagerError(here, "scan: xs is empty; give at least one tensor");
  for (const Tensor& x : xs)
    if (x.rank() == 0)
      throw EagerError(here, "scan: a 0-dim x has no slices; each x needs a first dimension");
  const Dim count = xs[0].size(0, here);
  for (const Tensor& x : xs)
    if (proves_different(x.size(0, here), count))
      throw EagerError(here, "scan: all xs must have as many slices along dimension 0; got " +
                                 count.to_string() + " and " + x.size(0, here).to_string());
  return count;
}

Scanned run_scan(const Step& step, const Tensors& initial, const Tensors& xs, bool reverse,
                 Location here) {
  const int64_t count = slice_count(xs, here).value();
  if (count == 0)
    throw EagerError(here,
                     "scan: xs have no slices, so the results of a step are unknown; xs need at "
                     "least one slice");
  Tensors carried = initial;
  std::vector<Tensors> columns;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t i = reverse ? count - 1 - k : k;
    Tensors slices;
    for (const Tensor& x : xs) slices.push_back(x.select(0, i, here));
    Scanned now = step(carried, slices);
    require_same_types(carried, now.carried, "scan", here);
    carried = std::move(now.carried);
    columns.resize(now.results.size());
    for (size_t j = 0; j < columns.size(); ++j) columns[j].push_back(now.results[j]);
  }
  Scanned all{apart_from(initial, carried, here), {}};
  for (Tensors& column : columns) {
    if (reverse) std::ranges::reverse(column);
    all.results.push_back(stack(column, 0, here));
  }
  return all;
}

/// Records a loop that carries a counter, the values of the steps, and the results so far. Each
/// round writes its slice of the results in place, because nobody else holds them.
Scanned record_scan(const Step& step, const Tensors& initial, const Tensors& xs, bool reverse,
                    Tensors& captured, Location here) {
  const Dim count = slice_count(xs, here);
  const size_t carries = initial.size();
  const auto slices_at = [&](const Tensor& i) {
    Tensors slices;
    for (const Tensor& x : xs)
      slices.push_back(index_select(x, 0, i.reshape({1}, here), here).select(0, 0, here));
    return slices;
  };
  const Tensor zero = scalar_tensor(0, DType::i64, here);
  size_t results = 0;
  const Tensors first = recorder()->types_of(
      [&](const Tensors& in) {
        Scanned now = step(in, slices_at(zero));
        require_same_types(in, now.carried, "scan", here);
        results = now.results.size();
        return joined(now.carried, now.results);
      },
      initial, captured, here);
  Tensors carried = joined({zero}, initial);
  for (const Tensor& y : part(first, carries, results)) {
    Dims sizes = y.sizes();
    sizes.insert(sizes.begin(), count);
    carried.push_back(full(sizes, 0, y.dtype(), here));
  }
  const Tensor end = dim_as_tensor(count, DType::i64, here);
  const auto round = [&](const Tensors& in) {
    const Tensor at = reverse ? sub(sub(end, in[0], 1, here), 1, 1, here) : in[0];
    const Scanned now = step(part(in, 1, carries), slices_at(at));
    Tensors next = now.carried;
    for (size_t k = 0; k < results; ++k)
      next.push_back(index_copy(in[1 + carries + k], 0, at.reshape({1}, here),
                                now.results[k].unsqueeze(0, here), here));
    return joined({add(in[0], 1, 1, here)}, next);  // computed last, so that it counts in place
  };
  const auto more = [&](const Tensors& in) -> Tensors { return {lt(in[0], end, here)}; };
  Tensors of_loop;
  const Tensors last = recorder()->loop(carried, more, round, of_loop, here);
  return {part(last, 1, carries), part(last, 1 + carries, results)};
}

/// The gradients of the floating tensors in initial, xs and captured, in this order. First the
/// steps run again, to keep the values that each one starts with. Then the derivatives of the steps
/// run, the last one first.
Tensors scan_gradients(const Step& step, const Tensors& initial, const Tensors& xs,
                       const Tensors& captured, bool reverse, const Tensors& carried_gradients,
                       const Tensors& result_gradients, Location here) {
  const size_t carries = initial.size();
  const Tensors starts = scan(
                             [=](const Tensors& carried, const Tensors& slices) {
                               return Scanned{step(carried, slices).carried, carried};
                             },
                             initial, xs, reverse, here)
                             .results;
  const size_t slice_tensors = xs.size();
  const Body body = [=](const Tensors& in) {
    const Scanned now = step(part(in, 0, carries), part(in, carries, slice_tensors));
    return joined(now.carried, now.results);
  };
  Tensors sums = floating(carried_gradients);
  const size_t floating_carries = sums.size();
  for (const Tensor& t : captured) sums.push_back(zeros_like(t, {}, here));
  const Step backward_step = [=](const Tensors& so_far, const Tensors& slices) {
    const Tensors inputs = part(slices, 0, carries + slice_tensors);
    const Tensors of_results = part(slices, inputs.size(), slices.size() - inputs.size());
    // a carried tensor that is not floating has no gradient, and nothing reads one
    Tensors of_carried(carries);
    size_t next = 0;
    for (size_t i = 0; i < carries; ++i)
      if (is_floating(initial[i].dtype())) of_carried[i] = so_far[next++];
    const Tensors gradients =
        gradients_of(body, inputs, captured, joined(of_carried, of_results), here);
    const size_t of_slices = gradients.size() - floating_carries - captured.size();
    Scanned now{part(gradients, 0, floating_carries), part(gradients, floating_carries, of_slices)};
    for (size_t i = 0; i < captured.size(); ++i)
      now.carried.push_back(
          add(so_far[floating_carries + i], gradients[floating_carries + of_slices + i], 1, here));
    return now;
  };
  const Scanned all =
      scan(backward_step, sums, joined(joined(starts, xs), result_gradients), !reverse, here);
  return joined(joined(part(all.carried, 0, floating_carries), all.results),
                part(all.carried, floating_carries, captured.size()));
}

}  // namespace

Scanned scan(const Step& step, const Tensors& initial, const Tensors& xs, bool reverse,
             Location here) {
  require_defined(initial, "scan", here);
  if (recorder() == nullptr) return run_scan(step, initial, xs, reverse, here);
  Tensors captured;
  const Scanned all = record_scan(step, initial, xs, reverse, captured, here);
  std::erase_if(captured, [](const Tensor& t) { return !wants_gradient(t); });
  const Tensors inputs = joined(joined(initial, xs), captured);
  if (!want_gradients(inputs)) return all;
  const size_t carries = initial.size();
  const Tensors results = on_tape(
      "scan", inputs, joined(all.carried, all.results),
      [=](const Tensors&, const Tensors&, const Gradients& gradients) {
        return beside(inputs, scan_gradients(
                                  step, initial, xs, captured, reverse, part(gradients, 0, carries),
                                  part(gradients, carries, gradients.size() - carries), here));
      },
      here);
  return {part(results, 0, carries), part(results, carries, results.size() - carries)};
}

Tensors map(const Body& body, const Tensors& xs, Location here) {
  return scan(
             [&](const Tensors&, const Tensors& slices) {
               return Scanned{{}, body(slices)};
             },
             {}, xs, false, here)
      .results;
}

}  // namespace taper::eager
