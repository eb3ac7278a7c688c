#include "taper/kernels/optimized/correlation.h"

#include <cstring>

#include "taper/kernels/optimized/correlation_operands.h"
#include "taper/kernels/optimized/correlation_sweep.h"

namespace taper::optimized {

namespace {

using namespace correlation;

constexpr index_t least_work = 1 << 18;  // multiply-adds worth a task

// Multiply-adds of a row of the result of one image and group.
index_t row_work(const Layout& l) {
  return l.result_channels * l.depth() * (l.width.end - l.width.begin);
}

// Whether panels that lie in memory belong to one group each.
bool are_packed(const Correlation& c, taper::Layout weight) {
  return weight != taper::Layout::dense && (c.groups == 1 || c.outputs % panel_width == 0);
}

}  // namespace

CorrelationPlan plan_correlation(const Microkernels& kernels, const Correlation& c,
                                 Direction direction, int thread_count,
                                 taper::Layout weight_layout) {
  constexpr index_t planes_floats = 64 * 1024;  // stay in the second-level cache

  const Layout l(c, direction, 1);
  const index_t positions = larger(1, l.height.end - l.height.begin), reach = l.height.reach;
  const index_t row =
      larger(1, l.virtual_channels * l.phases() * l.pitch);  // floats of one row of all planes
  CorrelationPlan plan;
  plan.band = l.plain ? positions : larger(1, smaller(positions, planes_floats / row - reach));

  const index_t result_depth = direction == Direction::forward ? c.out[0] : c.in[0],
                images = c.batch * c.groups * result_depth;
  const index_t wanted = thread_count > 1 ? 4 * index_t{thread_count} : 1;
  const auto tasks = [&] { return images * ceil_div(positions, plan.band) * plan.parts; };
  const auto cut_channels = [&] {
    const Panels panels(kernels, Layout(c, direction, plan.band), are_packed(c, weight_layout));
    const index_t most = smaller(panels.count, plan.band * row_work(l) / least_work);
    plan.parts = larger(1, smaller(most, ceil_div(wanted, larger(1, tasks()))));
  };
  // every thread reads what is not cut: the weights, or the planes
  if (l.result_channels * l.depth() > (plan.band + reach) * row) cut_channels();
  while (tasks() < wanted && plan.band > 1 && plan.band * row_work(l) >= 2 * least_work)
    plan.band = ceil_div(plan.band, 2);
  plan.band = ceil_div(positions, ceil_div(positions, plan.band));
  if (plan.parts == 1) cut_channels();

  // What a larger shape would not need less of.
  const index_t planes =
      l.plain ? 0
              : smaller((positions + reach) * row, larger(planes_floats, (1 + reach) * row)) +
                    behind_planes;
  const index_t channels = Panels::most_channels(kernels, l.result_channels);
  plan.shared_bytes = bytes_of_floats(c.groups * channels * l.depth()) +
                      round_up((l.depth() + Microkernels::rows_ahead) * index_t{sizeof(index_t)},
                               scratch_alignment);
  plan.slots = thread_count;
  plan.bytes_per_slot = bytes_of_floats(planes);
  return plan;
}

void run_correlation(const Microkernels& kernels, const ImageTiles& images,
                     const CorrelationPlan& plan, const Correlation& c, Direction direction,
                     const float* source, const float* weight, taper::Layout weight_layout,
                     const float* bias, Activation activation, float* result, void* scratch,
                     const Threads* threads) {
  const bool forward = direction == Direction::forward;
  const Layout l(c, direction, plan.band);
  const bool are_panels = are_packed(c, weight_layout);
  const Panels panels(kernels, l, are_panels);
  const PackedMatrix given{weight_layout != taper::Layout::dense ? weight : nullptr, l.depth()};
  const index_t group_weights = panels.padded_channels() * l.depth();
  float* packed = static_cast<float*>(scratch);
  const bool uses_panels = are_panels && panels.turned(),
             is_single = given.data == nullptr && forward && l.result_channels == 1,
             is_packed = uses_panels || is_single;  // the latter by nature
  const float* weights = is_single ? weight : packed;
  index_t* offsets = reinterpret_cast<index_t*>(static_cast<std::byte*>(scratch) +
                                                bytes_of_floats(c.groups * group_weights));
  index_t* behind = offsets;  // a small result does not have every phase
  for_phases(c, l, direction, [&](const Phase& p) {
    write_offsets(c, l, p, offsets + p.before * l.virtual_channels);
    behind = offsets + (p.before + p.taps) * l.virtual_channels;
  });
  for (int i = 0; i < Microkernels::rows_ahead; ++i) behind[i] = 0;
  const auto pack_panel = [&](index_t group, index_t panel, index_t place) {
    PanelOfWeights{kernels,
                   c,
                   l,
                   direction,
                   panels,
                   panels.first(panel),
                   panels.rows(panel),
                   panels.width(panel),
                   place,
                   weight + group * c.outputs * c.inputs * c.taps(),
                   given,
                   group * l.result_channels,
                   packed + group * group_weights}
        .pack();
  };
  const index_t bands = ceil_div(l.height.end - l.height.begin, l.band);
  const index_t result_depth = forward ? c.out[0] : c.in[0],
                source_plane = forward ? c.in_plane() : c.out_plane();
  if (c.batch * c.groups * result_depth * (l.height.end - l.height.begin) * row_work(l) <
      least_work)
    threads = nullptr;
  // Large weights that one task alone needs are packed panel by panel, each just before it is
  // multiplied and into the place of the one before it, which stays in the cache.
  const bool packs_late =
      !is_packed && c.batch * result_depth * bands == 1 && panels.channels * l.depth() > l.planes();
  parallel_for(threads, is_packed || packs_late ? 0 : c.groups * panels.count, [&](index_t i) {
    const index_t panel = i % panels.count;
    pack_panel(i / panels.count, panel, panels.first(panel));
  });

  const auto planes_of = [&](index_t slot) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + plan.shared_bytes +
                                    slot * plan.bytes_per_slot);
  };
  for (index_t slot = 0; !l.plain && slot < plan.slots; ++slot)
    std::memset(planes_of(slot) + l.planes(), 0, behind_planes * sizeof(float));

  const index_t result_image = l.height.result_extent * l.width.result_extent,
                result_plane = result_depth * result_image;
  parallel_for_threads(
      threads, c.batch * c.groups * result_depth * bands * plan.parts,
      [&](index_t part_task, index_t slot) {
        const index_t task = part_task / plan.parts, part = part_task % plan.parts;
        const index_t q0 = l.height.begin + task % bands * l.band, z = task / bands % result_depth,
                      unit = task / (bands * result_depth);
        const index_t q1 = smaller(l.height.end, q0 + l.band),
                      group = unit % c.groups;  // unit: (image, group)
        const float* from = source + unit * l.source_channels * source_plane;
        const float* planes = from + z * l.height.source_extent * l.width.source_extent +
                              q0 * l.pitch;  // if they are plain
        if (!l.plain) {
          fill_planes(kernels, images, c, l, direction, from, z, q0, planes_of(slot));
          planes = planes_of(slot);
        }
        const auto run_panels = [&](index_t first_panel, index_t last_panel, index_t place,
                                    const Phase& p) {
          const index_t top = larger(q0, l.height.first(p.row)), left = l.width.first(p.column);
          Sweep s;
          s.panels = &panels, s.first_panel = first_panel, s.last_panel = last_panel,
          s.place = place, s.depth = p.taps * l.virtual_channels;
          s.row_step = c.dilation[1] == 1 && (forward || c.stride[1] == 1) ? c.stride[1] : 0;
          s.tap_rows = s.row_step > 0 ? c.kernel[1] : 1, s.tap_columns = p.taps / s.tap_rows;
          s.weight = weights + group * group_weights +
                     p.before * l.virtual_channels * panels.padded_channels();
          if (uses_panels) s.packed = {given.at(group * l.result_channels, 0), given.depth};
          s.offsets = offsets + p.before * l.virtual_channels;
          s.base = planes + (top - q0) * l.pitch + (left - l.width.begin);
          s.planes = l.planes(), s.pitch = l.pitch,
          s.height = smaller(q1, l.height.last(p.row)) - top,
          s.width = l.width.last(p.column) - left;
          s.result = result + unit * l.result_channels * result_plane + z * result_image +
                     (top * l.height.result_step + p.row - l.height.result_origin) *
                         l.width.result_extent +
                     left * l.width.result_step + p.column - l.width.result_origin;
          s.result_channel = result_plane,
          s.result_row = l.height.result_step * l.width.result_extent,
          s.result_column = l.width.result_step;
          s.bias = bias == nullptr ? nullptr : bias + group * l.result_channels,
          s.activation = activation;
          run_sweep(kernels, images, s, direction);
        };
        const index_t first = part_begin(panels.count, plan.parts, part),
                      last = part_begin(panels.count, plan.parts, part + 1);
        if (first == last) return;
        const index_t place = panels.first(first), step = packs_late ? 1 : last - first;
        for (index_t panel = first; panel < last; panel += step) {
          if (packs_late) pack_panel(group, panel, place);
          for_phases(c, l, direction,
                     [&](const Phase& p) { run_panels(panel, panel + step, place, p); });
        }
      });
}

}  // namespace taper::optimized
