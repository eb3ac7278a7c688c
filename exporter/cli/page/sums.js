// Sums over instructions, and the bars of the timeline. No part of a browser is used here.

const limits = ["compute", "cache", "memory"];

// The first `depth` parts of a module's path; all of them for depth 0.
function moduleAt(path, depth) {
  return depth ? path.split(".").slice(0, depth).join(".") : path;
}

// The sum of the instructions with the same key, in the order in which the keys appear.
function sumsBy(instructions, keyOf) {
  const sums = new Map();
  for (const instruction of instructions) {
    const name = keyOf(instruction);
    if (!sums.has(name)) sums.set(name, { name, count: 0, us: 0, operations: 0, bytes: 0, roofs: {} });
    const sum = sums.get(name);
    sum.count += 1;
    sum.us += instruction.us;
    sum.operations += instruction.operations;
    sum.bytes += instruction.bytes;
    if (instruction.roof) sum.roofs[instruction.roof] = (sum.roofs[instruction.roof] ?? 0) + instruction.roof_us;
  }
  for (const sum of sums.values()) {
    sum.roof = limits.filter((limit) => sum.roofs[limit]).sort((a, b) => sum.roofs[b] - sum.roofs[a])[0];
    sum.roof_us = Object.values(sum.roofs).reduce((a, b) => a + b, 0);
  }
  return [...sums.values()];
}

// Neighbouring events of one module are one bar on each level of its path. Level 1 is the outermost.
function moduleBars(events, instructions, levels) {
  const bars = [];
  for (let level = 1; level <= levels; ++level) {
    let last = null;
    for (const event of events) {
      const path = instructions[event.instruction].module;
      if (!path || path.split(".").length < level) {
        last = null;
        continue;
      }
      const name = moduleAt(path, level);
      if (last && last.name === name) last.end = event.end;
      else bars.push((last = { level, name, begin: event.begin, end: event.end }));
    }
  }
  return bars;
}

// Rows in the order of a column: by numbers with the largest first, or by names.
function sorted(rows, valueOf, descending) {
  const compare = (a, b) => (typeof a === "string" ? (a < b ? -1 : a > b ? 1 : 0) : a - b);
  return [...rows].sort((a, b) => compare(valueOf(a), valueOf(b)) * (descending ? -1 : 1));
}
