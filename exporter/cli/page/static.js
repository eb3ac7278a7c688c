// Shows what static integers cost at each node: a table, sorted by harm, and what to try next.

// The module of a node, which a rule can name: "convolution at conv.py:565 (conv1)".
const moduleOf = (n) => /\(([^()]+)\)$/.exec(n.node)?.[1] ?? n.name;
const clipped = (n) => n.range?.clipped ?? 0;

// ---- pictures ----

// What was seen, and in grey what lies outside the range of the integers.
function histogram(n) {
  if (!n.range?.counts) return "";
  const width = 3, height = 26, most = Math.max(1, ...n.range.counts.map(Math.sqrt));
  const step = (n.range.last - n.range.first) / n.range.counts.length;
  const bars = n.range.counts.map((count, i) => {
    const size = Math.ceil((height * Math.sqrt(count)) / most), middle = n.range.first + step * (i + 0.5);
    const outside = middle < n.range.low || middle > n.range.high;
    return svg("rect", { class: outside ? "outside" : "", x: i * width, y: height - size, width: width - 1, height: size });
  });
  const title = svg("title");
  title.textContent = "values without zeros, from " + n.range.first.toPrecision(3) + " to " + n.range.last.toPrecision(3) +
    "; heights are square roots";
  return svg("svg", { class: "histogram", width: bars.length * width, height, role: "img" }, title, ...bars);
}

// ---- the table ----

const ofRange = (digits, textOf) => (n) => (n.range ? textOf(n.range).toPrecision(digits) : "");
const harm = shareColumn(page.nodes, (n) => n.share);
const columns = [
  harm,
  number("outputs dB, it alone", (n) => fixed(n.alone_db, 1), (n) => decibels(n.alone_db)),
  number("its own dB", (n) => fixed(n.here_db, 1), (n) => decibels(n.here_db)),
  number("cosine", (n) => n.cosine.toFixed(5), (n) => n.cosine),
  number("values", histogram, (n) => n.range?.high ?? 0),
  number("clipped", (n) => (n.range?.counts ? percent(clipped(n)) : ""), clipped),
  number("from", ofRange(3, (r) => r.low), (n) => n.range?.low ?? 0),
  number("to", ofRange(3, (r) => r.high), (n) => n.range?.high ?? 0),
  number("scale", ofRange(3, (r) => r.scale), (n) => n.range?.scale ?? 0),
  named("result", (n) => "%" + n.name),
  named("node", (n) => n.node)];

// ---- the rest ----

function drawFloats() {
  if (page.floats.length === 0) return document.getElementById("left").replaceWith("None.");
  document.getElementById("left").replaceChildren(...page.floats.map((f) => {
    const line = document.createElement("li");
    line.textContent = f.node + ": " + f.why;
    return line;
  }));
}

function drawNext() {
  const worst = page.nodes.filter((n) => n.share > 0).slice(0, 3), lines = [];
  if (worst.length > 0) {
    const part = worst.reduce((sum, n) => sum + n.share, 0);
    lines.push(["p", "These nodes make " + (100 * part).toFixed(0) + " % of the error. Rules that keep them float stand before the last one:"],
      ["pre", worst.map((n) => JSON.stringify({ match: moduleOf(n), scheme: "float" })).join(",\n")]);
  }
  if (page.nodes.some((n) => clipped(n) > 0.01))
    lines.push(["p", "Some ranges leave out more than 1 % of the values. Give more calibration data, or the observer \"min-max\"."]);
  lines.push(["p", "Or name a goal: --target-accuracy \"cosine >= 0.999\" finds the nodes that must stay float."]);
  showAdvice(lines);
}

showTitle(page.title);
document.getElementById("facts").textContent = ["Outputs: " + fixed(page.outputs_db, 1) + " dB, cosine " +
  page.outputs_cosine.toFixed(5), ...page.facts].join("\n");
drawTable(document.getElementById("nodes"), columns, page.nodes, harm);
drawFloats();
drawNext();
