// A log read in the browser, line by line: {seq, kind, time, ...}
//   created    format, model, version, settings, seed
//   decided    x, a, p, key           its seq is the decision's id
//   observed   n, o                   n is the seq of the decision
// Columns by decision; an observation is kept with its decision.
const FORMAT = 1;

class BadLog extends Error {}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

class Log {
  constructor() {
    this.created = null;
    this.lines = 0;
    this.first = null;
    this.last = null;
    this.places = new Map(); // id -> place of the decision
    this.names = new Map(); // action -> its number, in the order of appearance
    this.called = new Map(); // the JSON of an action -> its name
    this.callings = new Set(); // the names that are given
    this.id = [];
    this.time = [];
    this.x = [];
    this.action = [];
    this.vector = []; // the numbers of an action that is made of them, or null
    this.p = [];
    this.o = [];
    this.answered = []; // when
    this.order = []; // of the decisions that have feedback, as it came
    this.gaps = 0;
    this.strangers = 0;
    this.repeated = 0;
    this.torn = false;
  }

  take(line) {
    this.lines += 1;
    const event = parsed(line);
    if (event === undefined) throw new BadLog(`line ${this.lines} is not JSON: ${line.slice(0, 40)}`);
    const { seq, kind } = event ?? {};
    const add = { created: this.begin, decided: this.decide, observed: this.observe }[kind];
    if (!Number.isInteger(seq) || !add) {
      throw new BadLog(`line ${this.lines} is not an event of a log: seq is ${label(seq)}, kind is ${label(kind)}`);
    }
    if (this.last !== null && seq !== this.last + 1) this.gaps += 1;
    this.first ??= seq;
    this.last = seq;
    add.call(this, event);
  }

  begin(event) {
    if (event.format > FORMAT) {
      throw new BadLog(`the log is in format ${event.format}, this page reads up to ${FORMAT}: use a later release`);
    }
    this.created = event;
  }

  // What an action is called: of two that read alike, as 1 and "1" do, the second by its JSON.
  nameOf(a) {
    const json = JSON.stringify(a);
    if (!this.called.has(json)) {
      const name = label(a);
      this.called.set(json, this.callings.has(name) ? json : name);
      this.callings.add(name);
    }
    return this.called.get(json);
  }

  decide({ seq, time, x, a, p }) {
    const name = this.nameOf(a);
    if (!this.names.has(name)) this.names.set(name, this.names.size);
    this.places.set(seq, this.id.length);
    this.id.push(seq);
    this.time.push(isNumber(time) ? time : null);
    this.x.push(x ?? null);
    this.action.push(this.names.get(name));
    this.vector.push(vector(a));
    this.p.push(p ?? null);
    this.o.push(undefined);
    this.answered.push(null);
  }

  observe({ n, o, time }) {
    const i = this.places.get(n);
    if (i === undefined) this.strangers += 1;
    else if (this.o[i] !== undefined) this.repeated += 1;
    else {
      this.o[i] = o ?? null;
      this.answered[i] = isNumber(time) ? time : null;
      this.order.push(i);
    }
  }

  get remarks() {
    const told = [];
    if (this.torn) told.push("The last line is cut off and was left out.");
    if (this.first > 1) told.push(`The file starts at event ${this.first}: what came before is not in it.`);
    if (this.gaps) told.push(`Events are missing in ${many(this.gaps, "place")}.`);
    if (this.strangers) told.push(`${many(this.strangers, "observation")} of decisions that are not in the file: left out.`);
    if (this.repeated) told.push(`${many(this.repeated, "observation")} of decisions that had one already: the first stands.`);
    if (this.ofNumbers) told.push("The actions are made of numbers: they are drawn, and have no shares.");
    return told;
  }

  // Whether null is a situation, as a state may be, or there is none.
  get situated() {
    return this.created?.model === "gibbs-mdp" || this.x.some((x) => x !== null);
  }

  get ofNumbers() {
    return this.vector.length > 0 && this.vector.every((v) => v !== null);
  }

  // Rewards as numbers, true and false as 1 and 0; null if an observation is none.
  reward(i) {
    const o = this.o[i];
    if (typeof o === "boolean") return o ? 1 : 0;
    return isNumber(o) ? o : null;
  }

  get rewarded() {
    return this.order.length > 0 && this.order.every((i) => this.reward(i) !== null);
  }

  // Of Bernoulli arms: (α, β) by the name of the arm, as the log states them; else null.
  get priors() {
    if (this.created?.model !== "bernoulli-bandit") return null;
    const { arms, prior } = Object.fromEntries(this.created.settings?.dict ?? []);
    if (!Array.isArray(arms) || arms.length !== prior?.length) return null;
    return new Map(arms.map((arm, i) => [this.nameOf(arm), prior[i]]));
  }
}

// Reads a file in pieces, so that the page goes on living; `progress` gets the share that is read.
async function readLog(file, progress, stopped) {
  const log = new Log();
  const reader = file.stream().getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (stopped()) return null;
    try {
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
    } catch {
      throw new BadLog(`after line ${log.lines} comes something that is not text`);
    }
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.trim()) log.take(line);
    if (done) break;
    size += value.length;
    progress(size / file.size);
  }
  if (rest.trim()) {
    // A writer that was stopped leaves half a line.
    log.torn = log.lines > 0 && parsed(rest) === undefined;
    if (!log.torn) log.take(rest);
  }
  if (!log.lines) throw new BadLog("the file is empty");
  return log;
}
