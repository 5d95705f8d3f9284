// A log read in the browser, line by line: {seq, kind, time, ...}
//   created    format, model, version, settings, seed
//   decided    x, a, p, key           its seq is the decision's id
//   observed   n, o                   n is the seq of the decision; also defaulted
//   corrected  n, o                   n is the seq of the event that it amends; withdrawn: n alone
//   arm        arm, change, prior     an added arm has a prior
//   compacted                         stands for the events before it, with what was learned from them
//   aggregated                        rewards without decisions
//   others                            change no decision and no observation
// Columns by decision; an observation is stored with its decision.
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
    this.places = new Map(); // id -> index of the decision
    this.names = new Map(); // action -> its number, in the order of appearance
    this.called = new Map(); // the JSON of an action -> its name
    this.callings = new Set(); // the names in use
    this.id = [];
    this.time = [];
    this.x = [];
    this.action = [];
    this.vector = []; // the numbers of a numeric action, or null
    this.p = [];
    this.o = [];
    this.answered = []; // time of the observation
    this.answers = new Map(); // seq of an answer or an amendment -> index of the decision
    this.order = []; // indices of the decisions with feedback, in the order of arrival
    this.added = []; // the arms that were added, and their priors
    this.compacted = null; // the last event that was compacted
    this.partial = false; // whether more was learned than the observations in the file
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
    const nothing = () => {};
    const add = { created: this.begin, decided: this.decide, observed: this.observe, defaulted: this.observe,
      corrected: this.amend, withdrawn: this.amend, aggregated: this.learnMore, compacted: this.learnMore,
      arm: this.changeArm, configured: nothing, refitted: nothing }[kind];
    if (!Number.isInteger(seq) || !add) {
      throw new BadLog(`line ${this.lines} is not an event of a log: seq is ${label(seq)}, kind is ${label(kind)}`);
    }
    if (this.last !== null && seq !== this.last + 1 && kind !== "compacted") this.gaps += 1;
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

  learnMore({ seq, kind }) {
    this.partial = true;
    if (kind === "compacted") this.compacted = seq;
  }

  changeArm({ arm, change, prior }) {
    if (change === "added") this.added.push([arm, prior?.tuple ?? prior?.array ?? prior]);
  }

  // The name of an action: if two have the same text, such as 1 and "1", the second gets its JSON.
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

  // A withdrawal removes the observation; a correction replaces it.
  amend({ seq, kind, n, o, time }) {
    const i = this.answers.get(n);
    if (i === undefined) {
      this.strangers += 1;
      return;
    }
    this.answers.set(seq, i);
    if (kind === "corrected" && this.o[i] === undefined) this.order.push(i);
    if (kind === "withdrawn") this.order = this.order.filter((j) => j !== i);
    this.o[i] = kind === "withdrawn" ? undefined : o ?? null;
    this.answered[i] = kind === "corrected" && isNumber(time) ? time : null;
  }

  observe({ seq, n, o, time }) {
    const i = this.places.get(n);
    if (i === undefined) this.strangers += 1;
    else if (this.o[i] !== undefined) this.repeated += 1;
    else {
      this.o[i] = o ?? null;
      this.answered[i] = isNumber(time) ? time : null;
      this.order.push(i);
      this.answers.set(seq, i);
    }
  }

  // What a compacted log lacks.
  get lack() {
    return this.compacted ? `Events 2 to ${count(this.compacted)} are compacted: their decisions are not in the log.` : "";
  }

  get remarks() {
    const told = [];
    if (this.torn) told.push("The last line is cut off and was left out.");
    if (this.first > 1) told.push(`The file starts at event ${this.first}: what came before is not in it.`);
    if (this.compacted) told.push(this.lack);
    if (this.gaps) told.push(`Events are missing in ${many(this.gaps, "place")}.`);
    if (this.strangers) told.push(`${many(this.strangers, "observation")} of decisions that are not in the file: left out.`);
    if (this.repeated) told.push(`${many(this.repeated, "observation")} of decisions that had one already: the first stands.`);
    if (this.ofNumbers) told.push("The actions are made of numbers: they are drawn, and have no shares.");
    return told;
  }

  // Whether null is a situation (the state None) rather than no situation.
  get situated() {
    return this.created?.model === "gibbs-mdp" || this.x.some((x) => x !== null);
  }

  get ofNumbers() {
    return this.vector.length > 0 && this.vector.every((v) => v !== null);
  }

  // The reward as a number, true and false as 1 and 0; null if the observation is not a number.
  reward(i) {
    const o = this.o[i];
    if (typeof o === "boolean") return o ? 1 : 0;
    return isNumber(o) ? o : null;
  }

  get rewarded() {
    return this.order.length > 0 && this.order.every((i) => this.reward(i) !== null);
  }

  // The priors (α, β) of Bernoulli arms by name, from the log; null for other models, and if the
  // observations do not determine the posterior. An arm that was added without one has the first.
  get priors() {
    if (this.created?.model !== "bernoulli-bandit" || this.partial) return null;
    const { arms, prior } = Object.fromEntries(this.created.settings?.dict ?? []);
    if (!Array.isArray(arms) || arms.length !== prior?.length) return null;
    const pairs = [...arms.map((arm, i) => [arm, prior[i]]), ...this.added];
    return new Map(pairs.map(([arm, own]) => [this.nameOf(arm), own ?? prior[0]]));
  }
}

// Read a file in chunks, so that the page stays responsive; `progress` gets the share read so far.
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
    // An interrupted writer leaves a partial line.
    log.torn = log.lines > 0 && parsed(rest) === undefined;
    if (!log.torn) log.take(rest);
  }
  if (!log.lines) throw new BadLog("the file is empty");
  return log;
}
