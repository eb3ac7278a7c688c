// Draws the graphs of the page, and folds and unfolds modules.

const canvas = document.getElementById("canvas");
const mostAtFirst = 24;  // boxes
const longestLine = 40;  // characters
const boxSize = { padding: 10, title: 17, line: 15 };

for (const graph of page.graphs) {
  graph.operators = graph.groups.map(() => new Map());  // below each group: operator → how often
  for (const node of graph.nodes)
    if (node.kind === "instruction" || node.kind === "delegated")
      for (let g = node.group; g >= 0; g = graph.groups[g].parent)
        graph.operators[g].set(node.title, (graph.operators[g].get(node.title) ?? 0) + 1);
  graph.open = openedAtFirst(graph);
}
let graph = page.graphs[0], zoom = 1;

// Level after level, as long as few boxes are to be seen; all of them if the graph is small.
function openedAtFirst(graph) {
  const seen = (open) => new Set(unitsOf(graph, open)).size;
  const depth = [];
  graph.groups.forEach((g, i) => depth.push(i ? depth[g.parent] + 1 : 0));
  let open = new Set([0]);
  for (let level = 1; level <= Math.max(...depth); ++level) {
    const more = new Set(open);
    depth.forEach((d, i) => d === level && more.add(i));
    if (seen(more) > mostAtFirst) break;
    open = more;
  }
  return open;
}

// ---- what boxes say ----

const groupOf = (unit) => unit - graph.nodes.length;  // negative for nodes
const isFolded = (unit) => groupOf(unit) >= 0;
const sum = (counts) => [...counts.values()].reduce((a, b) => a + b, 0);
// the end of a long name tells more
const shortened = (text) => (text.length > longestLine ? "…" + text.slice(1 - longestLine) : text);

function linesOn(unit) {
  if (isFolded(unit)) {
    const counts = graph.operators[groupOf(unit)];
    return ["▸ " + shortened(graph.groups[groupOf(unit)].title), counted(sum(counts), "operator")];
  }
  // a module of one operator has no box of its own: its name stands on the operator's
  const node = graph.nodes[unit], lines = [node.title];
  if (node.module !== graph.groups[node.group].path) lines.push(node.module);
  lines.push(...node.types.slice(0, 2));
  if (node.types.length > 2) lines.push("… " + counted(node.types.length - 2, "more result"));
  lines.push(...node.lines.filter((line) => line.startsWith("writes ")).slice(0, 1));
  return lines.map(shortened);
}

function tipOn(unit) {
  if (isFolded(unit)) {
    const g = graph.groups[groupOf(unit)];
    const counts = [...graph.operators[groupOf(unit)]].sort((a, b) => b[1] - a[1]);
    const lines = counts.slice(0, 12).map(([operator, n]) => n + " × " + operator);
    if (counts.length > 12) lines.push("and " + (counts.length - 12) + " others");
    return [g.title, ...lines];
  }
  const node = graph.nodes[unit];
  return [node.title, ...node.types.map((t) => "→ " + t), ...node.lines, node.module && "in " + node.module,
    node.source && "at " + node.source];
}

// ---- drawing ----

const measure = document.createElement("canvas").getContext("2d");
function textWidth(text, isTitle) {
  measure.font = (isTitle ? "bold 14px " : "11px ") + getComputedStyle(document.body).fontFamily;
  return measure.measureText(text).width;
}
function sizeOf(unit) {
  const lines = linesOn(unit);
  const width = Math.max(...lines.map((line, i) => textWidth(line, i === 0)));
  return { width: width + 2 * boxSize.padding, height: boxSize.title + boxSize.line * (lines.length - 1) + 14 };
}
const headOf = (group) => "▾ " + shortened(graph.groups[group].title);
const headWidth = (group) => (group ? textWidth(headOf(group), true) : 0);

// A curve begins and ends vertically between two layers.
function pathOf(line) {
  let d = "M" + line.from, [x, y] = line.from;
  for (const [nextX, nextY] of line.points) {
    if (nextX === x && nextY === y) continue;  // an arrow at its end would have no direction
    if (nextX === x) d += "L" + nextX + "," + nextY;
    else d += ["C" + x, (y + nextY) / 2, nextX, (y + nextY) / 2, nextX, nextY].join();
    [x, y] = [nextX, nextY];
  }
  return d;
}

function drawLines(lines) {
  const wires = new Map();
  for (const line of lines) {
    if (!wires.has(line.source)) wires.set(line.source, svg("g", { class: "wire", "data-source": line.source }));
    const d = pathOf(line), end = line.arrow ? { "marker-end": "url(#arrow)" } : {};
    wires.get(line.source).append(svg("path", { d, class: "reach" }), svg("path", { d, class: "seen", ...end }));
  }
  return wires.values();
}

function drawBox(box) {
  const { unit, width, height } = box;
  const kind = isFolded(unit) ? "group" : graph.nodes[unit].kind;
  const round = kind === "input" || kind === "output" ? 14 : 4;
  const g = svg("g", { class: kind, "data-unit": unit, transform: `translate(${box.x} ${box.y})` });
  if (isFolded(unit)) {
    makeButton(g, groupOf(unit), false);
    g.append(svg("rect", { class: "behind", x: 4, y: 4, width, height, rx: round }));
  }
  g.append(svg("rect", { width, height, rx: round }));
  linesOn(unit).forEach((line, i) =>
    g.append(svg("text", { x: width / 2, y: 7 + boxSize.title - 4 + i * boxSize.line, "text-anchor": "middle",
      class: i ? "line" : "title" }, line)));
  return g;
}

function drawOpen(box) {
  const group = groupOf(box.unit), { width, height } = box;
  const head = svg("g", { class: "head", "data-unit": box.unit },
    svg("rect", { x: 0.5, y: 0.5, width: width - 1, height: frame.head - 1, rx: 4 }),
    svg("text", { x: frame.side, y: 18, class: "title" }, headOf(group)));
  makeButton(head, group, true);
  return svg("g", { class: "open", transform: `translate(${box.x} ${box.y})` },
    svg("rect", { width, height, rx: 4 }), head,
    svg("g", { transform: `translate(${box.inside})` }, ...drawLevel(box)));
}

function drawLevel(level) {
  const boxes = level.children.map((box) => (box.inside ? drawOpen(box) : drawBox(box)));
  return [...drawLines(level.lines), ...boxes];
}

function makeButton(element, group, isOpen) {
  element.setAttribute("role", "button");
  element.setAttribute("tabindex", 0);
  element.setAttribute("aria-expanded", isOpen);
  element.setAttribute("aria-label", graph.groups[group].title);
}

const margin = 28;
let size = { width: 0, height: 0 };
function draw() {
  const scene = layOut(graph, graph.open, sizeOf, headWidth);
  size = { width: scene.width + 2 * margin, height: scene.height + 2 * margin };
  const arrow = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7.5, refY: 4, markerWidth: 7, markerHeight: 7,
    markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0 0.5L8 4L0 7.5z", fill: "#7b8794" }));
  canvas.replaceChildren(svg("svg", { viewBox: `0 0 ${size.width} ${size.height}` }, svg("defs", {}, arrow),
    svg("g", { transform: `translate(${margin} ${margin})` }, ...drawLevel(scene))));
  scale(zoom);
  hideTipAndWires();
  drawBar();
}

// ---- folding ----

// What was clicked stays where it is on the screen.
function toggle(group) {
  const unit = graph.nodes.length + group, find = () => canvas.querySelector(`[data-unit="${unit}"]`);
  const before = find().getBoundingClientRect(), hadFocus = document.activeElement === find();
  if (!graph.open.delete(group)) graph.open.add(group);
  draw();
  const after = find().getBoundingClientRect();
  canvas.scrollBy(after.left - before.left, after.top - before.top);
  if (hadFocus) find().focus();
}
function groupAt(event) {
  const element = event.target.closest?.("[role=button][data-unit]");
  return element ? groupOf(Number(element.dataset.unit)) : 0;
}
canvas.addEventListener("click", (event) => {
  const group = groupAt(event);
  if (group > 0 && !dragged) toggle(group);
});
canvas.addEventListener("keydown", (event) => {
  const group = groupAt(event);
  if (group <= 0 || (event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  toggle(group);
});

// ---- zoom and pan ----

function scale(factor) {
  zoom = Math.min(4, Math.max(0.05, factor));
  canvas.firstChild.setAttribute("width", size.width * zoom);
  canvas.firstChild.setAttribute("height", size.height * zoom);
}
// The point of the picture under (x, y) stays there.
function zoomTo(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const before = zoom;
  scale(factor);
  canvas.scrollTo((canvas.scrollLeft + x) * (zoom / before) - x, (canvas.scrollTop + y) * (zoom / before) - y);
}
const fit = () => scale(Math.min(1, canvas.clientWidth / size.width, canvas.clientHeight / size.height));
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  const edge = canvas.getBoundingClientRect();
  zoomTo(zoom * Math.exp(-event.deltaY / 400), event.clientX - edge.left, event.clientY - edge.top);
}, { passive: false });

let grip = null, dragged = false;
canvas.addEventListener("pointerdown", (event) => {
  dragged = false;
  if (event.button === 0 && event.pointerType === "mouse") grip = event;
});
window.addEventListener("pointermove", (event) => {
  if (!grip) return;
  if (Math.hypot(event.clientX - grip.clientX, event.clientY - grip.clientY) > 4) dragged = true;
  if (!dragged) return;
  canvas.classList.add("dragged");
  canvas.scrollBy(-event.movementX, -event.movementY);
});
window.addEventListener("pointerup", () => {
  grip = null;
  canvas.classList.remove("dragged");
});

// ---- tips ----

function hideTipAndWires() {
  hideTip();
  for (const wire of canvas.querySelectorAll(".lit")) wire.classList.remove("lit");
}
function typesFrom(unit) {
  const units = unitsOf(graph, graph.open);
  const types = graph.edges.filter(([from, to]) => units[from] === unit && units[to] !== unit).map((e) => e[2]);
  return [...new Set(types.flat())];
}
function showTipAndWires(event, unit, lines) {
  hideTipAndWires();
  for (const wire of canvas.querySelectorAll(`.wire[data-source="${unit}"]`)) wire.classList.add("lit");
  showTip(event, lines);
}
canvas.addEventListener("pointerover", (event) => {
  if (grip) return;
  const box = event.target.closest?.("[data-unit]"), wire = event.target.closest?.("[data-source]");
  const unit = Number((box ?? wire)?.dataset[box ? "unit" : "source"]);
  if (box) showTipAndWires(event, unit, tipOn(unit));
  else if (wire) showTipAndWires(event, unit, ["from " + tipOn(unit)[0], ...typesFrom(unit)]);
  else hideTipAndWires();
});
canvas.addEventListener("pointerleave", hideTipAndWires);

// ---- the bar ----

function drawBar() {
  const heading = document.createElement("h1"), note = document.createElement("span");
  heading.textContent = page.title;
  note.className = "note";
  note.textContent = counted(sum(graph.operators[0]), "operator") +
    (graph.groups.length > 1 ? "; click a module to fold or unfold it" : "");
  const redraw = (change) => () => (change(), draw());
  const methods = page.graphs.length < 2 ? [] : page.graphs.map((g) =>
    button(g.name, "this method", redraw(() => (graph = g)), g === graph));
  const folds = graph.groups.length < 2 ? [] : [
    button("fold all", "only the outermost modules", redraw(() => (graph.open = new Set([0])))),
    button("unfold all", "every operator", redraw(() => (graph.open = new Set(graph.groups.keys()))))];
  bar.replaceChildren(heading, together(...methods), together(...folds), together(
    button("−", "smaller (Ctrl and wheel)", () => zoomTo(zoom / 1.25)),
    button("+", "larger (Ctrl and wheel)", () => zoomTo(zoom * 1.25)),
    button("1:1", "the usual size", () => zoomTo(1)), button("fit", "the whole picture", fit)), note);
}

document.title = page.title;
if (graph) draw();
else canvas.textContent = "The program has no methods.";
