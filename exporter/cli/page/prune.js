// Shows what the zeros cost each weight: a table, sorted by harm, and what to try next.

// Weights that stay have no error, or a small one: without them, the others can be seen.
function withoutThoseThatStay(w) {
  const middle = (w.histogram.length - 1) / 2, staying = w.elements - w.zeros;
  return { ...w, histogram: w.histogram.map((count, i) => (i === middle ? Math.max(0, count - staying) : count)) };
}
const weights = page.weights.filter((w) => !w.why).map(withoutThoseThatStay), left = page.weights.filter((w) => w.why);
const shareOfError = sharesOf(weights), harm = shareColumn(weights, shareOfError);
const columns = [
  harm,
  ...lossColumns(weights.some((w) => w.has_output) ? 1 : 0),
  number("zeros", (w) => percent(w.zeros / w.elements), (w) => w.zeros / w.elements),
  number("outputs of zeros", (w) => String(w.zero_rows), (w) => w.zero_rows),
  number("elements", (w) => String(w.elements), (w) => w.elements),
  number("bytes", (w) => bytes(w.after), (w) => w.after),
  named("weight", (w) => w.path),
  named("sizes", (w) => "(" + w.sizes.join(", ") + ")")];

function drawNext() {
  const worst = weights.slice(0, Math.min(3, Math.floor(weights.length / 2))), lines = [];
  if (worst.length > 0) {
    const part = worst.reduce((sum, w) => sum + shareOfError(w), 0);
    lines.push(["p", "These weights make " + (100 * part).toFixed(0) + " % of the error. Leave them as they are:"],
      ["pre", worst.map((w) => "--prune-exclude " + JSON.stringify(w.path)).join(" ")]);
  }
  if (page.method === "magnitude")
    lines.push(["p", "Give calibration data (--calibrate), so that the sizes of inputs count, too: --prune wanda."]);
  if (page.method !== "sparsegpt")
    lines.push(["p", "With --prune sparsegpt and calibration data, the weights that stay make up for those that go."]);
  lines.push(["p", "Train the model a little more. ZeroMask keeps the zeros."],
    ["p", "Zeros alone save no bytes. A recipe does: --recipe int8-weights."]);
  showAdvice(lines);
}

showTitle(page.title);
document.getElementById("facts").textContent = page.facts.join("\n");
drawTable(document.getElementById("weights"), columns, weights, harm);
showLeft(left);
drawNext();
