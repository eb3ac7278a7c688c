#include "taper/exporter/inspect/graph_svg.h"

#include <algorithm>
#include <ostream>

#include "taper/exporter/inspect/layered_layout.h"

namespace taper::inspect {
namespace {

// All lengths in pixels. Widths are estimates: monospaced glyphs are 0.6 em wide.
constexpr double title_size = 14, line_size = 11, line_height = 15, padding = 9, margin = 28,
                 heading_height = 44;
constexpr double glyph_width = 0.602;
constexpr size_t longest_line = 48;

constexpr char style[] = R"(<style>
  text { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1f2933; }
  .heading { font-size: 20px; font-weight: bold; }
  .title { font-size: 14px; font-weight: bold; }
  .line { font-size: 11px; fill: #52606d; }
  rect { stroke-width: 1; }
  .input { fill: #e3f0df; stroke: #7fa974; }
  .output { fill: #fbe7d0; stroke: #d3995a; }
  .instruction { fill: #eef2f7; stroke: #9aa9ba; }
  path { fill: none; stroke: #7b8794; stroke-width: 1.2; }
  .control { stroke-dasharray: 4 3; }
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" orient="auto">
  <path d="M0 0.5 L8 4 L0 7.5 z" style="fill:#7b8794;stroke:none"/></marker></defs>
)";

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (static_cast<unsigned char>(c) < ' ')
      result += ' ';
    else
      result += c;
  }
  return result;
}

// The end of a long line is its more telling part: a file's name, the last module of a path.
std::string shortened(const std::string& text) {
  if (text.size() <= longest_line) return text;
  size_t from = text.size() - longest_line + 1;
  while (from < text.size() && (text[from] & 0xc0) == 0x80) ++from;  // not within a UTF-8 character
  return "…" + text.substr(from);
}

std::vector<std::string> lines_of(const GraphNode& node) {
  std::vector<std::string> lines = node.types;
  lines.insert(lines.end(), node.lines.begin(), node.lines.end());
  if (!node.source.empty() || !node.module.empty())
    lines.push_back(node.source + (node.source.empty() || node.module.empty() ? "" : "  ") +
                    node.module);
  return lines;
}

LayoutBox box_of(const GraphNode& node) {
  const std::vector<std::string> lines = lines_of(node);
  double width = static_cast<double>(node.title.size()) * title_size;
  for (const std::string& line : lines)
    width = std::max(width, static_cast<double>(std::min(line.size(), longest_line)) * line_size);
  return {width * glyph_width + 2 * padding,
          title_size + static_cast<double>(lines.size()) * line_height + 2 * padding - 2};
}

Layout layout_of(const MethodGraph& graph) {
  Layout layout;
  for (const GraphNode& n : graph.nodes) layout.boxes.push_back(box_of(n));
  for (const auto* edges : {&graph.edges, &graph.control})
    for (const GraphEdge& e : *edges) layout.edges.push_back({e.from, e.to, {}});
  lay_out(layout);
  return layout;
}

// Straight along the layers, and a curve that begins and ends vertically between two of them.
void draw(std::ostream& out, const LayoutEdge& edge, bool control) {
  out << "<path" << (control ? " class=\"control\"" : "") << " marker-end=\"url(#arrow)\" d=\"M"
      << edge.points[0].x << ' ' << edge.points[0].y;
  for (size_t i = 1; i < edge.points.size(); ++i) {
    const LayoutEdge::Point a = edge.points[i - 1], b = edge.points[i];
    if (a.x == b.x && a.y == b.y) continue;
    if (a.x == b.x) {
      out << " L" << b.x << ' ' << b.y;
      continue;
    }
    const double middle = (a.y + b.y) / 2;
    out << " C" << a.x << ' ' << middle << ' ' << b.x << ' ' << middle << ' ' << b.x << ' ' << b.y;
  }
  out << "\"/>\n";
}

void draw(std::ostream& out, const GraphNode& node, const LayoutBox& box) {
  constexpr const char* classes[] = {"input", "output", "instruction"};
  const double left = box.x - box.width / 2, top = box.y - box.height / 2;
  const double radius = node.kind == GraphNode::Kind::instruction ? 4 : 14;
  out << "<rect class=\"" << classes[static_cast<int>(node.kind)] << "\" x=\"" << left << "\" y=\""
      << top << "\" width=\"" << box.width << "\" height=\"" << box.height << "\" rx=\"" << radius
      << "\"/>\n";
  double y = top + padding + title_size - 3;
  out << "<text class=\"title\" text-anchor=\"middle\" x=\"" << box.x << "\" y=\"" << y << "\">"
      << escaped(node.title) << "</text>\n";
  for (const std::string& line : lines_of(node)) {
    y += line_height;
    out << "<text class=\"line\" text-anchor=\"middle\" x=\"" << box.x << "\" y=\"" << y << "\">"
        << escaped(shortened(line)) << "</text>\n";
  }
}

}  // namespace

void write_svg(std::ostream& out, const std::vector<MethodGraph>& graphs) {
  std::vector<Layout> layouts;
  double width = margin, height = 0;
  for (const MethodGraph& g : graphs) {
    layouts.push_back(layout_of(g));
    width += std::max(layouts.back().width, static_cast<double>(g.name.size()) * 12) + margin;
    height = std::max(height, layouts.back().height);
  }
  height += heading_height + 2 * margin;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
      << "\" viewBox=\"0 0 " << width << ' ' << height << "\">\n"
      << style << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  double left = margin;
  for (size_t i = 0; i < graphs.size(); ++i) {
    out << "<text class=\"heading\" x=\"" << left << "\" y=\"" << margin + 18 << "\">"
        << escaped(graphs[i].name) << "</text>\n"
        << "<g transform=\"translate(" << left << ' ' << margin + heading_height << ")\">\n";
    for (size_t e = 0; e < layouts[i].edges.size(); ++e)
      draw(out, layouts[i].edges[e], e >= graphs[i].edges.size());
    for (size_t n = 0; n < graphs[i].nodes.size(); ++n)
      draw(out, graphs[i].nodes[n], layouts[i].boxes[n]);
    out << "</g>\n";
    left += std::max(layouts[i].width, static_cast<double>(graphs[i].name.size()) * 12) + margin;
  }
  out << "</svg>\n";
}

}  // namespace taper::inspect
