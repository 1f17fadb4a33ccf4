// Draws every figure of the page, one after the other, those on the screen first.
"use strict";
(() => {
  // Data are written in columns; a text column is a list of texts and an index per row.
  const unpack = (d) => {
    if (!d || !d.columns) return d;
    const names = Object.keys(d.columns), rows = [];
    for (let i = 0; i < d.rows; i++) {
      const row = {};
      for (const n of names) {
        const c = d.columns[n], v = c.texts ? c.texts[c.at.length === 1 ? c.at[0] : c.at[i]] : c[i];
        if (v !== null && v !== undefined) row[n] = v;
      }
      rows.push(row);
    }
    return { values: rows };
  };
  const todo = new Map();
  for (const script of document.querySelectorAll("script.spec")) todo.set(script.dataset.plot, script);
  const draw = (id) => {
    const script = todo.get(id);
    if (!script) return Promise.resolve();
    todo.delete(id);
    const spec = JSON.parse(script.textContent);
    spec.data = unpack(spec.data);
    return vegaEmbed("#" + CSS.escape(id), spec, {
      renderer: "svg",
      actions: { export: true, source: false, compiled: false, editor: false },
    }).catch((e) => { document.getElementById(id).textContent = "The figure cannot be drawn: " + e.message; });
  };
  if (window.IntersectionObserver) {
    const seen = new IntersectionObserver((all) => {
      for (const one of all) if (one.isIntersecting) { seen.unobserve(one.target); draw(one.target.id); }
    }, { rootMargin: "400px" });
    for (const id of todo.keys()) seen.observe(document.getElementById(id));
  }
  (async () => {
    for (const id of [...todo.keys()]) {
      await draw(id);
      await new Promise((next) => setTimeout(next, 0));
    }
    document.documentElement.dataset.drawn = "all";
  })();
  // A printed page has everything open.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")].filter((d) => !d.closest(".vega-embed"));
    for (const d of closed) d.open = true;
  });
  addEventListener("afterprint", () => { for (const d of closed) d.open = false; closed = []; });
})();
