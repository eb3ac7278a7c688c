// node quantize_page_test.js FOLDER: what exporter/cli/page/quantize.js says about weights.
"use strict";
const assert = require("assert"), fs = require("fs"), vm = require("vm");
const code = ["measures.js", "advice.js", "quantize.js"].map((file) => fs.readFileSync(process.argv[2] + "/" + file, "utf8")).join("\n");

// The advice and the columns of a page with these weights.
function shown(weights) {
  const elements = {};
  const element = () => ({ children: [], textContent: "", replaceChildren(...list) { this.children = list; }, replaceWith() {} });
  const document = { createElement: element, getElementById: (id) => (elements[id] ??= element()) };
  let columns = [];
  const drawTable = (table, list) => { columns = list; };
  vm.runInNewContext(code, { page: { weights, title: "", facts: [], samples: 1 }, document, bar: element(), drawTable });
  return { advice: elements.next.children.map((line) => line.textContent).join("\n"), columns };
}
const weight = (more) => ({ scheme: "q4_0 mse", path: "w", harm_db: 20, sqnr_db: 20, output_db: null, has_output: false, cosine: 1,
  most: 1, histogram: [], sizes: [1], remarks: "", readers: [], before: 4, after: 1, us: null, ...more });

assert.match(shown([weight({ harm_db: 11 })]).advice, /kept less than 12 dB/);
assert.doesNotMatch(shown([weight()]).advice, /12 dB/);
assert.doesNotMatch(shown([weight({ harm_db: null })]).advice, /12 dB/, "null stands for no error");

const timed = [weight({ us: 0.1234 }), weight({ us: 98.76 }), weight({ us: 12345.6 }), weight()];
const time = shown(timed).columns.find((c) => c.title === "its module, us");
assert.deepStrictEqual(timed.map(time.text), ["0.123", "98.8", "12346", ""]);
assert.ok(!shown([weight()]).columns.some((c) => c.title === time.title), "nothing was timed");
console.log("advice and times");
