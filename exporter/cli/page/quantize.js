// Shows what became of each weight: a table, sorted by harm, and what to try next.

const weights = page.weights.filter((w) => w.scheme), left = page.weights.filter((w) => !w.scheme);

// Three digits, but no exponent.
const microseconds = (w) => (w.us === null ? "" : w.us < 100 ? w.us.toPrecision(3) : w.us.toFixed(0));
const shareOfError = sharesOf(weights), harm = shareColumn(weights, shareOfError);
const columns = [
  harm,
  ...lossColumns(page.samples),
  number("before", (w) => bytes(w.before), (w) => w.before),
  number("after", (w) => bytes(w.after), (w) => w.after),
  ...(weights.some((w) => w.us !== null) ? [number("its module, us", microseconds, (w) => w.us ?? 0)] : []),
  named("scheme", (w) => w.scheme),
  named("weight", (w) => w.path),
  named("sizes", (w) => "(" + w.sizes.join(", ") + ")" + w.remarks),
  named("read by", (w) => w.readers.join(", "))];

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
  if (weights.some((w) => decibels(w.harm_db) < 12))
    lines.push(["p", "Some weights kept less than 12 dB. Give them more bits, or train the model with their numbers (docs/quantization.md)."]);
  if (page.samples === 0) lines.push(["p", "Give calibration data (--calibrate), so that GPTQ can make errors cancel each other."]);
  if (worst.length > 0)
    lines.push(["p", "Or name a goal: --target-accuracy \"cosine >= 0.999\" finds the weights that need more bits."]);
  if (lines.length === 0) lines.push(["p", "Every weight has eight bits. Fewer bits make the program smaller: --recipe mixed."]);
  showAdvice(lines);
}

showTitle(page.title);
document.getElementById("facts").textContent = page.facts.join("\n");
drawTable(document.getElementById("weights"), columns, weights, harm);
showLeft(left);
drawNext();
