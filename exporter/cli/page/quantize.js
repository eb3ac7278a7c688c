// Shows what became of each weight: a table, sorted by harm, and what to try next.

const weights = page.weights.filter((w) => w.scheme), left = page.weights.filter((w) => !w.scheme);

// ---- numbers ----

const fixed = (number, digits) => (number === null ? "exact" : number.toFixed(digits));
function bytes(n) {
  const unit = n >= 1e9 ? [1e9, "GB"] : n >= 1e6 ? [1e6, "MB"] : n >= 1e3 ? [1e3, "kB"] : [1, "B"];
  return (n / unit[0]).toFixed(unit[0] === 1 ? 0 : 1) + " " + unit[1];
}
// A weight without any error has no ratio: it is the least harmed one.
const decibels = (number) => (number === null ? Infinity : number);
const relativeError = (w) => (w.harm_db === null ? 0 : 10 ** (-w.harm_db / 10));
const allErrors = weights.reduce((sum, w) => sum + relativeError(w), 0);
const shareOfError = (w) => (allErrors > 0 ? relativeError(w) / allErrors : 0);

const mostError = Math.max(0, ...weights.map(shareOfError));

// ---- pictures ----

// Counts of the errors from the largest negative to the largest positive one.
function histogram(w) {
  const width = 3, height = 26, most = Math.max(1, ...w.histogram);
  const bars = w.histogram.map((count, i) => {
    const size = Math.round((height * count) / most);
    return svg("rect", { x: i * width, y: height - size, width: width - 1, height: size });
  });
  const title = svg("title");
  title.textContent = "errors from -" + w.most.toPrecision(3) + " to " + w.most.toPrecision(3);
  return svg("svg", { class: "histogram", width: w.histogram.length * width, height, role: "img" }, title, ...bars);
}
function share(w) {
  const part = shareOfError(w), room = 60, width = mostError > 0 ? (room * part) / mostError : 0;
  const cell = document.createElement("span");
  cell.append(svg("svg", { width: room, height: 9 }, svg("rect", { class: "harm", x: room - width, width, height: 9 })),
    " " + (100 * part).toFixed(1) + " %");
  return cell;
}

// ---- the table ----

const number = (title, text, value) => ({ title, text, value });
const named = (title, textOf) => ({ title, text: textOf, value: textOf, isName: true });
const harm = number("share of the error", share, shareOfError);
const columns = [
  harm,
  ...(page.samples > 0 ? [number("output dB", (w) => (w.has_output ? fixed(w.output_db, 1) : ""), (w) => decibels(w.output_db))] : []),
  number("SQNR dB", (w) => fixed(w.sqnr_db, 1), (w) => decibels(w.sqnr_db)),
  number("cosine", (w) => w.cosine.toFixed(5), (w) => w.cosine),
  number("largest error", (w) => w.most.toPrecision(3), (w) => w.most),
  number("errors", histogram, (w) => w.most),
  number("before", (w) => bytes(w.before), (w) => w.before),
  number("after", (w) => bytes(w.after), (w) => w.after),
  named("scheme", (w) => w.scheme),
  named("weight", (w) => w.path),
  named("sizes", (w) => "(" + w.sizes.join(", ") + ")" + w.remarks),
  named("read by", (w) => w.readers.join(", "))];

// ---- the rest ----

function drawLeft() {
  const reasons = new Map();
  for (const w of left) reasons.set(w.why, [...(reasons.get(w.why) ?? []), w]);
  document.getElementById("left").replaceChildren(...[...reasons].map(([why, list]) => {
    const line = document.createElement("li");
    const shown = list.slice(0, 8).map((w) => w.path).join(", ");
    line.textContent = counted(list.length, "weight") + ", " + bytes(list.reduce((sum, w) => sum + w.after, 0)) + ": " + why +
      " (" + shown + (list.length > 8 ? ", …" : "") + ")";
    return line;
  }));
}

// Rules that give the most harmed weights eight bits, in front of those of the recipe.
function drawNext() {
  const worst = weights.filter((w) => w.scheme.split(" ")[0] !== "q8_0").slice(0, 3);
  const lines = [];
  if (worst.length > 0) {
    const rules = worst.map((w) => JSON.stringify({ match: w.path, scheme: "int8" }));
    const part = worst.reduce((sum, w) => sum + shareOfError(w), 0);
    lines.push(["p", "These weights make " + (100 * part).toFixed(0) + " % of the error. Put rules for them first in the recipe:"],
      ["pre", rules.join(",\n")]);
  }
  if (page.samples === 0) lines.push(["p", "Give calibration data (--calibrate), so that GPTQ can make errors cancel each other."]);
  if (lines.length === 0) lines.push(["p", "Every weight has eight bits. Fewer bits make the program smaller: --recipe mixed."]);
  showAdvice(lines);
}

showTitle(page.title);
document.getElementById("facts").textContent = page.facts.join("\n");
drawTable(document.getElementById("weights"), columns, weights, harm);
drawLeft();
drawNext();
