"use strict";
// A name in a legend shows or hides the series of its group in every panel of its figure.
function toggle(button) {
  const shown = button.getAttribute("aria-pressed") !== "true";
  const figure = button.closest("figure");
  for (const mark of figure.querySelectorAll(`[data-group="${button.dataset.group}"]`)) {
    if (mark.hasAttribute("aria-pressed")) mark.setAttribute("aria-pressed", shown);
    else mark.toggleAttribute("data-hidden", !shown);
  }
}
for (const button of document.querySelectorAll(".plot [role=button]")) {
  button.addEventListener("click", () => toggle(button));
  button.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    toggle(button);
  });
}
