// The page itself: two views, the event stream, the token, the pause button and dropped files.
const REDRAW = 250; // milliseconds: decisions may come twenty times a second

let paused = false;
let due = null;
let since = null; // when the stream was lost
let reading = 0; // the number of the file being read: a later one replaces it

function view(name) {
  for (const one of ["live", "log"]) {
    $(one).hidden = one !== name;
    $(`show-${one}`).setAttribute("aria-pressed", one === name);
  }
}

function redraw() {
  if (paused || due !== null) return;
  due = setTimeout(() => {
    due = null;
    if (!paused) showLive();
  }, REDRAW);
}

function state(kind, text) {
  document.documentElement.dataset.stream = kind;
  say($("state"), text);
  $("retry").hidden = kind !== "lost";
  $("forget").hidden = wallet.token === null;
}

function askToken(refused) {
  state("asked", "Waiting for a token");
  view("live");
  $("ask").hidden = false;
  say($("ask-why"), refused ? "The server refused the token." : "It was started with one and shows nothing without.");
  $("token").focus();
  return new Promise((resolve) => {
    $("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      const token = $("token").value.trim();
      $("token").value = "";
      $("ask").hidden = true;
      $("main").focus();
      state("waiting", "Connecting");
      resolve(token);
    }, { once: true });
  });
}

const stream = new Stream(new URL("events", location.href.split(/[?#]/)[0]), {
  open() {
    since = null;
    state("open", "Connected");
  },
  lost(why) {
    since ??= clock(Date.now() / 1000);
    state("lost", `Disconnected at ${since}: ${why}. Trying again by itself.`);
  },
  token: askToken,
  event(kind, value) {
    if (kind === "agents" && Array.isArray(value)) agents.take(value, Date.now() / 1000);
    else if (kind === "decision") agents.decided(value);
    else return;
    // Alarms are shown even while paused.
    if (paused) showAlarms();
    redraw();
  },
});

async function openFile(file) {
  const mine = (reading += 1);
  view("log");
  $("history").hidden = true;
  say($("reading"), `Reading ${file.name}`);
  try {
    const log = await readLog(file, (share) => {
      if (mine === reading) say($("reading"), `Reading ${file.name}: ${Math.floor(share * 10) * 10} %`);
    }, () => mine !== reading);
    if (log === null) return;
    $("history").hidden = false;
    showHistory(log, file.name);
    say($("reading"), "");
  } catch (error) {
    if (mine !== reading) return;
    const why = error instanceof BadLog ? error.message : "the file cannot be read";
    say($("reading"), `${file.name} was not opened: ${why}.`);
  }
}

$("show-live").addEventListener("click", () => view("live"));
$("show-log").addEventListener("click", () => view("log"));
$("retry").addEventListener("click", () => stream.hurry());
$("forget").addEventListener("click", () => {
  wallet.keep(null);
  stream.restart();
});
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", paused);
  redraw();
});
$("file").addEventListener("click", ({ target }) => { target.value = ""; }); // so that the same file can be chosen again
$("file").addEventListener("change", ({ target }) => {
  if (target.files[0]) openFile(target.files[0]);
});
addEventListener("online", () => stream.hurry());
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.documentElement.classList.add("dragging");
});
for (const end of ["dragleave", "drop"]) {
  addEventListener(end, () => document.documentElement.classList.remove("dragging"));
}
addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files[0]) openFile(event.dataTransfer.files[0]);
});

$("agent").hidden = true;
if (location.protocol.startsWith("http")) {
  state("waiting", "Connecting");
  stream.run();
} else {
  state("alone", "Opened from a file: no server");
  for (const id of ["show-live", "pause"]) $(id).hidden = true;
  view("log");
}
