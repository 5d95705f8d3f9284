// The live view: the list of agents, and the details of the selected one.
const MOST_DRAWN = 12;
const MOST_LISTED = 60;

const agents = new Agents();
const live = {
  name: h("h2"),
  model: h("p", { class: "note" }),
  remarks: h("ul", { class: "remarks note" }),
  facts: h("dl", { class: "facts" }),
  posterior: new Figure("Posterior now"),
  posteriorPath: new Figure("Posterior as it moved"),
  actions: new Figure("Action probabilities now"),
  actionsPath: new Figure("Action probabilities as they moved"),
  taken: new Figure("Actions taken (a sample)"),
  vectors: new Figure("Actions as they were taken (a sample)"),
  surprise: new Figure("Surprise"),
  evidence: new Figure("Evidence that no mode fits"),
  regret: new Figure("Regret"),
  sharesOfLog: new Figure("Action shares in the log"),
  meansOfLog: new Figure("Means by counts in the log"),
  rate: new Figure("Decisions per second"),
  numbers: table("Arms, modes and actions", "name", "decisions", "observations", "mean observed", "posterior mean", "95 % interval",
    "weight", "action probability", "state", "price"),
  decisions: table("Last decisions (a sample; press an id to explain it)", "time", "id", "action", "probability"),
};
$("agent").append(live.name, live.model, live.remarks, live.facts,
  h("div", { class: "charts" }, ...Object.values(live).filter((one) => one instanceof Figure).map(({ node }) => node)),
  live.numbers.node, live.decisions.node, explained.node);

// The largest few, in their original order.
function fewest(names, size) {
  const first = new Set([...names].sort((a, b) => size(b) - size(a)).slice(0, MOST_DRAWN));
  return names.filter((name) => first.has(name));
}

const left = (names, drawn) => (drawn.length < names.length ? `The ${drawn.length} largest of ${names.length} are drawn.` : "");

// A chart over the time up to the last of x; null if there is nothing to draw.
function upTo(what, x, yLabel, series, more = {}) {
  if (!series.some(({ y }) => y.some(isNumber))) return null;
  const [xUnit, unit] = unitOf(x.at(-1) - x[0]);
  return { kind: "lines", x, xUnit, origin: x.at(-1), xLabel: `time before ${what} (${unit})`,
    when: (time) => `at ${clock(time)}`, yLabel, series, ...more };
}

// The same for the samples since the page was opened.
function path(agent, yLabel, series, more = {}) {
  const gap = Math.max(5, 3 * agent.stride);
  return upTo("now", agent.samples.map(({ time }) => time), yLabel, series, { gap, ...more });
}

const single = (agent, field, name) => [{ name, slot: 0, y: agent.samples.map((sample) => sample[field]) }];

function posteriors(agent) {
  const modes = new Map(agent.now.modes.map((mode) => [String(mode.name), mode]));
  const names = [...modes.keys()];
  const means = agent.now.modes.some(({ mean }) => isNumber(mean));
  const field = means ? "mean" : "weight";
  const drawn = fewest(names, (name) => modes.get(name)[field] ?? -Infinity);
  const remark = left(names, drawn);
  if (!agent.now.modes.some((mode) => isNumber(mode[field]))) return [null, null];
  const items = drawn.map((name) => {
    const { low, high, [field]: value } = modes.get(name);
    return { name, slot: agent.slot(name), value, low: means ? low : null, high: means ? high : null };
  });
  const told = items.map(({ name, value }) => `${name} ${short(value)}`).join(", ");
  const track = (name, what) => agent.samples.map((sample) => sample.modes.get(name)?.[what]);
  const series = drawn.map((name) => ({
    name, slot: agent.slot(name), y: track(name, field),
    ...(means ? { low: track(name, "low"), high: track(name, "high") } : {}),
  }));
  const { name: what = "mean reward", unit = "reward" } = agent.now.measure ?? {};
  const interval = agent.now.modes.some(({ low, high }) => isNumber(low) && isNumber(high));
  const yLabel = means ? `${what}${interval ? " and 95 % interval" : ""} (${unit})` : "weight of the mode (probability)";
  const bounds = means ? [] : [0, 1];
  return [
    { kind: "rows", xLabel: yLabel, bounds, bars: !means, items, told, remark },
    path(agent, yLabel, series, { bounds, remark }),
  ];
}

function actions(agent) {
  const now = agent.now.probabilities ?? {};
  const names = Object.keys(now);
  if (!names.length) return [null, null];
  const drawn = fewest(names, (name) => now[name]);
  const remark = left(names, drawn);
  const items = drawn.map((name) => ({ name, slot: agent.slot(name), value: now[name] }));
  const told = items.map(({ name, value }) => `${name} ${short(value)}`).join(", ");
  const series = drawn.map((name) => ({
    name, slot: agent.slot(name), y: agent.samples.map(({ probabilities }) => probabilities[name] ?? null),
  }));
  return [
    { kind: "rows", xLabel: "probability of the action", bounds: [0, 1], bars: true, items, told, remark },
    path(agent, "probability of the action, stacked", series, { bounds: [0, 1], stacked: true, remark }),
  ];
}

// Without probabilities: the shares of the actions among the decisions received.
function taken(agent) {
  const total = [...agent.taken.values()].reduce((sum, n) => sum + n, 0);
  if (Object.keys(agent.now.probabilities ?? {}).length || !total) return null;
  const names = [...agent.taken.keys()].sort((a, b) => agent.slot(a) - agent.slot(b));
  const share = (name) => agent.taken.get(name) / total;
  const drawn = fewest(names, share);
  const items = drawn.map((name) => ({ name, slot: agent.slot(name), value: share(name) }));
  const told = items.map(({ name, value }) => `${name} ${short(value)}`).join(", ");
  const remark = `Of ${many(total, "decision")} seen since this page was opened. ${left(names, drawn)}`;
  return { kind: "rows", xLabel: "share of decisions", bounds: [0, 1], bars: true, items, told, remark };
}

function vectors({ vectors: seen }) {
  if (!seen.length) return null;
  const series = componentsOf(seen.map(({ numbers }) => numbers)).slice(0, MOST_DRAWN);
  return upTo("the last", seen.map(({ time }) => time), "entry of the action (its own unit)", series);
}

// An arm without decisions has 0 of them, once the log was read; other names may be no actions.
function numbers(agent, byAction) {
  const arms = new Map((agent.now.arms ?? []).map((arm) => [arm.name, arm]));
  const changed = [...arms.values()].some(({ state }) => state !== "active");
  const modes = new Map(agent.now.modes.map((mode) => [String(mode.name), mode]));
  const p = agent.now.probabilities ?? {};
  const names = [...new Set([...modes.keys(), ...Object.keys(p), ...byAction.keys(), ...arms.keys()])].slice(0, MOST_LISTED);
  return names.map((name) => {
    const { mean, low, high, weight } = modes.get(name) ?? {};
    const none = arms.has(name) && byAction.size ? { decisions: 0, observations: 0 } : {};
    const { decisions, observations, sum } = byAction.get(name) ?? none;
    const { state, price } = arms.get(name) ?? {};
    const never = arms.has(name) && agent.now.probabilities ? 0 : null;
    return [name, count(decisions), count(observations), short(sum / observations), short(mean), between(low, high),
      short(weight), short(p[name] ?? never), changed ? state ?? "–" : "–", short(price)];
  });
}

// A chart of the log in the colours, and in the order, that the names have in the other charts.
function inColours(agent, spec) {
  for (const one of spec?.series ?? []) one.slot = agent.slot(one.name);
  spec?.series.sort((a, b) => a.slot - b.slot);
  return spec;
}

function showAgent(agent) {
  $("agent").hidden = !agent;
  if (!agent) return;
  const { now } = agent;
  say(live.name, agent.name);
  say(live.model, `model ${now.model}`);
  const facts = { decisions: count(now.decisions), observations: count(now.observations),
    "feedback awaited": count(now.pending), "decisions per second": short(now.rate_per_s) };
  const served = logOf(agent);
  const { log } = served;
  const { byAction, newest, oldest } = served.counts();
  const age = (time) => (isNumber(time) ? duration(Math.max(0, Date.now() / 1000 - time)) : "none");
  if (log.id.length) {
    facts["oldest open decision (age)"] = age(oldest);
    facts["last observation (age)"] = age(newest);
  }
  if (isNumber(now.surprise_bits)) facts["surprise (bits)"] = short(now.surprise_bits);
  if (isNumber(now.regret)) facts["regret (reward)"] = short(now.regret);
  if (now.alarm) facts["no mode fits"] = now.alarm.raised ? "ALARM" : "no alarm";
  showFacts(live.facts, facts);
  const remarks = [...(now.remarks ?? []), served.remark].filter(Boolean);
  while (live.remarks.children.length > remarks.length) live.remarks.lastChild.remove();
  remarks.forEach((text, i) => say(live.remarks.children[i] ?? live.remarks.appendChild(h("li")), text));
  const [posterior, posteriorPath] = posteriors(agent);
  const [law, lawPath] = actions(agent);
  live.posterior.show(posterior);
  live.posteriorPath.show(posteriorPath);
  live.actions.show(law);
  live.actionsPath.show(lawPath);
  live.taken.show(taken(agent));
  live.vectors.show(vectors(agent));
  const at = now.alarm?.threshold_bits;
  live.rate.show(path(agent, "decisions per second (1/s)", single(agent, "rate", "decisions"), { bounds: [0] }));
  live.surprise.show(path(agent, "surprise of an observation (bits)", single(agent, "surprise", "surprise")));
  live.evidence.show(path(agent, "evidence against the best mode (bits)", single(agent, "evidence", "evidence"),
    isNumber(at) ? { guides: [{ y: at, text: `alarm at ${short(at)} bits` }] } : {}));
  live.regret.show(path(agent, "regret since the start (reward)", single(agent, "regret", "regret")));
  const most = mostTaken(log);
  live.sharesOfLog.show(inColours(agent, shares(log, most)));
  live.meansOfLog.show(inColours(agent, means(log, most)[1]));
  live.numbers.fill(numbers(agent, log.ofNumbers ? new Map() : byAction), true);
  live.decisions.fill(agent.decisions.map(({ time, id, action, probability }) =>
    [clock(time), { text: String(id), press: (text) => explain(agents.shown.name, text) }, action, short(probability)]), true);
  if (explained.agent !== agent.name) explained.node.hidden = true;
}

function showFacts(list, facts) {
  const names = Object.keys(facts);
  if (list.children.length !== names.length) {
    list.replaceChildren(...names.map(() => h("div", {}, h("dt"), h("dd"))));
  }
  names.forEach((name, i) => {
    const [term, value] = list.children[i].children;
    say(term, name);
    say(value, facts[name]);
  });
}

function showAgents() {
  const list = $("agents");
  const known = [...agents.known.values()];
  while (list.children.length > known.length) list.lastChild.remove();
  known.forEach((agent, i) => {
    if (!list.children[i]) {
      const button = h("button", { type: "button" }, h("b"), h("span"));
      button.addEventListener("click", () => {
        agents.chosen = button.dataset.name;
        showLive();
      });
      list.append(h("li", {}, button));
    }
    const button = list.children[i].firstChild;
    const raised = agent.now.alarm?.raised;
    button.dataset.name = agent.name;
    button.setAttribute("aria-pressed", agent === agents.shown);
    button.classList.toggle("alarmed", Boolean(raised));
    say(button.firstChild, agent.name);
    say(button.lastChild, `${short(agent.now.rate_per_s)} decisions/s${raised ? ", alarm" : ""}`);
  });
}

// Written only when it changes, so that a screen reader announces an alarm once.
function showAlarms() {
  const raised = agents.alarmed.map((agent) => `${agent.name}: no mode fits what is observed.`);
  const told = [...$("alarms").children].map((line) => line.textContent);
  if (raised.join("\n") !== told.join("\n")) {
    $("alarms").replaceChildren(...raised.map((text) => h("p", {}, text)));
  }
  document.title = raised.length ? `Alarm: ${agents.alarmed[0].name} · bayescontrol` : "bayescontrol";
}

function showLive() {
  const known = [...agents.known.values()];
  const rate = known.reduce((sum, { now }) => sum + (now.rate_per_s || 0), 0);
  const told = known.length === 1 ? "1 agent" : `${known.length} agents`;
  say($("totals"), agents.heard ? `${told}, ${short(rate)} decisions per second` : "");
  showAgents();
  showAlarms();
  showAgent(agents.shown);
}
