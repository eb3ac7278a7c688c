// What pages about weights and nodes share: numbers, columns, the share of the error, and pictures of errors.

// ---- numbers ----

// null stands for what has no error, and so no ratio: it is the least harmed one.
const fixed = (number, digits) => (number === null ? "exact" : number.toFixed(digits));
const decibels = (number) => (number === null ? Infinity : number);
const percent = (part) => (100 * part).toFixed(part < 0.001 ? 3 : 1) + " %";
function bytes(n) {
  const unit = n >= 1e9 ? [1e9, "GB"] : n >= 1e6 ? [1e6, "MB"] : n >= 1e3 ? [1e3, "kB"] : [1, "B"];
  return (n / unit[0]).toFixed(unit[0] === 1 ? 0 : 1) + " " + unit[1];
}

// ---- columns ----

const number = (title, text, value) => ({ title, text, value });
const named = (title, textOf) => ({ title, text: textOf, value: textOf, isName: true });

// What a weight lost, as columns: decibels of the results if there were samples, and of the weight.
const lossColumns = (samples) => [
  ...(samples > 0 ? [number("output dB", (w) => (w.has_output ? fixed(w.output_db, 1) : ""), (w) => decibels(w.output_db))] : []),
  number("SQNR dB", (w) => fixed(w.sqnr_db, 1), (w) => decibels(w.sqnr_db)),
  number("cosine", (w) => w.cosine.toFixed(5), (w) => w.cosine),
  number("largest error", (w) => w.most.toPrecision(3), (w) => w.most),
  number("errors", errorHistogram, (w) => w.most)];

// The share of each weight in the sum of the relative errors.
function sharesOf(weights) {
  const relativeError = (w) => (w.harm_db === null ? 0 : 10 ** (-w.harm_db / 10));
  const all = weights.reduce((sum, w) => sum + relativeError(w), 0);
  return (w) => (all > 0 ? relativeError(w) / all : 0);
}
function shareColumn(rows, shareOf) {
  const most = Math.max(0, ...rows.map(shareOf));
  return number("share of the error", (row) => shareBar(shareOf(row), most), shareOf);
}

// ---- pictures ----

function shareBar(part, most) {
  const room = 60, width = most > 0 ? (room * part) / most : 0, cell = document.createElement("span");
  cell.append(svg("svg", { width: room, height: 9 }, svg("rect", { class: "harm", x: room - width, width, height: 9 })),
    " " + (100 * part).toFixed(1) + " %");
  return cell;
}
// Counts of the errors from the largest negative to the largest positive one.
function errorHistogram(w) {
  const width = 3, height = 26, most = Math.max(1, ...w.histogram);
  const bars = w.histogram.map((count, i) => {
    const size = Math.round((height * count) / most);
    return svg("rect", { x: i * width, y: height - size, width: width - 1, height: size });
  });
  const title = svg("title");
  title.textContent = "errors from -" + w.most.toPrecision(3) + " to " + w.most.toPrecision(3);
  return svg("svg", { class: "histogram", width: w.histogram.length * width, height, role: "img" }, title, ...bars);
}

// ---- the rest ----

// Weights that were left as they are, by reason.
function showLeft(left) {
  if (left.length === 0) return document.getElementById("left").replaceWith("None.");
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
