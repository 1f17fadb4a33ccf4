// Search and filter of a page over several studies. Without this script everything is there, and shown.
"use strict";
(() => {
  const nav = document.querySelector("nav.side");
  if (!nav) return;
  const VERDICTS = [["holds", "holds"], ["differs", "differs"], ["undecided", "undecided"], ["none", "other"]];
  const papers = [...document.querySelectorAll("section.paper")];
  const form = document.createElement("form");
  const make = (name, with_) => form.appendChild(Object.assign(document.createElement(name), with_));
  const search = make("input", { type: "search", placeholder: "Search" });
  search.setAttribute("aria-label", "Search claims and studies");
  const select = make("select", {});
  select.setAttribute("aria-label", "Paper");
  select.append(new Option("All papers", ""));
  // An evaluation is one document.
  select.hidden = papers.length < 2;
  for (const p of papers) select.append(new Option(p.querySelector("h2").textContent, p.id));
  const boxes = VERDICTS.map(([value, word]) => {
    const label = make("label", {});
    const box = Object.assign(document.createElement("input"), { type: "checkbox", value, defaultChecked: true });
    label.append(box, " " + word);
    return box;
  });
  const count = make("output", {});
  nav.prepend(form);
  // On a narrow screen the contents would fill it.
  if (matchMedia("(max-width: 72rem)").matches) nav.querySelector("details").open = false;
  nav.addEventListener("click", (e) => {
    if (e.target.closest("a") && matchMedia("(max-width: 72rem)").matches) nav.querySelector("details").open = false;
  });

  const text = new Map();
  const textOf = (e) => text.get(e) ?? text.set(e, e.textContent.toLowerCase()).get(e);
  const rows = [...document.querySelectorAll("table.index tr[data-verdict]")];
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = new Set(boxes.filter((b) => b.checked).map((b) => b.value));
    const has = (e) => words.every((w) => textOf(e).includes(w));
    const all = !words.length && !select.value && verdicts.size === VERDICTS.length;
    let shown = 0;
    for (const row of rows) {
      const paper = row.closest("tbody").dataset.paper;
      row.hidden = !((!select.value || paper === select.value) && verdicts.has(row.dataset.verdict) && has(row));
      if (!row.hidden) shown++;
    }
    for (const body of document.querySelectorAll("table.index tbody")) {
      body.hidden = ![...body.querySelectorAll("tr[data-verdict]")].some((r) => !r.hidden);
    }
    for (const paper of papers) {
      const chosen = !select.value || paper.id === select.value;
      let any = false;
      for (const article of paper.querySelectorAll("article")) {
        // A study that is searched for by its name shows all its claims.
        const named = words.length > 0 && has(article.querySelector("h3"));
        let some = false;
        for (const claim of article.querySelectorAll("tbody[data-verdict]")) {
          claim.hidden = !(verdicts.has(claim.dataset.verdict) && (named || has(claim)));
          some ||= !claim.hidden;
        }
        article.hidden = !(chosen && (all || some || (named && verdicts.size === VERDICTS.length)));
        any ||= !article.hidden;
        const link = nav.querySelector(`a[href="#${CSS.escape(article.id)}"]`);
        if (link) link.parentElement.hidden = article.hidden;
      }
      for (const row of paper.querySelectorAll(":scope > .wide tr[data-verdict]")) {
        row.hidden = !(verdicts.has("none") && has(row));
        any ||= !row.hidden;
      }
      paper.hidden = !(chosen && (all || any));
      const link = nav.querySelector(`a[href="#${CSS.escape(paper.id)}"]`);
      if (link) link.parentElement.hidden = paper.hidden;
    }
    count.textContent = all ? "" : `${shown} of ${rows.length} claims`;
  };
  form.addEventListener("submit", (e) => e.preventDefault());
  form.addEventListener("input", apply);
  // A link to something that the filter hides shows everything again.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.closest("[hidden]")) { form.reset(); apply(); target.scrollIntoView(); }
  });
})();
