// Server-sent events read by fetch, because EventSource cannot send a token in a header and a
// token in a URL ends up in logs. Reconnects automatically, with growing delays.
const SILENCE = 12_000; // the server sends every second: after this time it counts as lost
const SLOWEST = 30_000;
const LONGEST = 300_000; // upper limit of Retry-After
const KEPT = "bayescontrol-token";

// Text in chunks of any size -> events {kind, data}.
class EventParser {
  constructor() {
    this.rest = "";
    this.kind = "";
    this.data = [];
  }

  *push(text) {
    this.rest += text;
    // A carriage return at the end may be the first half of CRLF.
    const whole = this.rest.endsWith("\r") ? this.rest.slice(0, -1) : this.rest;
    const lines = whole.split(/\r\n|\n|\r/);
    this.rest = lines.pop() + this.rest.slice(whole.length);
    for (const line of lines) {
      if (line === "") {
        if (this.data.length) yield { kind: this.kind || "message", data: this.data.join("\n") };
        this.kind = "";
        this.data = [];
      } else if (!line.startsWith(":")) {
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "event") this.kind = value;
        if (field === "data") this.data.push(value);
      }
    }
  }
}

class Trouble extends Error {
  constructor(message, after = 0) {
    super(message);
    this.after = after;
  }
}

// If the browser refuses to store the token, it is kept until the page is closed.
const wallet = {
  token: null,
  load() {
    try { this.token = sessionStorage.getItem(KEPT); } catch { /* refused by the browser */ }
  },
  keep(token) {
    this.token = token;
    try {
      if (token === null) sessionStorage.removeItem(KEPT);
      else sessionStorage.setItem(KEPT, token);
    } catch { /* refused by the browser */ }
  },
};

class Stream {
  // on.event(kind, value), on.open(), on.lost(why), on.token(refused) -> a promise of the token
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.hurry = () => {};
    this.stop = null;
    this.again = false;
  }

  async run() {
    wallet.load();
    for (let failures = 0; ;) {
      let wait;
      this.again = false;
      try {
        await this.listen(() => { failures = 0; });
        continue; // with another token
      } catch (error) {
        const known = error instanceof Trouble;
        this.on.lost(known ? error.message : "the server does not answer");
        const eager = Math.min(SLOWEST, 1000 * 2 ** failures) * (0.5 + Math.random() / 2);
        wait = Math.max(eager, known ? error.after : 0);
      }
      failures += 1;
      await new Promise((resolve) => {
        this.hurry = resolve;
        setTimeout(resolve, wait);
      });
    }
  }

  // Reconnect with another token, or with none.
  restart() {
    this.again = true;
    this.stop?.abort();
    this.hurry();
  }

  async listen(heard) {
    const stop = new AbortController();
    this.stop = stop;
    let silent = false;
    let timer;
    const patience = () => {
      clearTimeout(timer);
      timer = setTimeout(() => { silent = true; stop.abort(); }, SILENCE);
    };
    patience();
    try {
      const headers = { Accept: "text/event-stream" };
      const token = wallet.token;
      if (token !== null) headers.Authorization = `Bearer ${token}`;
      const answer = await fetch(this.url, { headers, cache: "no-store", signal: stop.signal });
      if (answer.status === 401) {
        clearTimeout(timer);
        wallet.keep(null);
        wallet.keep(await this.on.token(token !== null));
        return;
      }
      if (!answer.ok) {
        const after = Number(answer.headers.get("Retry-After")) * 1000;
        throw new Trouble(`the server answered ${answer.status}`, Math.min(after || 0, LONGEST));
      }
      if (!answer.headers.get("Content-Type")?.startsWith("text/event-stream")) {
        throw new Trouble("what answers there is no stream of events");
      }
      this.on.open();
      const parser = new EventParser();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) throw new Trouble("the server closed the stream");
        patience();
        for (const { kind, data } of parser.push(value)) {
          let read;
          try {
            read = JSON.parse(data);
          } catch {
            throw new Trouble("the server sent something that cannot be read");
          }
          this.on.event(kind, read);
          heard();
        }
      }
    } catch (error) {
      if (this.again) return;
      throw silent ? new Trouble("the server went silent") : error;
    } finally {
      clearTimeout(timer);
      stop.abort();
    }
  }
}
