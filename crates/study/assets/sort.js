// A table whose headings sort its rows, and a line that describes the cell under the pointer, or with the focus. Without this
// script the table is there, in the order of its file.
"use strict";
(() => {
  const table = document.querySelector("table.leaderboard");
  const body = table.tBodies[0];
  const heads = [...table.tHead.querySelectorAll("th[data-key]")];
  // Missing values come last, in either direction.
  const compare = (key, sign) => (a, b) => {
    const [x, y] = [a, b].map((row) => row.cells[key].dataset.value);
    if (x === y) return 0;
    if (x === "" || y === "") return x === "" ? 1 : -1;
    const numbers = [Number(x), Number(y)];
    return sign * (numbers.some(Number.isNaN) ? x.localeCompare(y) : numbers[0] - numbers[1]);
  };
  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = head.dataset.first ?? "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      for (const h of heads) h.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      body.append(...[...body.rows].sort(compare(head.cellIndex, order === "ascending" ? 1 : -1)));
    });
  }
  const output = document.querySelector("output.cell");
  const describe = (e) => {
    const link = e.target.closest?.("td, tbody th")?.querySelector("[data-says]");
    if (!link) return;
    const code = document.createElement("code");
    code.textContent = link.dataset.command ?? "";
    output.replaceChildren(link.dataset.says, ...(code.textContent ? [" · ", code] : []));
  };
  table.addEventListener("pointerover", describe);
  table.addEventListener("focusin", describe);
})();
