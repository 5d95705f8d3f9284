"use strict";
// A legend button shows or hides the series of its group in every panel of its figure.
for (const button of document.querySelectorAll(".legend button")) {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    const same = `[data-group="${button.dataset.group}"]`;
    const figure = button.closest("figure");
    for (const other of figure.querySelectorAll(`.legend ${same}`)) {
      other.setAttribute("aria-pressed", shown);
    }
    for (const mark of figure.querySelectorAll(`.plot ${same}`)) {
      mark.toggleAttribute("data-hidden", !shown);
    }
  });
}
