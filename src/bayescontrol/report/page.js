"use strict";
// Draw a panel when it comes near the window; draw it again when the reader turns the lights on
// or off, or hides a series.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)").matches;
  const inTheDark = JSON.parse(document.getElementById("in-the-dark").textContent);
  const config = {
    responsive: true,
    displaylogo: false,
    displayModeBar: touch ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "sendChartToCloud"],
  };
  const plots = [...document.querySelectorAll(".plot")];
  const drawn = new Set();
  const hidden = new Map(); // of each figure: the groups of series that the reader has hidden

  function draw(plot) {
    let text = plot.nextElementSibling.textContent;
    if (dark.matches) {
      text = text.replace(/(?<=")#[0-9a-f]{6}(?=")/g, (colour) => inTheDark[colour] ?? colour);
    }
    const { data, layout } = JSON.parse(text);
    const groups = hidden.get(plot.closest("figure"));
    for (const trace of data) {
      if (groups?.has(trace.legendgroup)) trace.visible = "legendonly";
    }
    if (touch) { // a finger on a figure moves the page, not the axes
      layout.dragmode = false;
      layout.xaxis.fixedrange = layout.yaxis.fixedrange = true;
    }
    Plotly.react(plot, data, layout, config);
    if (!drawn.has(plot)) plot.on("plotly_legendclick", (event) => toggle(plot, event));
    drawn.add(plot);
  }

  function toggle(plot, { curveNumber }) {
    const figure = plot.closest("figure");
    const groups = hidden.get(figure) ?? new Set();
    hidden.set(figure, groups);
    const group = plot.data[curveNumber].legendgroup;
    if (!groups.delete(group)) groups.add(group);
    [...drawn].filter((other) => figure.contains(other)).forEach(draw);
    return false; // it is done, in every panel
  }

  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting && !drawn.has(target)) draw(target);
    }
  }, { rootMargin: "800px" });
  plots.forEach((plot) => near.observe(plot));
  dark.addEventListener("change", () => drawn.forEach(draw));
  addEventListener("beforeprint", () => plots.filter((plot) => !drawn.has(plot)).forEach(draw));
})();
