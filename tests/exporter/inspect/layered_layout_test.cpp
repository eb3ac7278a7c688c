#include "taper/exporter/inspect/layered_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace taper::inspect {
namespace {

Layout layout_of(int boxes, const std::vector<std::pair<int, int>>& edges) {
  Layout layout;
  for (int i = 0; i < boxes; ++i) layout.boxes.push_back({40, 20});
  for (const auto& [from, to] : edges) layout.edges.push_back({from, to, {}});
  lay_out(layout);
  return layout;
}

void expect_no_overlap(const Layout& layout) {
  for (size_t i = 0; i < layout.boxes.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const LayoutBox &a = layout.boxes[i], &b = layout.boxes[j];
      const bool apart = std::abs(a.x - b.x) >= (a.width + b.width) / 2 - 1e-6 ||
                         std::abs(a.y - b.y) >= (a.height + b.height) / 2 - 1e-6;
      EXPECT_TRUE(apart) << i << " and " << j;
    }
}

TEST(layered_layout, draws_a_chain_as_a_straight_column) {
  const Layout layout = layout_of(4, {{0, 1}, {1, 2}, {2, 3}});
  for (int i = 1; i < 4; ++i) {
    EXPECT_NEAR(layout.boxes[i].x, layout.boxes[0].x, 1e-6);
    EXPECT_GT(layout.boxes[i].y, layout.boxes[i - 1].y);
  }
  EXPECT_DOUBLE_EQ(layout.width, 40);
}

TEST(layered_layout, uncrosses_two_columns) {
  // 0 -> 3 and 1 -> 2: as given they would cross
  const Layout layout = layout_of(4, {{0, 3}, {1, 2}});
  EXPECT_EQ(layout.boxes[0].x < layout.boxes[1].x, layout.boxes[3].x < layout.boxes[2].x);
}

TEST(layered_layout, leads_a_long_edge_past_the_boxes_between) {
  const Layout layout = layout_of(3, {{0, 1}, {1, 2}, {0, 2}});
  const LayoutBox& between = layout.boxes[1];
  for (const LayoutEdge::Point& p : layout.edges[2].points)
    if (std::abs(p.y - between.y) < between.height / 2 + 1) {
      EXPECT_GE(std::abs(p.x - between.x), between.width / 2);
    }
}

TEST(layered_layout, never_overlaps_boxes_and_points_every_edge_down) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const int n = 2 + static_cast<int>(random() % 40);
    std::vector<std::pair<int, int>> edges;
    for (int to = 1; to < n; ++to)
      for (unsigned k = random() % 3; k > 0; --k)
        edges.emplace_back(static_cast<int>(random() % static_cast<unsigned>(to)), to);
    const Layout layout = layout_of(n, edges);
    expect_no_overlap(layout);
    for (const LayoutEdge& e : layout.edges) {
      EXPECT_LT(layout.boxes[e.from].y, layout.boxes[e.to].y);
      EXPECT_DOUBLE_EQ(e.points.front().x, layout.boxes[e.from].x);
      EXPECT_DOUBLE_EQ(e.points.back().x, layout.boxes[e.to].x);
    }
    for (const LayoutBox& b : layout.boxes) {
      EXPECT_GE(b.x - b.width / 2, -1e-6);
      EXPECT_LE(b.x + b.width / 2, layout.width + 1e-6);
    }
  }
}

TEST(layered_layout, of_nothing_is_empty) { EXPECT_EQ(layout_of(0, {}).height, 0); }

}  // namespace
}  // namespace taper::inspect
