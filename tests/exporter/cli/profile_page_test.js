// node profile_page_test.js SUMS.js: the sums and bars of exporter/cli/page/sums.js.
"use strict";
const assert = require("assert"), fs = require("fs"), vm = require("vm");
vm.runInThisContext(fs.readFileSync(process.argv[2], "utf8"));

const instruction = (module, us, more = {}) => ({ module, us, operations: 0, bytes: 8, ...more });
const list = [
  instruction("a.b.c", 1, { roof: "compute", roof_us: 1, operations: 5 }),
  instruction("a.b.d", 2, { roof: "memory", roof_us: 2 }),
  instruction("a", 3),
  instruction("", 4),
  instruction("a.b.c", 5, { roof: "compute", roof_us: 0.5 })];

assert.deepStrictEqual(["a.b", "a", "", "a.b.c"].map((path) => moduleAt(path, 1)), ["a", "a", "", "a"]);
assert.strictEqual(moduleAt("a.b.c", 0), "a.b.c");

// whole paths, then the outermost modules
assert.deepStrictEqual(sumsBy(list, (i) => i.module).map((s) => [s.name, s.count, s.us]),
  [["a.b.c", 2, 6], ["a.b.d", 1, 2], ["a", 1, 3], ["", 1, 4]]);
const [outer, none] = sumsBy(list, (i) => moduleAt(i.module, 1));
assert.deepStrictEqual([outer.us, outer.operations, outer.bytes, outer.roof, outer.roof_us], [11, 5, 32, "memory", 3.5]);
assert.deepStrictEqual([none.roof, none.roof_us], [undefined, 0]);

// names that an object has anyhow are names like others
assert.deepStrictEqual(sumsBy(["__proto__", "constructor"].map((m) => instruction(m, 1)), (i) => i.module).map((s) => s.name),
  ["__proto__", "constructor"]);

// neighbours are one bar; an instruction outside of the level ends it
const events = list.map((_, i) => ({ instruction: i, begin: 10 * i, end: 10 * i + 9 }));
assert.deepStrictEqual(moduleBars(events, list, 2).map((b) => [b.level, b.name, b.begin, b.end]), [
  [1, "a", 0, 29], [1, "a", 40, 49], [2, "a.b", 0, 19], [2, "a.b", 40, 49]]);

assert.deepStrictEqual(sorted(list, (i) => i.us, true).map((i) => i.us), [5, 4, 3, 2, 1]);
assert.deepStrictEqual(sorted(list, (i) => i.module, false).map((i) => i.module), ["", "a", "a.b.c", "a.b.c", "a.b.d"]);
console.log("sums and bars");
