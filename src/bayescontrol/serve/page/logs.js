// The logs of shown agents, read from the server: at first their last events, then what is new.
// So counts and history do not begin when the page is opened.
const MOST_EVENTS = 20_000;
const PART = 5_000; // events of one request
const PERIOD = 2_000; // milliseconds from one reading to the next

const home = new URL(".", location.href.split(/[?#]/)[0]);

// Request a path of the server, with the token if there is one.
async function ask(path) {
  const headers = wallet.token === null ? {} : { Authorization: `Bearer ${wallet.token}` };
  const answer = await fetch(new URL(path, home), { headers, cache: "no-store" });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Trouble(problem.detail ?? `the server answered ${answer.status}`);
}

const pathOf = (name) => `v1/agents/${encodeURIComponent(name)}`;

class ServedLog {
  constructor(name) {
    this.name = name;
    this.log = new Log();
    this.skipped = 0; // events that were not read, because there are too many
    this.busy = false;
    this.due = 0;
    this.counted = { lines: -1 };
  }

  // Read new events if it is time; `end` is the number of events that the log has.
  async refresh(end, changed) {
    if (this.busy || Date.now() < this.due || !(end > (this.log.last ?? 0))) return;
    this.busy = true;
    try {
      if (this.log.last === null) {
        await this.read(1, 1);
        this.skipped = Math.max(0, end - 1 - MOST_EVENTS);
        this.log.last += this.skipped;
        this.log.partial ||= this.skipped > 0;
      }
      while (this.log.last < end) {
        const before = this.log.last;
        await this.read(before + 1, PART);
        changed();
        // Nothing: these events are compacted.
        if (this.log.last === before) this.log.last = Math.min(end, before + PART);
      }
    } catch {
      // The stream of events reports that the server is lost.
    }
    this.due = Date.now() + PERIOD;
    this.busy = false;
  }

  async read(start, limit) {
    const answer = await ask(`${pathOf(this.name)}/log?start=${start}&limit=${limit}`);
    for (const line of (await answer.text()).split("\n")) if (line) this.log.take(line);
  }

  // Decisions, observations and the sum of rewards by action, and the age of feedback.
  counts() {
    const { log } = this;
    if (this.counted.lines === log.lines) return this.counted;
    const names = [...log.names.keys()];
    const byAction = new Map(names.map((name) => [name, { decisions: 0, observations: 0, sum: 0 }]));
    for (const a of log.action) byAction.get(names[a]).decisions += 1;
    let newest = null;
    for (const i of log.order) {
      const held = byAction.get(names[log.action[i]]);
      held.observations += 1;
      held.sum += log.reward(i) ?? NaN;
      newest = Math.max(newest, log.answered[i]);
    }
    const open = log.o.indexOf(undefined);
    this.counted = { lines: log.lines, byAction, newest, oldest: open < 0 ? null : log.time[open] };
    return this.counted;
  }

  get remark() {
    return this.skipped ? `Counts and history are those of the last ${count(MOST_EVENTS)} events of the log.` : this.log.lack;
  }
}

const logs = new Map(); // by the name of the agent

// The log of an agent; it is read if `now.events` says that it has new events.
function logOf({ name, now }) {
  if (!logs.has(name)) logs.set(name, new ServedLog(name));
  const found = logs.get(name);
  if (isNumber(now.events)) found.refresh(now.events, redraw);
  return found;
}

// -- the explanation of a decision -----------------------------------------------------------------

const explained = {
  node: h("section", { hidden: true, "aria-label": "Explanation", tabindex: -1 }),
  agent: null,
};

function shown(value) {
  return Number.isInteger(value) ? count(value) : isNumber(value) ? short(value) : label(value);
}

async function explain(agent, id) {
  explained.agent = agent;
  explained.node.hidden = false;
  explained.node.replaceChildren(h("h3", {}, `Decision ${id}`), h("p", { role: "status" }, "Reproducing it from the log"));
  let found;
  try {
    found = await (await ask(`${pathOf(agent)}/decisions/${encodeURIComponent(id)}`)).json();
  } catch (error) {
    const why = error instanceof Trouble ? error.message : "the server does not answer";
    explained.node.lastChild.replaceWith(h("p", { role: "status" }, `It was not explained: ${why}.`));
    return;
  }
  const { decision, posterior } = found;
  const facts = { "time (UTC)": moment(decision.time), action: label(decision.action),
    "probability of the action": short(decision.probability) };
  if (decision.situation !== null) facts.situation = label(decision.situation);
  facts.observation = found.answered ? `${label(found.observation)}${found.is_default ? " (the default)" : ""}` : "none yet";
  if (decision.session !== null) facts.session = decision.session;
  if (decision.holdout) facts.holdout = "yes: what was learned was ignored";
  const list = h("dl", { class: "facts" });
  showFacts(list, facts);
  const fields = [...new Set(Object.values(posterior).flatMap(Object.keys))];
  const p = new Map((decision.probabilities ?? []).map((one) => [label(one.action), one.probability]));
  const names = [...new Set([...Object.keys(posterior), ...p.keys()])].slice(0, MOST_LISTED);
  const grid = table("Before the decision", "name", ...fields, "action probability");
  grid.fill(names.map((name) => [name, ...fields.map((field) => shown(posterior[name]?.[field])), short(p.get(name))]), true);
  const close = h("button", { type: "button" }, "Close");
  close.addEventListener("click", () => { explained.node.hidden = true; });
  explained.node.replaceChildren(h("h3", {}, `Decision ${id}`), list,
    ...(found.mode ? [h("p", { class: "note" }, `Mode drawn: ${found.mode}`)] : []), grid.node, close);
  explained.node.focus();
}
