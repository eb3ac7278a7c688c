// Where everything stands. No part of a browser is used here.
//
// What one open module shows is a level: boxes in layers from top to bottom, by the method of Sugiyama,
// Tagawa and Toda (1981): layers by longest path; long lines pass every layer between through a point of
// their own; order within layers by repeated barycentres; horizontal positions by least squares. An open
// module is laid out first, and is then a large box of the level around it. Lines come into it through its
// upper side and leave it through its lower side, so every line of a level leads downwards.

const gaps = { boxes: 22, layers: 36, lines: 13 };
const frame = { side: 14, head: 26, end: 12 };  // around an open module
const orderingSweeps = 16, placingSweeps = 24;

// ---- one level ----

// boxes: [{width, height, entries, exits}], in an order in which every link leads forward. Of an open
//   module, `entries` and `exits` are Maps: where the lines of a source cross its sides, from the left.
// links: [{source, from, to}]: boxes by number; from -1: comes in from outside; to -1: leads out. All
//   links of a source from one box share a line and branch off it.
// Gives {width, height, entries, exits, lines}, and each box its x and y, the upper left corner.
//   lines: [{source, from: [x, y], points: […], arrow}]
function layOutLevel(boxes, links, leastWidth = 0) {
  const vertices = boxes.map((box) => ({ box, width: box.width, layer: 0, above: [], below: [] }));
  const entries = new Map(), exits = new Map();  // source → vertex
  const addPoint = (layer) => vertices.push({ box: null, width: 0, layer, above: [], below: [] }) - 1;
  const layers = [], rank = [], trunks = new Map();

  // Deeper than all that leads to it; what nothing leads to stands just above its first user.
  function chooseLayers() {
    const first = links.some((l) => l.from < 0) ? 1 : 0;
    for (const v of vertices) v.layer = first;
    const isReached = boxes.map(() => false), firstUser = boxes.map(() => Infinity);
    const inner = links.filter((l) => l.from >= 0 && l.to >= 0).sort((a, b) => a.from - b.from);
    for (const l of links) if (l.to >= 0) isReached[l.to] = true;
    for (const l of inner)
      vertices[l.to].layer = Math.max(vertices[l.to].layer, vertices[l.from].layer + 1);
    for (const l of inner) firstUser[l.from] = Math.min(firstUser[l.from], vertices[l.to].layer);
    boxes.forEach((_, i) => {
      if (!isReached[i] && firstUser[i] < Infinity) vertices[i].layer = firstUser[i] - 1;
    });
    const last = vertices.reduce((most, v) => Math.max(most, v.layer), 0);
    for (const l of links) {
      if (l.from < 0 && !entries.has(l.source)) entries.set(l.source, addPoint(0));
      if (l.to < 0 && !exits.has(l.source)) exits.set(l.source, addPoint(last + 1));
    }
  }

  // From the middle of a box, where a line leaves or reaches it.
  const offset = (v, sides, source) => {
    const box = vertices[v].box;
    return box && box[sides] ? box[sides].get(source) - box.width / 2 : 0;
  };
  function connect(upper, lower, source) {
    const there = offset(lower, "entries", source), here = offset(upper, "exits", source);
    vertices[upper].below.push({ to: lower, here, there, source });
    vertices[lower].above.push({ to: upper, here: there, there: here });
  }

  function connectAll() {
    for (const l of links) {
      const from = l.from < 0 ? entries.get(l.source) : l.from;
      const to = l.to < 0 ? exits.get(l.source) : l.to;
      const key = from + " " + l.source;
      if (!trunks.has(key)) trunks.set(key, [from]);
      const trunk = trunks.get(key), length = vertices[to].layer - vertices[from].layer;
      while (trunk.length < length) {
        const point = addPoint(vertices[from].layer + trunk.length);
        connect(trunk[trunk.length - 1], point, l.source);
        trunk.push(point);
      }
      connect(trunk[length - 1], to, l.source);
    }
    vertices.forEach((v, i) => (layers[v.layer] ||= []).push(i));
    for (let i = 0; i < layers.length; ++i) layers[i] ||= [];
  }

  // ---- order within layers ----

  const number = (layer) => layer.forEach((v, i) => (rank[v] = i));
  const position = (v, offset) => rank[v] + (vertices[v].width ? (0.9 * offset) / vertices[v].width : 0);

  function sortByBarycentre(layer, side) {
    const key = new Map();
    for (const v of layer) {
      const ends = vertices[v][side];
      const sum = ends.reduce((s, e) => s + position(e.to, e.there), 0);
      key.set(v, ends.length ? sum / ends.length : rank[v]);
    }
    layer.sort((a, b) => key.get(a) - key.get(b) || rank[a] - rank[b]);
    number(layer);
  }

  // Pairs of lines whose ends stand in opposite order: inversions of the lower ends, sorted by the upper
  // ones, counted in a Fenwick tree.
  function crossings() {
    let count = 0;
    for (const layer of layers) {
      const lines = [];
      for (const v of layer)
        for (const e of vertices[v].below) lines.push([position(v, e.here), position(e.to, e.there)]);
      lines.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      const places = [...new Set(lines.map((l) => l[1]))].sort((a, b) => a - b);
      const place = new Map(places.map((p, i) => [p, i + 1]));
      const tree = new Array(places.length + 1).fill(0);
      lines.forEach((line, seen) => {
        let notAbove = 0;
        for (let i = place.get(line[1]); i > 0; i -= i & -i) notAbove += tree[i];
        count += seen - notAbove;
        for (let i = place.get(line[1]); i < tree.length; i += i & -i) ++tree[i];
      });
    }
    return count;
  }

  function orderLayers() {
    layers.forEach(number);
    let best = layers.map((l) => [...l]), fewest = crossings();
    for (let sweep = 0; sweep < orderingSweeps && fewest > 0; ++sweep) {
      if (sweep % 2 === 0)
        for (let i = 1; i < layers.length; ++i) sortByBarycentre(layers[i], "above");
      else
        for (let i = layers.length - 2; i >= 0; --i) sortByBarycentre(layers[i], "below");
      const now = crossings();
      if (now < fewest) (fewest = now), (best = layers.map((l) => [...l]));
    }
    best.forEach((layer, i) => (layers[i] = layer));
    layers.forEach(number);
  }

  // ---- horizontal positions ----

  function distance(left, right) {
    const a = vertices[left], b = vertices[right];
    return (a.width + b.width) / 2 + (a.box && b.box ? gaps.boxes : gaps.lines);
  }

  // The mean of where straight lines to the neighbours would put it.
  function wish(v) {
    const { above, below, wish } = vertices[v];
    if (wish !== undefined) return wish;
    let sum = 0;
    for (const side of [above, below])
      for (const e of side) sum += vertices[e.to].x + e.there - e.here;
    return above.length + below.length ? sum / (above.length + below.length) : vertices[v].x;
  }

  // The points of a long line all wish for one place, so that it is straight: between its ends, and where
  // the points are, which is where boxes leave room for it.
  function wishForLongLines() {
    for (const [from, ...points] of trunks.values()) {
      if (!points.length) continue;
      const inside = new Set(points), first = vertices[points[0]].above[0];
      const ends = [vertices[from].x + first.there], here = points.map((p) => vertices[p].x);
      for (const p of points)
        for (const e of vertices[p].below) if (!inside.has(e.to)) ends.push(vertices[e.to].x + e.there);
      const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
      for (const p of points) vertices[p].wish = (mean(ends) + mean(here)) / 2;
    }
  }

  // The least squares of x - wish under the order and the distances of a layer: an isotonic regression,
  // by pooling adjacent violators.
  function place(layer) {
    const start = [], pools = [];
    layer.forEach((v, i) => {
      start.push(i ? start[i - 1] + distance(layer[i - 1], v) : 0);
      pools.push({ weight: vertices[v].box ? 1 : 4, mean: wish(v) - start[i], members: 1 });
      while (pools.length > 1 && pools[pools.length - 2].mean > pools[pools.length - 1].mean) {
        const right = pools.pop(), left = pools[pools.length - 1];
        const weight = left.weight + right.weight;
        left.mean = (left.mean * left.weight + right.mean * right.weight) / weight;
        left.weight = weight;
        left.members += right.members;
      }
    });
    let i = 0;
    for (const pool of pools)
      for (const end = i + pool.members; i < end; ++i) vertices[layer[i]].x = pool.mean + start[i];
  }

  function placeLayers() {
    for (const layer of layers)
      layer.forEach((v, i) => (vertices[v].x = i ? vertices[layer[i - 1]].x + distance(layer[i - 1], v) : 0));
    for (let sweep = 0; sweep < placingSweeps; ++sweep) {
      wishForLongLines();
      for (const layer of sweep % 2 ? [...layers].reverse() : layers) place(layer);
    }
  }

  // ---- results ----

  function result() {
    const height = layers.map((l) => l.reduce((h, v) => Math.max(h, vertices[v].box?.height ?? 0), 0));
    const top = [];
    height.forEach((_, i) => top.push(i ? top[i - 1] + height[i - 1] + gaps.layers : 0));
    let left = Infinity, right = -Infinity;
    for (const v of vertices) {
      left = Math.min(left, v.x - v.width / 2);
      right = Math.max(right, v.x + v.width / 2);
    }
    if (!vertices.length) left = right = 0;
    const width = Math.max(right - left, leastWidth);
    for (const v of vertices) {
      v.x += (width - right - left) / 2;
      if (!v.box) continue;
      v.box.x = v.x - v.width / 2;
      v.box.y = top[v.layer] + (height[v.layer] - v.box.height) / 2;
    }
    const lines = [];
    for (const v of vertices)
      for (const e of v.below) {
        const lower = vertices[e.to], x = v.x + e.here, to = lower.x + e.there;
        // a line leaves a layer of tall boxes before it bends
        const points = [[x, top[v.layer] + height[v.layer]], [to, top[lower.layer]]];
        points.push([to, lower.box ? lower.box.y : top[lower.layer] + height[lower.layer]]);
        const from = v.box ? [x, v.box.y + v.box.height] : points[0];
        lines.push({ source: e.source, from, points, arrow: lower.box !== null });
      }
    const at = (points) => new Map([...points].map(([source, v]) => [source, vertices[v].x]));
    const end = layers.length - 1;
    return { width, height: end < 0 ? 0 : top[end] + height[end], entries: at(entries), exits: at(exits), lines };
  }

  chooseLayers();
  connectAll();
  orderLayers();
  placeLayers();
  return result();
}

// ---- all levels ----

// graph: {nodes: [{group}], edges: [[from, to]], groups: [{parent}]}, nodes in an order in which edges lead
//   forward and groups have no gaps; group 0 is everything.
// A unit is what is drawn as one box: node n is unit n, group g is unit nodes.length + g.

// Beside the nodes, the unit that stands for each: itself, or the outermost folded group around it.
function unitsOf(graph, open) {
  const standsFor = [null];  // beside the groups; null: is open and can be seen
  graph.groups.forEach((g, i) => {
    if (i) standsFor.push(standsFor[g.parent] ?? (open.has(i) ? null : graph.nodes.length + i));
  });
  return graph.nodes.map((node, i) => standsFor[node.group] ?? i);
}

// sizeOf(unit) gives {width, height}, headWidth(group) how wide an open group must be.
// Gives the outermost level: {width, height, lines, children: [{unit, x, y, width, height}]}; of an open
// group a child is such a level itself, with its content's place `inside: [x, y]`.
function layOut(graph, open, sizeOf, headWidth) {
  const count = graph.nodes.length, units = unitsOf(graph, open);
  const around = (unit) => (unit < count ? graph.nodes[unit].group : graph.groups[unit - count].parent);
  const depth = [];
  graph.groups.forEach((g, i) => depth.push(i ? depth[g.parent] + 1 : 0));

  const levels = new Map([[0, { children: [], links: new Map() }]]), index = new Map();
  const add = (unit) => {
    if (index.has(unit)) return;
    const group = around(unit);
    if (group) add(count + group);
    if (!levels.has(group)) levels.set(group, { children: [], links: new Map() });
    index.set(unit, levels.get(group).children.push(unit) - 1);
  };
  units.forEach(add);

  const link = (group, source, from, to) =>
    levels.get(group).links.set(source + " " + from + " " + to, { source, from, to });
  for (const [from, to] of graph.edges) {
    const source = units[from];
    let a = source, b = units[to];
    if (a === b) continue;
    while (around(a) !== around(b))
      if (depth[around(a)] >= depth[around(b)]) {
        link(around(a), source, index.get(a), -1);
        a = count + around(a);
      } else {
        link(around(b), source, -1, index.get(b));
        b = count + around(b);
      }
    link(around(a), source, index.get(a), index.get(b));
  }

  function level(group) {
    const { children, links } = levels.get(group);
    const boxes = children.map((unit) => {
      const isOpen = unit >= count && open.has(unit - count);
      return isOpen ? { unit, ...framed(unit - count) } : { unit, ...sizeOf(unit) };
    });
    return { ...layOutLevel(boxes, [...links.values()], headWidth(group)), children: boxes };
  }
  function framed(group) {
    const content = level(group);
    const above = frame.head + (content.entries.size ? 0 : frame.end);
    const moved = (sides) => new Map([...sides].map(([source, x]) => [source, x + frame.side]));
    return {
      ...content,
      inside: [frame.side, above],
      width: content.width + 2 * frame.side,
      height: above + content.height + (content.exits.size ? 0 : frame.end),
      entries: moved(content.entries),
      exits: moved(content.exits),
    };
  }
  return level(0);
}
