// Nodes and numbers. Text is always set as text content, so names cannot inject markup.
const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "g", "path", "line", "rect", "circle", "text", "title"]);

function h(tag, attributes = {}, ...children) {
  const node = DRAWN.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const $ = (id) => document.getElementById(id);

// Write only if the text differs, so that focus and selection survive updates.
function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A cell with a button; `press` gets its current text.
function push(cell, { text, press }) {
  if (!cell.firstElementChild) {
    const button = h("button", { type: "button", class: "link" });
    button.addEventListener("click", () => press(button.textContent));
    cell.replaceChildren(button);
  }
  say(cell.firstElementChild, text);
}

function fill(body, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, i) => {
    const row = body.rows[i] ?? body.insertRow();
    cells.forEach((text, j) => {
      const cell = row.cells[j] ?? row.appendChild(h(j ? "td" : "th", j ? {} : { scope: "row" }));
      if (typeof text === "string") say(cell, text);
      else push(cell, text);
    });
  });
}

function table(caption, ...names) {
  const body = h("tbody");
  const head = h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name)));
  const grid = h("table", {}, h("caption", {}, caption), h("thead", {}, head), body);
  // A wide table scrolls separately, so it must be reachable by keyboard.
  const node = h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption }, grid);
  return {
    node,
    // Tidy: hide columns without any value, and a table that has only names.
    fill(rows, tidy = false) {
      fill(body, rows);
      const told = names.map((_, j) => !tidy || !j || rows.some((cells) => cells[j] !== "–"));
      for (const row of [head, ...body.rows]) [...row.cells].forEach((cell, j) => { cell.hidden = !told[j]; });
      node.hidden = !rows.length || (tidy && !told.slice(1).some(Boolean));
    },
  };
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function short(value) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  const minus = value < 0 ? "−" : "";
  if (size === 0) return "0";
  if (size >= 1e7 || size < 1e-3) return minus + size.toExponential(1).replace("e+", "e");
  if (size >= 1000) return minus + size.toLocaleString("en", { maximumFractionDigits: 0 });
  return minus + size.toPrecision(3);
}

const many = (n, thing) => `${count(n)} ${thing}${n === 1 ? "" : "s"}`;
const count = (n) => (isNumber(n) ? n.toLocaleString("en") : "–");
const between = (low, high) => (isNumber(low) && isNumber(high) ? `${short(low)} to ${short(high)}` : "–");

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

// The unit in which a span of seconds reads best.
function unitOf(span) {
  return UNITS.find(([size]) => span >= 2 * size) ?? UNITS.at(-1);
}

function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  if (seconds < 1) return `${short(seconds * 1000)} ms`;
  const [size, unit] = unitOf(seconds);
  return `${short(seconds / size)} ${unit}`;
}

function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

function moment(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
}

// Format a value of a log for people: tuples, arrays, dicts and some numbers are tagged in JSON.
// None is an ordinary value; "–" means that there is no value.
function label(value) {
  if (value === undefined) return "–";
  if (value === null) return "None";
  if (typeof value !== "object") return String(value);
  const entry = (v) => (isNumber(v) && String(v).length > 7 ? short(v) : label(v));
  const listed = (items) => items.map(entry).join(", ");
  if (Array.isArray(value)) return `[${listed(value)}]`;
  if (Array.isArray(value.tuple)) return `(${listed(value.tuple)})`;
  if (Array.isArray(value.array)) return `[${listed(value.array)}]`;
  if (Array.isArray(value.dict)) {
    return `{${value.dict.map(([key, held]) => `${label(key)}: ${label(held)}`).join(", ")}}`;
  }
  return String(value.float ?? value.int ?? JSON.stringify(value));
}

// The numbers of a numeric action, such as the input of a linear plant; otherwise null.
function vector(value) {
  const numbers = value?.array;
  return Array.isArray(numbers) && numbers.length && numbers.every(isNumber) ? numbers : null;
}

// One line for each entry of the vectors.
function componentsOf(vectors) {
  return vectors.at(-1).map((_, j) => ({ name: `entry ${j}`, slot: j, y: vectors.map((v) => v[j] ?? null) }));
}
