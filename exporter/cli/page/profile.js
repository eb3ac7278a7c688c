// Draws a run of a method as a timeline, and the sums of its instructions as tables.

const instructions = page.instructions, hasRoofs = instructions.some((i) => i.roof);
const total = instructions.reduce((sum, i) => sum + i.us, 0);

// ---- numbers ----

const fixed = (number, digits) => number.toFixed(digits);
const shareOf = (part, whole) => (whole > 0 ? fixed((100 * part) / whole, 1) + " %" : "");
function rate(row) {
  if (!(row.us > 0)) return "";
  return row.operations > 0 ? fixed(row.operations / row.us / 1e3, 1) + " GFLOP/s" : fixed(row.bytes / row.us / 1e3, 1) + " GB/s";
}
const roofShare = (row) => (row.roof && row.us > 0 ? row.roof_us / row.us : -1);
const roof = (row) => (roofShare(row) < 0 ? "" : fixed(100 * roofShare(row), 0) + " % " + row.roof);

// "tiles 80.1 %, pack 12.3 %": the steps inside a kernel
const steps = (i) => (i.steps ?? []).map((s) => s.name + " " + shareOf(s.us, i.us)).join(", ");
const hasSteps = instructions.some((i) => i.steps);

// ---- the timeline ----

const timeline = document.getElementById("timeline");
const row = { height: 20, gap: 2, top: 22, small: 4 };
const levels = Math.min(6, Math.max(0, ...instructions.map((i) => (i.module ? i.module.split(".").length : 0))));
const span = Math.max(1e-3, ...page.events.map((e) => e.end));
let zoom = 1;

const widthOf = () => Math.max(300, timeline.clientWidth - 2) * zoom;
const xOf = (us) => (us / span) * widthOf();
const yOf = (level) => row.top + level * (row.height + row.gap);

// A bar with as much of its name as there is room for.
function drawBar(kind, level, bar, name) {
  const x = xOf(bar.begin), width = Math.max(0.5, xOf(bar.end) - x), y = yOf(level);
  const parts = [svg("rect", { class: kind, x, y, width, height: row.height, "data-bar": bar.tip })];
  const room = Math.floor(width / 7) - 1;
  if (room >= 3)
    parts.push(svg("text", { x: x + 3, y: y + 14, "pointer-events": "none" }, name.length > room ? name.slice(0, room - 1) + "…" : name));
  return parts;
}

// A line at every round number of microseconds, at least 90 pixels apart.
function drawAxis(height) {
  const least = span * 90 / widthOf(), power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= least);
  const parts = [];
  for (let i = 0; i * step <= span; ++i) {
    const x = xOf(i * step);
    parts.push(svg("path", { class: "axis", d: `M${x},0V${height}` }));
    parts.push(svg("text", { x: x + 3, y: 13 }, fixed(i * step, step < 1 ? 2 : 0) + " µs"));
  }
  return parts;
}

const tips = [];
const withTip = (bar, lines) => ({ ...bar, tip: tips.push(lines) - 1 });

function tipOn(event) {
  const i = instructions[event.instruction], us = event.end - event.begin;
  return [i.operator, i.kernel, i.types, i.module && "in " + i.module, i.source && "at " + i.source,
    fixed(us, 1) + " µs in this run, " + fixed(i.us, 1) + " µs as the median", rate(i), roof(i) && "of the roof: " + roof(i),
    steps(i)];
}

const moduleRects = moduleBars(page.events, instructions, levels)
  .map((bar) => withTip(bar, [bar.name, fixed(bar.end - bar.begin, 1) + " µs"]));
const eventRects = page.events.map((event) => withTip(event, tipOn(event)));

function drawTimeline() {
  const height = yOf(levels + 1) + row.small, parts = drawAxis(height);
  for (const bar of moduleRects) parts.push(...drawBar("module", bar.level - 1, bar, bar.name.split(".").pop()));
  for (const event of eventRects) {
    const i = instructions[event.instruction];
    parts.push(...drawBar("bar " + (i.roof ?? "none"), levels, event, i.operator.replace(/^taper::/, "")));
  }
  timeline.replaceChildren(svg("svg", { width: widthOf(), height }, ...parts));
}

// The moment under `x` stays there.
function zoomTo(factor, x = timeline.clientWidth / 2) {
  const moment = (timeline.scrollLeft + x) / widthOf();
  zoom = Math.min(200, Math.max(1, factor));
  drawTimeline();
  timeline.scrollLeft = moment * widthOf() - x;
}
timeline.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  zoomTo(zoom * Math.exp(-event.deltaY / 200), event.clientX - timeline.getBoundingClientRect().left);
}, { passive: false });
timeline.addEventListener("pointermove", (event) => {
  const tip = event.target.dataset?.bar;
  if (tip === undefined) hideTip();
  else showTip(event, tips[tip]);
});
timeline.addEventListener("pointerleave", hideTip);
window.addEventListener("resize", drawTimeline);

// ---- tables ----

const roofColumn = hasRoofs ? [{ title: "of the roof", text: roof, value: roofShare }] : [];
const numbers = [
  { title: "µs", text: (r) => fixed(r.us, 1), value: (r) => r.us },
  { title: "share", text: (r) => shareOf(r.us, total), value: (r) => r.us },
  { title: "rate", text: rate, value: (r) => (r.us > 0 ? (r.operations || r.bytes) / r.us : 0) },
  ...roofColumn];
const named = (title, textOf) => ({ title, text: textOf, value: textOf, isName: true });
const count = { title: "instructions", text: (r) => String(r.count), value: (r) => r.count };

let depth = 0;
function drawModules() {
  const deepest = Math.max(1, ...instructions.map((i) => i.module.split(".").length));
  const choose = (d, text) => button(text, "parts of a module's path", () => ((depth = d), drawModules()), d === depth);
  const choices = deepest > 1 ? [choose(0, "whole paths"), ...[...Array(Math.min(deepest - 1, 6)).keys()].map((d) => choose(d + 1, String(d + 1)))] : [];
  document.getElementById("depths").replaceChildren(...choices.flatMap((c) => [c, " "]));
  const rows = sumsBy(instructions, (i) => moduleAt(i.module, depth));
  drawTable(document.getElementById("modules"), [...numbers, count, named("module", (r) => r.name || "(none)")], rows, numbers[0]);
}

// ---- the page ----

function drawHead() {
  const heading = document.createElement("h1");
  heading.textContent = page.title;
  const note = document.createElement("span");
  note.className = "note";
  note.textContent = "the run of median time, of " + counted(page.runs, "run");
  bar.replaceChildren(heading, together(
    button("−", "smaller (Ctrl and wheel)", () => zoomTo(zoom / 1.5)),
    button("+", "larger (Ctrl and wheel)", () => zoomTo(zoom * 1.5)),
    button("fit", "the whole run", () => zoomTo(1))), note);
  document.getElementById("facts").textContent = page.facts.join("\n");
}

function drawLegend() {
  if (!hasRoofs) return;
  const kinds = [["compute", "bound by computing"], ["cache", "by a cache"], ["memory", "by memory"], ["none", "by nothing measured"]];
  document.getElementById("legend").replaceChildren(...kinds.flatMap(([kind, text]) => [
    svg("svg", { width: 12, height: 12 }, svg("rect", { class: kind, width: 12, height: 12 })), text]));
}

document.title = page.title;
drawHead();
drawTimeline();
drawLegend();
drawModules();
drawTable(document.getElementById("operators"), [...numbers, count, named("operator", (r) => r.name)],
  sumsBy(instructions, (i) => i.operator), numbers[0]);
drawTable(document.getElementById("instructions"),
  [...numbers, named("kernel", (r) => r.kernel || r.operator), ...(hasSteps ? [named("steps", steps)] : []), named("types", (r) => r.types), named("source", (r) => r.source),
    named("module", (r) => r.module)], instructions);
