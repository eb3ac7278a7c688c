#include "taper/exporter/inspect/layered_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace taper::inspect {
namespace {

constexpr double gap_between_boxes = 24, gap_between_layers = 44, gap_beside_lines = 14;
constexpr int ordering_sweeps = 16, placing_sweeps = 24;

// A box, or the point where an edge passes a layer.
struct Vertex {
  int layer;
  double width;
  bool is_box;
  std::vector<int> above, below;  // neighbours in the next layers
  double x = 0;
};

class LayeredLayout {
 public:
  explicit LayeredLayout(Layout& layout) : layout_(layout) {}

  void run() {
    make_vertices();
    order_layers();
    place_layers();
    write_results();
  }

 private:
  // ---- layers ----

  // As deep as the longest path from above; what nothing points to stands just above its first
  // user.
  std::vector<int> box_layers() const {
    const size_t n = layout_.boxes.size();
    std::vector<int> layer(n, 0), first_user(n, std::numeric_limits<int>::max());
    std::vector<bool> is_source(n, true);
    std::vector<LayoutEdge> edges = layout_.edges;
    std::ranges::sort(edges, {}, &LayoutEdge::from);
    for (const LayoutEdge& e : edges)
      layer[e.to] = std::max(layer[e.to], layer[e.from] + 1), is_source[e.to] = false;
    for (const LayoutEdge& e : edges)
      first_user[e.from] = std::min(first_user[e.from], layer[e.to]);
    for (size_t i = 0; i < n; ++i)
      if (is_source[i] && first_user[i] != std::numeric_limits<int>::max())
        layer[i] = first_user[i] - 1;
    return layer;
  }

  void make_vertices() {
    const std::vector<int> layer = box_layers();
    for (size_t i = 0; i < layout_.boxes.size(); ++i)
      vertices_.push_back({layer[i], layout_.boxes[i].width, true, {}, {}});
    for (const LayoutEdge& e : layout_.edges) {
      std::vector<int>& chain = chains_.emplace_back();
      int last = e.from;
      for (int l = layer[e.from] + 1; l < layer[e.to]; ++l) {
        chain.push_back(static_cast<int>(vertices_.size()));
        vertices_.push_back({l, 0, false, {}, {}});
        connect(last, chain.back());
        last = chain.back();
      }
      connect(last, e.to);
    }
    for (size_t v = 0; v < vertices_.size(); ++v) {
      layers_.resize(std::max(layers_.size(), static_cast<size_t>(vertices_[v].layer) + 1));
      layers_[vertices_[v].layer].push_back(static_cast<int>(v));
    }
  }

  void connect(int upper, int lower) {
    vertices_[upper].below.push_back(lower);
    vertices_[lower].above.push_back(upper);
  }

  // ---- order within layers ----

  void order_layers() {
    rank_.resize(vertices_.size());
    for (const auto& layer : layers_) number(layer);
    auto best = layers_;
    int64_t fewest = crossings();
    for (int sweep = 0; sweep < ordering_sweeps && fewest > 0; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t i = 1; i < layers_.size(); ++i)
        sort_by_barycentre(down ? layers_[i] : layers_[layers_.size() - 1 - i], down);
      if (const int64_t now = crossings(); now < fewest) fewest = now, best = layers_;
    }
    layers_ = best;
    for (const auto& layer : layers_) number(layer);
  }

  void number(const std::vector<int>& layer) {
    for (size_t i = 0; i < layer.size(); ++i) rank_[layer[i]] = static_cast<double>(i);
  }

  void sort_by_barycentre(std::vector<int>& layer, bool by_upper) {
    std::vector<std::pair<double, int>> keys;
    for (const int v : layer) {
      const std::vector<int>& neighbours = by_upper ? vertices_[v].above : vertices_[v].below;
      double sum = 0;
      for (const int u : neighbours) sum += rank_[u];
      keys.emplace_back(
          neighbours.empty() ? rank_[v] : sum / static_cast<double>(neighbours.size()), v);
    }
    std::ranges::stable_sort(keys, {}, &std::pair<double, int>::first);
    std::ranges::transform(keys, layer.begin(), &std::pair<double, int>::second);
    number(layer);
  }

  // Pairs of edges between neighbouring layers whose ends stand in opposite order: inversions of
  // the lower ends, sorted by the upper ones, counted in a Fenwick tree.
  int64_t crossings() const {
    int64_t count = 0;
    for (const auto& layer : layers_) {
      std::vector<std::pair<int, int>> lines;
      int most = 0;
      for (const int v : layer)
        for (const int u : vertices_[v].below) {
          lines.emplace_back(static_cast<int>(rank_[v]), static_cast<int>(rank_[u]));
          most = std::max(most, lines.back().second);
        }
      std::ranges::sort(lines);
      std::vector<int> tree(static_cast<size_t>(most) + 2, 0);
      int64_t seen = 0;
      for (const auto& line : lines) {
        int64_t not_above = 0;
        for (int i = line.second + 1; i > 0; i -= i & -i) not_above += tree[i];
        count += seen - not_above;
        for (int i = line.second + 1; i < static_cast<int>(tree.size()); i += i & -i) ++tree[i];
        ++seen;
      }
    }
    return count;
  }

  // ---- horizontal positions ----

  double distance(int left, int right) const {
    const Vertex &a = vertices_[left], &b = vertices_[right];
    return (a.width + b.width) / 2 + (a.is_box && b.is_box ? gap_between_boxes : gap_beside_lines);
  }

  void place_layers() {
    for (const auto& layer : layers_)
      for (size_t i = 1; i < layer.size(); ++i)
        vertices_[layer[i]].x = vertices_[layer[i - 1]].x + distance(layer[i - 1], layer[i]);
    for (int sweep = 0; sweep < placing_sweeps; ++sweep) {
      if (sweep % 2 == 0)
        for (size_t i = 0; i < layers_.size(); ++i) place(layers_[i]);
      else
        for (size_t i = layers_.size(); i-- > 0;) place(layers_[i]);
    }
  }

  // Moves the vertices of a layer as near to the middle of their neighbours as their order and
  // distances allow: the least squares of x_i - wish_i under x_{i+1} - x_i >= distance, which is an
  // isotonic regression of wish_i - (sum of distances up to i). Solved by pooling adjacent
  // violators. Points of long edges weigh more, so that long lines are straight.
  void place(const std::vector<int>& layer) {
    struct Pool {
      double weight, mean;
      size_t members;
    };
    std::vector<Pool> pools;
    std::vector<double> start(layer.size(), 0);
    for (size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) start[i] = start[i - 1] + distance(layer[i - 1], layer[i]);
      pools.push_back(
          {vertices_[layer[i]].is_box ? 1.0 : 4.0, wish(vertices_[layer[i]]) - start[i], 1});
      while (pools.size() > 1 && pools[pools.size() - 2].mean > pools.back().mean) {
        const Pool right = pools.back();
        pools.pop_back();
        Pool& left = pools.back();
        left.mean =
            (left.mean * left.weight + right.mean * right.weight) / (left.weight + right.weight);
        left.weight += right.weight, left.members += right.members;
      }
    }
    size_t i = 0;
    for (const Pool& pool : pools)
      for (size_t end = i + pool.members; i < end; ++i)
        vertices_[layer[i]].x = pool.mean + start[i];
  }

  double wish(const Vertex& v) const {
    double sum = 0;
    for (const int u : v.above) sum += vertices_[u].x;
    for (const int u : v.below) sum += vertices_[u].x;
    const size_t n = v.above.size() + v.below.size();
    return n == 0 ? v.x : sum / static_cast<double>(n);
  }

  // ---- results ----

  void write_results() {
    double left = 0, right = 0;
    for (const Vertex& v : vertices_) left = std::min(left, v.x - v.width / 2);
    std::vector<double> height(layers_.size(), 0), centre(layers_.size(), 0);
    for (size_t i = 0; i < layout_.boxes.size(); ++i)
      height[vertices_[i].layer] = std::max(height[vertices_[i].layer], layout_.boxes[i].height);
    double y = 0;
    for (size_t l = 0; l < layers_.size(); ++l) {
      centre[l] = y + height[l] / 2;
      y += height[l] + gap_between_layers;
    }
    for (size_t i = 0; i < layout_.boxes.size(); ++i) {
      layout_.boxes[i].x = vertices_[i].x - left;
      layout_.boxes[i].y = centre[vertices_[i].layer];
      right = std::max(right, layout_.boxes[i].x + layout_.boxes[i].width / 2);
    }
    for (size_t e = 0; e < layout_.edges.size(); ++e) {
      LayoutEdge& edge = layout_.edges[e];
      const LayoutBox &from = layout_.boxes[edge.from], &to = layout_.boxes[edge.to];
      edge.points = {{from.x, from.y + from.height / 2}};
      // a line leaves a layer of tall boxes before it bends
      const int first = vertices_[edge.from].layer;
      edge.points.push_back({from.x, centre[first] + height[first] / 2});
      for (const int v : chains_[e]) {
        const int l = vertices_[v].layer;
        const double x = vertices_[v].x - left;
        edge.points.push_back({x, centre[l] - height[l] / 2});
        edge.points.push_back({x, centre[l] + height[l] / 2});
        right = std::max(right, x);
      }
      const int last = vertices_[edge.to].layer;
      edge.points.push_back({to.x, centre[last] - height[last] / 2});
      edge.points.push_back({to.x, to.y - to.height / 2});
    }
    layout_.width = right, layout_.height = layers_.empty() ? 0 : y - gap_between_layers;
  }

  Layout& layout_;
  std::vector<Vertex> vertices_;          // boxes first
  std::vector<std::vector<int>> chains_;  // beside the edges: their points, from top to bottom
  std::vector<std::vector<int>> layers_;
  std::vector<double> rank_;  // beside the vertices: position in the layer
};

}  // namespace

void lay_out(Layout& layout) { LayeredLayout(layout).run(); }

}  // namespace taper::inspect
