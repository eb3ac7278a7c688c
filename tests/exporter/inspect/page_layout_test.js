// node page_layout_test.js LAYOUT.js: exporter/inspect/page/layout.js over random graphs, folded at random.
"use strict";
const assert = require("assert"), fs = require("fs"), vm = require("vm");
vm.runInThisContext(fs.readFileSync(process.argv[2], "utf8") +
  "\nglobalThis.layOut = layOut; globalThis.unitsOf = unitsOf; globalThis.frame = frame;");

let state = 1;
const random = (n) => (state = (state * 48271) % 2147483647) % n;
const sizeOf = (unit) => ({ width: 40 + (unit % 7) * 10, height: 20 + (unit % 3) * 15 });

// Groups nest, and each is a part of the list of nodes without gaps.
function randomGraph(count) {
  const graph = { nodes: [], edges: [], groups: [{ parent: -1 }] };
  let group = 0;
  for (let i = 0; i < count; ++i) {
    while (group && random(4) === 0) group = graph.groups[group].parent;
    if (random(4) === 0) group = graph.groups.push({ parent: group }) - 1;
    graph.nodes.push({ group });
    for (let k = random(3); k > 0 && i; --k) graph.edges.push([random(i), i]);
  }
  return graph;
}

function checkLevel(level, width, height) {
  const slack = 1e-6;
  level.children.forEach((a, i) => {
    assert(a.x >= -slack && a.y >= -slack && a.x + a.width <= width + slack && a.y + a.height <= height + slack);
    for (const b of level.children.slice(0, i))
      assert(a.x + a.width <= b.x + slack || b.x + b.width <= a.x + slack ||
        a.y + a.height <= b.y + slack || b.y + b.height <= a.y + slack, "boxes overlap");
    if (a.inside) checkLevel(a, a.width - 2 * frame.side, a.height - a.inside[1]);
  });
  for (const line of level.lines) {
    let y = line.from[1];
    for (const point of line.points) {
      assert(Number.isFinite(point[0]) && point[1] >= y - slack, "a line leads upwards");
      y = point[1];
    }
  }
}

// Which units a line of a source can be followed to.
function reached(level, source) {
  const found = new Set(), at = (p, q) => Math.abs(p[0] - q[0]) < 1e-6 && Math.abs(p[1] - q[1]) < 1e-6;
  for (const line of level.lines.filter((l) => l.source === source && l.arrow)) {
    const end = line.points[line.points.length - 1];
    for (const box of level.children)
      if (Math.abs(end[1] - box.y) < 1e-6 && end[0] >= box.x && end[0] <= box.x + box.width) {
        if (!box.inside) found.add(box.unit);
        else assert([...box.entries].some(([s, x]) => s === source && at([box.x + x, box.y], end)));
      }
  }
  for (const box of level.children) if (box.inside) reached(box, source).forEach((u) => found.add(u));
  return found;
}

for (let round = 0; round < 300; ++round) {
  const graph = randomGraph(1 + random(60));
  const open = new Set([0]);
  graph.groups.forEach((_, i) => random(2) && open.add(i));
  const scene = layOut(graph, open, sizeOf, () => 30);
  checkLevel(scene, scene.width, scene.height);
  const units = unitsOf(graph, open), expected = new Map();
  for (const [from, to] of graph.edges)
    if (units[from] !== units[to])
      expected.set(units[from], (expected.get(units[from]) ?? new Set()).add(units[to]));
  for (const [source, targets] of expected)
    assert.deepStrictEqual([...reached(scene, source)].sort(), [...targets].sort());
}
assert.strictEqual(layOut({ nodes: [], edges: [], groups: [{ parent: -1 }] }, new Set([0]), sizeOf, () => 0).height, 0);
console.log("300 graphs");
