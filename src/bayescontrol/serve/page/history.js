// The log view: the content of an opened log, and posteriors replayed from counts.
const BINS = 60;
const PAGE = 25;
const DELAYS = [[1e-3, "1 ms"], [1e-2, "10 ms"], [0.1, "0.1 s"], [1, "1 s"], [10, "10 s"], [60, "1 min"],
  [600, "10 min"], [3600, "1 h"], [36_000, "10 h"], [86_400, "1 d"], [864_000, "10 d"], [8.64e6, "100 d"]];

const past = {
  name: h("h2"),
  model: h("p", { class: "note" }),
  remarks: h("ul", { class: "remarks" }),
  facts: h("dl", { class: "facts" }),
  shares: new Figure("Action shares"),
  vectors: new Figure("Actions as they were taken"),
  delays: new Figure("Feedback delay"),
  means: new Figure("Means by counts"),
  meansPath: new Figure("Means by counts as they moved"),
  byAction: table("Actions", "action", "decisions", "with feedback", "mean", "95 % interval"),
  decisions: table("Decisions", "id", "time (UTC)", "situation", "action", "probability", "feedback", "delay"),
  older: h("button", { type: "button" }, "Older"),
  newer: h("button", { type: "button" }, "Newer"),
  where: h("span", { role: "status" }),
};

// The position of decision i on the time axis: seconds since the first, or its number.
function timeline(log) {
  const size = log.time.length;
  const span = log.time.at(-1) - log.time[0];
  if (!log.time.every(isNumber) || !(span > 0)) {
    const number = (x) => Math.min(size, Math.max(1, Math.round(x)));
    return { at: (i) => i + 1, xUnit: 1, range: [0.5, size + 0.5], whole: true, origin: 0,
      xLabel: "decision (number)", when: (x) => `decision ${count(number(x))}` };
  }
  const [xUnit, unit] = span < 2 ? [1e-3, "ms"] : unitOf(span);
  return { at: (i) => log.time[i] - log.time[0], xUnit, range: [0, span], origin: 0,
    xLabel: `time since the first decision (${unit})`, when: (x) => `after ${duration(Math.max(0, x))}` };
}

function mostTaken(log) {
  const taken = new Map([...log.names.keys()].map((name) => [name, 0]));
  const names = [...log.names.keys()];
  for (const a of log.action) taken.set(names[a], taken.get(names[a]) + 1);
  const drawn = fewest(names, (name) => taken.get(name));
  return { names, taken, drawn, remark: left(names, drawn) };
}

function shares(log, { names, drawn, remark }) {
  if (!log.id.length || log.ofNumbers) return null;
  const { at, ...axis } = timeline(log);
  const [from, to] = axis.range;
  const bins = Math.min(BINS, log.id.length);
  const size = (to - from) / bins;
  const taken = Array.from({ length: bins }, () => new Map());
  const totals = Array(bins).fill(0);
  log.action.forEach((a, i) => {
    // A clock that was set back must not move a decision off the axis.
    const bin = Math.min(bins - 1, Math.max(0, Math.floor((at(i) - from) / size)));
    taken[bin].set(names[a], (taken[bin].get(names[a]) ?? 0) + 1);
    totals[bin] += 1;
  });
  // Steps: a bin has the same shares at both ends, and none without decisions.
  const ends = totals.flatMap((_, bin) => [bin, bin]);
  const x = ends.map((bin, i) => from + (bin + (i % 2)) * size);
  const series = drawn.map((name) => ({
    name, slot: log.names.get(name), y: ends.map((bin) => (totals[bin] ? (taken[bin].get(name) ?? 0) / totals[bin] : null)),
  }));
  return { kind: "lines", x, ...axis, stacked: true, yLabel: "share of decisions, stacked", bounds: [0, 1], series, remark };
}

// Numeric actions: a line for each entry, for as many decisions as can be distinguished.
function vectorsOf(log) {
  if (!log.ofNumbers) return null;
  const every = Math.ceil(log.id.length / (10 * BINS));
  const kept = [...log.id.keys()].filter((i) => i % every === 0);
  const { at, ...axis } = timeline(log);
  const series = componentsOf(kept.map((i) => log.vector[i])).slice(0, MOST_DRAWN);
  const remark = every > 1 ? `One in ${every} decisions is drawn.` : "";
  return { kind: "lines", x: kept.map(at), ...axis, yLabel: "entry of the action (its own unit)", series, remark };
}

function delaysOf(log) {
  return log.order.map((i) => log.answered[i] - log.time[i]).filter((d, k) =>
    isNumber(d) && log.answered[log.order[k]] !== null && log.time[log.order[k]] !== null);
}

function delays(log) {
  const sorted = delaysOf(log).map((d) => Math.max(d, 1e-3)).sort((a, b) => a - b);
  if (!sorted.length) return null;
  const low = Math.floor(Math.log10(sorted[0]) * 4) / 4;
  const bins = Math.max(4, Math.ceil((Math.log10(sorted.at(-1)) - low) * 4 + 1e-9));
  const counts = Array(bins).fill(0);
  for (const d of sorted) counts[Math.min(bins - 1, Math.floor((Math.log10(d) - low) * 4))] += 1;
  const edges = Array.from({ length: bins + 1 }, (_, i) => low + i / 4);
  const marks = DELAYS.map(([d, text]) => [Math.log10(d), text]).filter(([d]) => d >= edges[0] && d <= edges.at(-1));
  const within = (share) => duration(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]);
  const told = `half within ${within(0.5)}, nine tenths within ${within(0.9)}`;
  return { kind: "columns", edges, counts, ticks: marks, xLabel: "delay (logarithmic, time as marked)",
    yLabel: "observations (count)", told, remark: `Of ${many(sorted.length, "observation")} ${told}.` };
}

// Counts by action at regular points of the feedback, in the order of the log.
function replay(log, drawn) {
  const names = [...log.names.keys()];
  const counts = new Map(drawn.map((name) => [name, { n: 0, sum: 0, squares: 0 }]));
  const priors = log.priors;
  const points = [];
  const every = Math.max(1, Math.ceil(log.order.length / BINS));
  log.order.forEach((i, k) => {
    const held = counts.get(names[log.action[i]]);
    if (held) {
      const r = log.reward(i);
      held.n += 1;
      held.sum += r;
      held.squares += r * r;
    }
    if ((k + 1) % every && k + 1 < log.order.length) return;
    const now = new Map([...counts].map(([name, held]) => [name, byCounts(held, priors?.get(name))]));
    points.push({ k: k + 1, now });
  });
  return points;
}

function means(log, { drawn, remark }) {
  if (!log.rewarded) return [null, null, null];
  // The posterior of an untried arm is its prior.
  const known = [...new Set([...log.names.keys(), ...(log.priors?.keys() ?? [])])];
  const arms = [...new Set([...drawn, ...known])].slice(0, log.priors ? MOST_DRAWN : drawn.length);
  const points = replay(log, arms);
  const slot = (name) => known.indexOf(name);
  const yLabel = log.priors ? "posterior mean and 95 % interval (reward)" : "mean observed and 95 % interval (reward)";
  const last = points.at(-1).now;
  const items = arms.map((name) => {
    const { mean, low, high } = last.get(name);
    return { name, slot: slot(name), value: mean, low, high };
  });
  const told = items.map(({ name, value }) => `${name} ${short(value)}`).join(", ");
  const series = arms.map((name) => {
    const track = (what) => points.map(({ now }) => now.get(name)[what]);
    return { name, slot: slot(name), y: track("mean"), low: track("low"), high: track("high") };
  });
  const everywhere = log.x.some((x) => x !== null) ? "Over all situations together. " : "";
  return [
    { kind: "rows", xLabel: yLabel, items, told, remark: everywhere + remark },
    { kind: "lines", x: points.map(({ k }) => k), xUnit: 1, origin: 0, range: [0, points.at(-1).k], whole: true,
      xLabel: "observations (count)", yLabel, series, when: (k) => `after ${many(k, "observation")}`,
      remark: everywhere + remark },
    last,
  ];
}

let opened = null;
let newest = 0; // the number of decisions newer than the first one in the table

function showDecisions() {
  const size = opened.id.length;
  const names = [...opened.names.keys()];
  const { situated } = opened;
  const last = size - newest;
  const first = Math.max(0, last - PAGE);
  const rows = [];
  for (let i = last - 1; i >= first; i -= 1) {
    const waits = opened.o[i] === undefined;
    const delay = opened.answered[i] === null || opened.time[i] === null ? null : opened.answered[i] - opened.time[i];
    rows.push([String(opened.id[i]), opened.time[i] === null ? "–" : moment(opened.time[i]),
      situated ? label(opened.x[i]) : "–", opened.vector[i] ? label({ array: opened.vector[i] }) : names[opened.action[i]], short(opened.p[i]), waits ? "none yet" : label(opened.o[i]), duration(delay)]);
  }
  past.decisions.fill(rows);
  past.older.disabled = first === 0;
  past.newer.disabled = newest === 0;
  say(past.where, size ? `${count(first + 1)} to ${count(last)} of ${count(size)}` : "no decisions");
}

function turn(by) {
  newest = Math.max(0, Math.min(newest + by, opened.id.length - 1));
  showDecisions();
}

function showHistory(log, name) {
  opened = log;
  newest = 0;
  if (!$("history").hasChildNodes()) {
    const figures = [past.shares, past.vectors, past.delays, past.means, past.meansPath].map(({ node }) => node);
    past.older.addEventListener("click", () => turn(PAGE));
    past.newer.addEventListener("click", () => turn(-PAGE));
    $("history").append(past.name, past.model, past.remarks, past.facts, h("div", { class: "charts" }, ...figures),
      past.byAction.node, past.decisions.node, h("p", { class: "pages" }, past.older, past.newer, past.where));
  }
  const { created, id, order } = log;
  say(past.name, name);
  say(past.model, created ? `model ${created.model}, version ${created.version}, seed ${created.seed}` : "model unknown");
  past.remarks.replaceChildren(...log.remarks.map((text) => h("li", {}, text)));
  const facts = { events: count(log.lines), decisions: count(id.length), observations: count(order.length),
    "without feedback": count(id.length - order.length) };
  if (isNumber(log.time[0])) facts["first decision (UTC)"] = moment(log.time[0]);
  if (isNumber(log.time.at(-1))) facts["last decision (UTC)"] = moment(log.time.at(-1));
  showFacts(past.facts, facts);
  const most = mostTaken(log);
  const [now, path, last] = means(log, most);
  past.shares.show(shares(log, most));
  past.vectors.show(vectorsOf(log));
  past.delays.show(delays(log));
  past.means.show(now);
  past.meansPath.show(path);
  const fed = new Map();
  for (const i of order) fed.set(most.names[log.action[i]], (fed.get(most.names[log.action[i]]) ?? 0) + 1);
  const listed = log.ofNumbers ? [] : [...new Set([...most.names, ...(log.priors?.keys() ?? [])])];
  past.byAction.fill(listed.slice(0, MOST_LISTED).map((action) => {
    const { mean, low, high } = last?.get(action) ?? {};
    return [action, count(most.taken.get(action) ?? 0), count(fed.get(action) ?? 0), short(mean), between(low, high)];
  }), true);
  showDecisions();
}
