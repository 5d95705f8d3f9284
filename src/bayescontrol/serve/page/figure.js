// A figure: its title, the drawing, and a legend with the values at the cursor, or the last values
// without a cursor. A line chart is a slider for the keyboard: arrow keys move the cursor.
const DRAW = { lines: drawLines, rows: drawRows, columns: drawColumns };

class Figure {
  constructor(title) {
    this.legend = h("ul", { class: "legend" });
    this.canvas = h("div", { class: "canvas" });
    this.remark = h("p", { class: "note", hidden: true });
    this.node = h("figure", { hidden: true }, h("figcaption", {}, h("h3", {}, title)), this.canvas,
      this.legend, this.remark);
    this.title = title;
    this.held = null; // x of the cursor: it keeps its time while the chart advances
    this.width = 0;
    new ResizeObserver(() => { if (this.canvas.clientWidth !== this.width) this.draw(); }).observe(this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.point(event));
    // Lifting a finger also fires this event; keep the cursor so that the value can be read.
    this.canvas.addEventListener("pointerleave", ({ pointerType }) => {
      if (pointerType !== "touch") this.hold(null);
    });
    this.canvas.addEventListener("blur", () => this.hold(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  // Null hides the figure.
  show(spec) {
    this.spec = spec;
    this.node.hidden = !spec;
    if (spec) this.draw();
  }

  draw() {
    this.width = this.canvas.clientWidth;
    if (!this.spec || !this.width) return;
    const at = this.index();
    this.drawn = DRAW[this.spec.kind](this.spec, this.width, at);
    this.canvas.replaceChildren(this.drawn.svg);
    this.remark.hidden = !this.spec.remark;
    say(this.remark, this.spec.remark ?? "");
    if (this.spec.kind === "lines") this.tell(at);
    else this.describe("img", `${this.title}: ${this.spec.told}`);
  }

  describe(role, text) {
    this.canvas.setAttribute("role", role);
    this.canvas.setAttribute("aria-label", text);
  }

  tell(at) {
    const { x, series, stacked, when } = this.spec;
    const i = at ?? x.length - 1;
    const told = series.map(({ name, y }) => `${name} ${short(y[i])}`).join(", ");
    this.describe("slider", `${this.title}, ${this.spec.yLabel}`);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("aria-valuemin", 1);
    this.canvas.setAttribute("aria-valuemax", x.length);
    this.canvas.setAttribute("aria-valuenow", i + 1);
    // Without a cursor the text is constant; otherwise a screen reader would speak every second.
    const rest = "arrow keys read values off";
    this.canvas.setAttribute("aria-valuetext", at === null ? rest : `${when(x[i])}: ${told}`);
    const swatch = (slot) => h("svg", { class: "swatch", width: 22, height: 10, "aria-hidden": "true" },
      stacked ? h("rect", { class: `area ${mark(slot)}`, width: 22, height: 10 })
        : h("line", { class: `line ${mark(slot)}`, x1: 0, x2: 22, y1: 5, y2: 5 }));
    this.legend.replaceChildren(h("li", { class: "when" }, at === null ? "last:" : `${when(x[i])}:`),
      ...series.map(({ name, slot, y }) => h("li", {}, swatch(slot), `${name} `, h("b", {}, short(y[i])))));
  }

  index() {
    if (this.held === null || this.spec.kind !== "lines") return null;
    const away = (i) => Math.abs(this.spec.x[i] - this.held);
    return this.spec.x.reduce((best, _, i) => (away(i) < away(best) ? i : best), 0);
  }

  hold(i) {
    if (this.spec?.kind !== "lines" || (i === null && this.held === null)) return;
    this.held = i === null ? null : this.spec.x[i];
    this.draw();
  }

  point(event) {
    if (this.spec?.kind !== "lines") return;
    this.hold(this.drawn.near(event.clientX - this.canvas.getBoundingClientRect().left));
  }

  key(event) {
    if (this.spec?.kind !== "lines" || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.spec.x.length - 1;
    const at = this.index();
    const moves = {
      ArrowLeft: () => Math.max(0, (at ?? last + 1) - 1),
      ArrowRight: () => Math.min(last, (at ?? last) + 1),
      Home: () => 0,
      End: () => last,
      Escape: () => null,
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    this.hold(moves[event.key]());
  }
}
