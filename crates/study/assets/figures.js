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
  // Figures are made for white paper; on a dark screen lines, text and the dark colours become light ones.
  const DARK = {
    "white": "transparent", "#000000": "#f2f4f5", "#222222": "#e6e9ec", "#888888": "#8a949e", "#444444": "#c3cad1", "#555555": "#c3cad1", "#666666": "#a9b2bb", "#999999": "#8a949e",
    "#e6e6e6": "#2d353e", "#0072B2": "#4da6e8", "#882255": "#d678a6", "#D55E00": "#f08a4b", "#009E73": "#35c49a",
  };
  const screenIsDark = matchMedia("(prefers-color-scheme: dark)");
  const darkened = (v) => {
    if (typeof v === "string") return DARK[v] ?? v;
    if (Array.isArray(v)) return v.map(darkened);
    if (v === null || typeof v !== "object") return v;
    return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, k === "values" ? x : darkened(x)]));
  };
  // Words in lines of at most so many letters.
  const lines = (text, most) => {
    const all = [""];
    for (const word of String(text).split(" ")) {
      const last = all[all.length - 1];
      if (last && last.length + 1 + word.length > most) all.push(word);
      else all[all.length - 1] = last ? last + " " + word : word;
    }
    return all.length > 1 ? all : all[0];
  };
  // Where there is less room than the plot and its legend need, the legend goes below and the plot takes what is there.
  const WIDE = 800;
  const fitted = (spec, width) => {
    const config = spec.config ?? {};
    const dark = { ...config, title: { color: "#222222" }, legend: { ...config.legend, labelColor: "#222222", titleColor: "#222222" } };
    spec = { ...spec, config: dark };
    if (width < WIDE) {
      const letters = Math.max(16, Math.floor((width - 60) / 7.5));
      const axis = { ...dark.axis, labelLimit: Math.max(90, width / 3) };
      const legend = { ...dark.legend, orient: "bottom", direction: "vertical", columns: width > 560 ? 2 : 1, labelLimit: width - 60 };
      spec = { ...spec, width: Math.max(200, width - 10), autosize: { type: "fit-x", contains: "padding" }, config: { ...dark, axis, legend } };
      if (spec.title?.text) spec.title = { ...spec.title, text: lines(spec.title.text, letters) };
    }
    return screenIsDark.matches ? darkened(spec) : spec;
  };
  const drawn = new Map();
  const todo = new Map();
  for (const script of document.querySelectorAll("script.spec")) todo.set(script.dataset.plot, script);
  const draw = (id) => {
    const script = todo.get(id);
    if (!script) return Promise.resolve();
    todo.delete(id);
    const spec = JSON.parse(script.textContent);
    spec.data = unpack(spec.data);
    return show(id, spec);
  };
  const show = (id, spec) => {
    const plot = document.getElementById(id), width = plot.clientWidth;
    drawn.get(id)?.view?.finalize();
    plot.classList.toggle("dark", screenIsDark.matches);
    const made = { spec, width };
    drawn.set(id, made);
    return vegaEmbed("#" + CSS.escape(id), fitted(spec, width), {
      renderer: "svg",
      actions: { export: true, source: false, compiled: false, editor: false },
    }).then((r) => { made.view = r.view; })
      .catch((e) => { plot.textContent = "The figure cannot be drawn: " + e.message; });
  };
  // Another width, such as that of a phone that is turned, or another scheme of colours.
  const again = (all) => {
    for (const [id, { spec, width }] of [...drawn]) {
      const now = document.getElementById(id).clientWidth;
      if (all || (now !== width && now > 0 && Math.min(now, width) < WIDE)) show(id, spec);
    }
  };
  screenIsDark.addEventListener("change", () => again(true));
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => again(false), 200); });
  if (window.IntersectionObserver) {
    const observer = new IntersectionObserver((all) => {
      for (const one of all) if (one.isIntersecting) { observer.unobserve(one.target); draw(one.target.id); }
    }, { rootMargin: "400px" });
    for (const id of todo.keys()) observer.observe(document.getElementById(id));
  }
  (async () => {
    for (const id of [...todo.keys()]) {
      await draw(id);
      await new Promise((next) => setTimeout(next, 0));
    }
    document.documentElement.dataset.drawn = "all";
  })();
  // A printed page has everything open but resolved files and the numbers of figures, which it leaves out.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")].filter((d) => !d.closest(".vega-embed") && !d.matches(".file, .numbers, .tables"));
    for (const d of closed) d.open = true;
  });
  addEventListener("afterprint", () => { for (const d of closed) d.open = false; closed = []; });
})();
