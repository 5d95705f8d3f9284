// The current state of each agent, and a bounded history since this page was opened. When the
// history is full, every second sample is dropped and samples are taken half as often.
const LAST_DECISIONS = 15;
const ALL_SAMPLES = 40_000;
const MOST_VECTORS = 600;
const MOST_ACTIONS = 1000;

// Parse an action that is not text: it is sent as JSON.
function meant(action) {
  if (typeof action !== "string" || !action.startsWith("{")) return action;
  try {
    return JSON.parse(action);
  } catch {
    return action;
  }
}

class Agent {
  constructor(name) {
    this.name = name;
    this.samples = [];
    this.decisions = [];
    this.taken = new Map(); // action -> its count among the decisions received
    this.vectors = []; // the last few numeric actions, with their times
    this.slots = new Map();
    this.heard = 0;
    this.stride = 1;
    this.now = null;
  }

  // A name has the same colour as arm, as mode and as action.
  slot(name) {
    if (!this.slots.has(name)) this.slots.set(name, this.slots.size);
    return this.slots.get(name);
  }

  take(now, time, most) {
    now.modes ??= [];
    for (const { name } of now.modes) this.slot(String(name));
    for (const name of Object.keys(now.probabilities ?? {})) this.slot(name);
    this.now = now;
    const sample = {
      time,
      rate: now.rate_per_s,
      surprise: now.surprise_bits,
      evidence: now.alarm?.evidence_bits,
      regret: now.regret,
      modes: new Map(now.modes.map((mode) => [String(mode.name), mode])),
      probabilities: now.probabilities ?? {},
    };
    // Between two permanent samples, the last one is overwritten by the current state.
    if (this.heard % this.stride === 0 || this.samples.length < 2) this.samples.push(sample);
    else this.samples[this.samples.length - 1] = sample;
    this.heard += 1;
    if (this.samples.length > most) {
      this.samples = this.samples.filter((_, i) => i % 2 === 0);
      this.stride *= 2;
    }
  }

  decided(decision) {
    const action = meant(decision.action);
    const told = { ...decision, action: label(action) };
    this.decisions.unshift(told);
    this.decisions.length = Math.min(this.decisions.length, LAST_DECISIONS);
    const numbers = vector(action);
    if (numbers) {
      this.vectors.push({ time: decision.time, numbers });
      if (this.vectors.length > MOST_VECTORS) this.vectors.shift();
    } else if (this.taken.has(told.action) || this.taken.size < MOST_ACTIONS) {
      this.slot(told.action);
      this.taken.set(told.action, (this.taken.get(told.action) ?? 0) + 1);
    }
  }
}

class Agents {
  constructor() {
    this.known = new Map();
    this.chosen = null;
    this.heard = false;
  }

  take(list, time) {
    this.heard = true;
    const most = Math.max(60, Math.min(600, Math.floor(ALL_SAMPLES / Math.max(1, list.length))));
    const before = this.known;
    this.known = new Map();
    for (const now of list) {
      const name = String(now.name);
      const agent = before.get(name) ?? new Agent(name);
      agent.take(now, time, most);
      this.known.set(name, agent);
    }
  }

  decided(decision) {
    this.known.get(String(decision.agent))?.decided(decision);
  }

  // The selected agent if it still exists, otherwise the first.
  get shown() {
    return this.known.get(this.chosen) ?? this.known.values().next().value ?? null;
  }

  get alarmed() {
    return [...this.known.values()].filter(({ now }) => now.alarm?.raised);
  }
}
