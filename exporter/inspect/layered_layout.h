// Places the boxes of an acyclic graph in layers, from top to bottom, with few crossings and
// straight lines.
//
// The method of Sugiyama, Tagawa and Toda (1981): layers by longest path; long edges pass every
// layer between through a point of their own; order within layers by repeated barycentres; then
// horizontal positions by least squares.
#pragma once
#include <vector>

namespace taper::inspect {

struct LayoutBox {
  double width, height;
  double x = 0, y = 0;  ///< the centre; a result
};

struct LayoutEdge {
  int from, to;  ///< boxes; `from` < `to`
  struct Point {
    double x, y;
  };
  std::vector<Point>
      points;  ///< from the lower side of one box to the upper side of the other; a result
};

struct Layout {
  std::vector<LayoutBox> boxes;
  std::vector<LayoutEdge> edges;
  double width = 0, height = 0;
};

/// Fills in the results. Boxes without edges stand in the first layer.
void lay_out(Layout& layout);

}  // namespace taper::inspect
