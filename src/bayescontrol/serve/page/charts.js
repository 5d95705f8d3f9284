// Charts in plain SVG: axes with names and units, lines with bands, stacks, rows, columns.
// A pointer or the arrow keys read values off. This file is independent of the data shown.
const COLOURS = 8;
const HEIGHT = 210;
const CHARACTER = 6.7; // approximate width of a digit in the labels

const mark = (slot) => `c${slot % COLOURS} d${Math.floor(slot / COLOURS) % 3}`;

function ticks(from, to, most, least = 0) {
  const raw = Math.max(least, (to - from) / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= raw * 0.999);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i += 1) {
    const value = i * step;
    const size = Math.abs(value);
    const compact = { notation: "compact", maximumFractionDigits: 2 };
    const told = size >= 1e5 ? size.toLocaleString("en", compact) : size.toFixed(digits);
    found.push([value, (value < -step * 1e-9 ? "−" : "") + told]);
  }
  return found;
}

// The range of the values with a margin; a given end is used unchanged.
function domain(values, [from, to] = []) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!isNumber(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) [low, high] = [0, 1];
  const air = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  low = from ?? low - air;
  high = to ?? high + air;
  return high > low ? [low, high] : [low, low + 1];
}

// Axes, grid and names. `xTicks` and `yTicks` are pairs of a value and its text.
function frame(width, height, x, y, left) {
  const [right, top, bottom] = [12, 26, 38];
  const X = (v) => left + ((v - x.from) / (x.to - x.from)) * (width - left - right);
  const Y = (v) => height - bottom - ((v - y.from) / (y.to - y.from)) * (height - top - bottom);
  const svg = h("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const foot = height - bottom;
  for (const [value, text] of y.ticks) {
    svg.append(h("line", { class: "grid", x1: left, x2: width - right, y1: Y(value), y2: Y(value) }));
    svg.append(h("text", { class: "tick end", x: left - 6, y: Y(value) + 4 }, text));
  }
  for (const [value, text] of x.ticks) {
    svg.append(h("line", { class: "axis", x1: X(value), x2: X(value), y1: foot, y2: foot + 4 }));
    const half = (text.length * CHARACTER) / 2;
    const centre = Math.min(Math.max(X(value), half), width - half);
    svg.append(h("text", { class: "tick middle", x: centre, y: foot + 17 }, text));
  }
  svg.append(h("line", { class: "axis", x1: left, x2: width - right, y1: foot, y2: foot }));
  svg.append(h("text", { class: "name", x: 0, y: 12 }, y.label));
  svg.append(h("text", { class: "name end", x: width - right, y: height - 4 }, x.label));
  return { svg, X, Y, left, right: width - right, top, foot };
}

function gutter(yTicks) {
  return 10 + CHARACTER * Math.max(...yTicks.map(([, text]) => text.length), 1);
}

// Split the indices into runs without gaps: values that exist and are close in time.
function stretches(x, there, gap) {
  const found = [];
  let open = null;
  x.forEach((at, i) => {
    if (!there(i)) open = null;
    else if (open && at - x[i - 1] <= gap) open.push(i);
    else found.push((open = [i]));
  });
  return found;
}

const course = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");

// spec: x, xLabel, xUnit (seconds or one), origin, yLabel, bounds, series {name, slot, y, low, high},
// stacked, guides {y, text}, gap, when(x) -> text, range [from, to] of the axis, whole (numbers only)
function drawLines(spec, width, at) {
  const { x, series, guides = [], stacked = false, gap = Infinity } = spec;
  const under = x.map(() => 0); // in a stack: the top of the series below
  const shapes = series.map(({ name, slot, y, low, high }) => {
    if (!stacked) return { name, slot, y, low, high };
    const base = [...under];
    y.forEach((value, i) => { if (isNumber(value)) under[i] += value; });
    return { name, slot, there: y, low: base, high: [...under] };
  });
  const all = shapes.flatMap(({ y = [], low = [], high = [] }) => [...y, ...low, ...high]);
  const [from, to] = domain([...all, ...guides.map((guide) => guide.y)], spec.bounds);
  const yTicks = ticks(from, to, 4);
  const left = gutter(yTicks);
  const [start, end] = spec.range ?? [Math.min(x[0], x.at(-1) - spec.xUnit * 2), x.at(-1)];
  const xs = { from: start, to: end, label: spec.xLabel };
  const shown = ticks((xs.from - spec.origin) / spec.xUnit, (xs.to - spec.origin) / spec.xUnit,
    Math.max(2, (width - left) / 90), spec.whole ? 1 : 0);
  xs.ticks = shown.map(([value, text]) => [value * spec.xUnit + spec.origin, text]);
  const f = frame(width, HEIGHT, xs, { from, to, ticks: yTicks, label: spec.yLabel }, left);
  const area = (part, { low, high }) => course([
    ...part.map((i) => [f.X(x[i]), f.Y(Math.min(high[i], to))]),
    ...[...part].reverse().map((i) => [f.X(x[i]), f.Y(Math.max(low[i], from))]),
  ]) + "Z";
  const kind = stacked ? "area" : "band";
  for (const shape of shapes.filter((one) => one.low && one.high)) {
    const there = (i) => isNumber(shape.low[i]) && isNumber(shape.high[i]) &&
      (!stacked || isNumber(shape.there[i]));
    for (const part of stretches(x, there, gap)) {
      f.svg.append(h("path", { class: `${kind} ${mark(shape.slot)}`, d: area(part, shape) }));
    }
  }
  for (const { slot, y } of stacked ? [] : shapes) {
    for (const part of stretches(x, (i) => isNumber(y[i]), gap)) {
      const [px, py] = [f.X(x[part[0]]), f.Y(y[part[0]])];
      f.svg.append(part.length === 1
        ? h("circle", { class: `dot ${mark(slot)}`, cx: px, cy: py, r: 2.5 })
        : h("path", { class: `line ${mark(slot)}`, d: course(part.map((i) => [f.X(x[i]), f.Y(y[i])])) }));
    }
  }
  for (const guide of guides) {
    f.svg.append(h("line", { class: "guide", x1: f.left, x2: f.right, y1: f.Y(guide.y), y2: f.Y(guide.y) }));
    f.svg.append(h("text", { class: "tick said", x: f.left + 4, y: f.Y(guide.y) - 4 }, guide.text));
  }
  if (at !== null) {
    f.svg.append(h("line", { class: "cursor", x1: f.X(x[at]), x2: f.X(x[at]), y1: f.top, y2: f.foot }));
  }
  f.near = (px) => {
    let best = 0;
    x.forEach((v, i) => { if (Math.abs(f.X(v) - px) < Math.abs(f.X(x[best]) - px)) best = i; });
    return best;
  };
  return f;
}

// spec: xLabel, bounds, bars, items {name, slot, value, low, high}: one row for each current value.
function drawRows(spec, width) {
  const row = 24;
  const height = spec.items.length * row + 64;
  const longest = Math.max(...spec.items.map(({ name }) => name.length));
  const room = Math.max(4, Math.min(longest, Math.floor((width * 0.34) / CHARACTER)));
  const cut = (name) => (name.length > room ? `${name.slice(0, room - 1)}…` : name);
  const left = room * CHARACTER + 12;
  const values = spec.items.flatMap(({ value, low, high }) => [value, low, high]);
  const [from, to] = domain(spec.bars ? [0, ...values] : values, spec.bounds);
  const inner = width - 52; // room for the numbers on the right
  const xTicks = ticks(from, to, Math.max(3, (inner - left) / 70));
  const y = { from: spec.items.length, to: 0, ticks: [], label: "" };
  const f = frame(inner, height, { from, to, ticks: xTicks, label: spec.xLabel }, y, left);
  f.svg.setAttribute("width", width);
  f.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (const [value] of xTicks) {
    f.svg.append(h("line", { class: "grid", x1: f.X(value), x2: f.X(value), y1: f.top, y2: f.foot }));
  }
  const within = (v) => f.X(Math.min(Math.max(v, from), to));
  spec.items.forEach(({ name, slot, value, low, high }, i) => {
    const middle = f.top + ((i + 0.5) * (f.foot - f.top)) / spec.items.length;
    const said = h("text", { class: "tick end", x: left - 8, y: middle + 4 }, cut(name));
    said.append(h("title", {}, name));
    f.svg.append(said);
    if (!isNumber(value)) return;
    if (spec.bars) {
      const [a, b] = [within(Math.min(0, value)), within(Math.max(0, value))];
      f.svg.append(h("rect", { class: `bar ${mark(slot)}`, x: a, y: middle - 7, width: b - a, height: 14 }));
    } else {
      if (isNumber(low) && isNumber(high)) {
        f.svg.append(h("line", { class: `reach ${mark(slot)}`, x1: within(low), x2: within(high), y1: middle, y2: middle }));
      }
      f.svg.append(h("circle", { class: `dot ${mark(slot)}`, cx: within(value), cy: middle, r: 5 }));
    }
    f.svg.append(h("text", { class: "tick end number", x: width - 2, y: middle + 4 }, short(value)));
  });
  return f;
}

// spec: xLabel, yLabel, edges (one more than counts), counts, ticks [[edge, text]]
function drawColumns(spec, width) {
  const [from, to] = domain(spec.counts, [0]);
  const yTicks = ticks(from, to, 4);
  const left = gutter(yTicks);
  const x = { from: spec.edges[0], to: spec.edges.at(-1), label: spec.xLabel };
  const room = Math.max(2, (width - left) / 62);
  const thin = Math.ceil(spec.ticks.length / room);
  x.ticks = spec.ticks.filter((_, i) => i % thin === 0);
  const f = frame(width, HEIGHT, x, { from, to, ticks: yTicks, label: spec.yLabel }, left);
  spec.counts.forEach((n, i) => {
    const [a, b] = [f.X(spec.edges[i]), f.X(spec.edges[i + 1])];
    if (n) f.svg.append(h("rect", { class: "bar c0", x: a + 0.5, y: f.Y(n), width: b - a - 1, height: f.foot - f.Y(n) }));
  });
  return f;
}
