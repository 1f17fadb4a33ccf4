// The page: reads its controls, runs one scenario per congestion control, and shows the runs side by side in simulated time.
import type * as Charts from "./charts.js";
import type * as Links from "./crossing.js";
import { curve, goodput, valueAt, type Curve } from "./curves.js";
import { Engine, Refused, Withdrawn, type Check, type Crossings, type Failure, type Run } from "./engine.js";
import { box, entry, mark, swatch } from "./marks.js";
import { classes, nameOf } from "./own.js";
import { EXAMPLE, MOST, START, file, fromLink, label, lines, notFollowed, sample, toLink, type Known } from "./state.js";
import { rows } from "./table.js";
import { WALK, stepState } from "./walk.js";

const BASE = new URL(".", document.baseURI);
const LOSSES = ["0", "1e-4", "5e-4", "1e-3", "2e-3", "5e-3", "1e-2"];
const INTERVALS = 60;
const HEIGHT = { chart: 220, drops: 116 };

const by = <T extends HTMLElement = HTMLElement>(id: string) => document.getElementById(id) as T;
const form = by<HTMLFormElement>("controls");
const field = (name: string) => form.elements.namedItem(name) as HTMLInputElement;

const engine = new Engine(BASE);
let state = fromLink(location.hash);
/** The code that may run: what was written here, not what an address brought. */
let trusted = "";
/** Parts of the address that could not be followed, in words. */
let notes = notFollowed(location.hash);
let known: Known = { link: "", group: "", limit: "" };
let check: Check | undefined;
let runs: Run[] = [];
let labels: string[] = [];
let now = 0;
let playing = false;
let charts: typeof Charts;
let links: typeof Links;
/** Number of the newest run: answers to an older one are dropped. */
let turn = 0;

const drawing = Promise.all([import("./charts.js"), import("./crossing.js")]).then(([c, l]) => {
  charts = c;
  links = l;
});

// ---- What is measured, over time

interface Shown {
  cwnd: Curve;
  queue: Curve;
  goodput: Curve;
}
let shown: Shown[] = [];

// ---- Controls of the page

const FIELDS = ["preset", "link", "group", "duration", "seed", "count", "delay", "rate", "loss", "queue", "limit"] as const;

function fill(): void {
  for (const name of FIELDS) {
    const f = field(name) as HTMLInputElement | HTMLSelectElement;
    const text = state[name] || (name === "link" ? known.link : name === "group" ? known.group : "");
    if (f instanceof HTMLSelectElement && text && ![...f.options].some((o) => o.value === text)) f.add(new Option(text, text));
    f.value = text;
  }
  field("set").value = state.set.join("\n");
  field("code").value = state.code;
  if (state.code !== "") by<HTMLDetailsElement>("own").open = true;
  if (state.set.length > 0) by<HTMLDetailsElement>("more").open = true;
  orbit();
  by<HTMLSelectElement>("speed").value = state.speed;
  const list = by("cc");
  list.replaceChildren(
    ...state.cc.map((cc, i) => {
      const row = document.createElement("div");
      row.className = "cc";
      const input = document.createElement("input");
      input.value = input.title = cc;
      input.setAttribute("list", "cc-names");
      input.setAttribute("aria-label", `Control ${i + 1}`);
      input.spellcheck = false;
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "×";
      remove.title = "Remove";
      remove.setAttribute("aria-label", `Remove control ${i + 1}`);
      remove.disabled = state.cc.length === 1;
      remove.onclick = () => {
        read();
        state.cc.splice(i, 1);
        fill();
        void run();
      };
      row.append(swatch(i), input, remove);
      return row;
    }),
  );
  by<HTMLButtonElement>("cc-add").disabled = state.cc.length >= MOST;
}

function orbit(): void {
  const select = field("orbit") as unknown as HTMLSelectElement;
  const delay = field("delay").value.trim();
  select.value = [...select.options].some((o) => o.value === delay) ? delay : "other";
}

function read(): void {
  for (const name of FIELDS) state[name] = field(name).value.trim();
  state.set = field("set").value.split(/\r?\n/).map((l) => l.trim()).filter((l) => l !== "");
  state.code = field("code").value.trim() === "" ? "" : field("code").value;
  const cc = [...by("cc").querySelectorAll("input")].map((i) => i.value.trim()).filter((c) => c !== "");
  state.cc = cc.length > 0 ? cc : [...START.cc];
}

function remember(): void {
  const link = toLink(state);
  history.replaceState(null, "", link ? `#${link}` : location.pathname + location.search);
}

// ---- Running

const say = (text: string) => (by("status").textContent = text);

/** The control of the page in which a key of the scenario was entered, if there is one. */
function entered(failure: Failure): HTMLElement | undefined {
  if (failure.key === "code") return field("code");
  if (failure.control !== undefined) return by("cc").querySelectorAll("input")[failure.control];
  const key = failure.key ?? "";
  const places: [RegExp, (typeof FIELDS)[number]][] = [
    [/^extends/, "preset"], [/^duration/, "duration"], [/^seed/, "seed"], [/^link$/, "link"], [/^group$/, "group"],
    [/^links\..*\.queue\.limit/, "limit"], [/^links\..*\.queue/, "queue"], [/^links\..*\.error/, "loss"],
    [/^links\..*\.delay/, "delay"], [/^links\..*\.rate/, "rate"], [/^flows\..*\.count/, "count"],
  ];
  const found = places.find(([of, name]) => of.test(key) && state[name] !== "");
  if (found) return field(found[1]);
  return key !== "" && state.set.length > 0 ? field("set") : undefined;
}

/** The name that the page shows for one of its controls. */
function called(of: HTMLElement): string {
  const inside = (of.closest("label")?.firstChild?.textContent ?? "").trim();
  return of.getAttribute("aria-label") ?? (inside || "Further lines");
}

/** Marks the control of the page that an error is about; without one, none. */
function blame(of?: HTMLElement): void {
  form.querySelectorAll("[aria-invalid]").forEach((f) => f.removeAttribute("aria-invalid"));
  of?.setAttribute("aria-invalid", "true");
}

function complain(e: unknown): void {
  if (e instanceof Withdrawn) return;
  const failure: Failure = e instanceof Refused ? e.failure : { message: String(e instanceof Error ? e.message : e) };
  const where = [failure.line ? `line ${failure.line}` : "", failure.key ?? ""].filter(Boolean).join(", ");
  const of = entered(failure);
  blame(of);
  const words = failure.what ? `${where ? `${where}: ` : ""}${failure.what}` : failure.message;
  by("error").textContent = of ? `${called(of)}: ${words}` : words;
  say(`The scenario cannot be run. ${by("error").textContent}`);
  // What is still drawn is of another scenario.
  by("results").classList.toggle("stale", runs.length > 0);
  by("stale").hidden = runs.length === 0;
}

/** The item that is asked for, or the one that the flows of the preset meet first. */
function chosen<T extends { name: string }>(what: "link" | "group", list: T[], first?: string): T | undefined {
  const asked = state[what];
  const found = list.find((l) => l.name === asked);
  if (asked && !found) {
    const known = list.map((l) => l.name).join(", ");
    throw new Refused({ message: `preset ${state.preset} has no ${what} "${asked}" (known: ${known})`, key: what });
  }
  return found ?? list.find((l) => l.name === first) ?? list[0];
}

/** A number with its unit, without needless digits. */
const amount = (value: number, unit: string) => `${Number(value.toPrecision(4))} ${unit}`;

/** What the preset says of everything that the page can change. */
function ofPreset(of: Check, link: Check["links"][number] | undefined, group: Check["flows"][number] | undefined): void {
  const f = link?.forward;
  const says: Partial<Record<(typeof FIELDS)[number], string>> = {
    duration: amount(of.duration_s, "s"),
    count: group ? String(group.count) : "",
    delay: link?.orbit ? "as the orbit says" : f?.delay_s == null ? "" : amount(f.delay_s * 1e3, "ms"),
    rate: f?.rate_bit_s == null ? "unlimited" : amount(f.rate_bit_s / 1e6, "Mbit/s"),
    loss: f ? String(Number(f.loss.toPrecision(3))) : "",
    limit: f?.queue_packets == null ? "unlimited" : amount(f.queue_packets, "packets"),
  };
  for (const [name, words] of Object.entries(says)) field(name).placeholder = words;
  const preset = (name: string, words: string) => ((field(name) as unknown as HTMLSelectElement).options[0]!.text = `preset: ${words}`);
  preset("queue", f?.queue_kind ?? "");
  preset("orbit", says.delay ?? "");
}

/** What the preset itself says: its links and flows, and their values. */
async function learn(): Promise<void> {
  const [of] = await engine.ask<Check>({ check: { scenario: `preset:${state.preset}` } });
  check = of;
  const group = chosen("group", of.flows);
  // What limits the flows, not the first link on their way.
  const link = chosen("link", of.links, group?.bottleneck?.link);
  [state.link, state.group] = [link?.name ?? "", group?.name ?? ""];
  ofPreset(of, link, group);
  const packets = link?.forward.queue_packets;
  known = { link: link?.name ?? "", group: group?.name ?? "", limit: packets == null ? "" : `${packets} packets` };
  const options = (name: string, list: string[], hide: HTMLElement) => {
    (field(name) as unknown as HTMLSelectElement).replaceChildren(...list.map((n) => new Option(n, n)));
    hide.hidden = list.length < 2;
  };
  options("link", of.links.map((l) => l.name), by("link-label"));
  options("group", of.flows.map((f) => f.name), by("group-label"));
  field("link").value = known.link;
  field("group").value = known.group;
}

/** The names of the controls that are written in the page. */
const own = () => classes(state.code).map(nameOf);

async function run(): Promise<void> {
  const mine = ++turn;
  pause();
  engine.stop();
  by("error").textContent = "";
  blame();
  // A sweep of another scenario says nothing of this one.
  by("sweep-figure").hidden = true;
  by("sweep-status").textContent = "";
  by("stop").hidden = false;
  say("Simulating…");
  const from = performance.now();
  try {
    await learn();
    remember();
    if (state.code !== trusted)
      throw new Refused({ message: "this address brings the code of a congestion control: read it below, and press Run to run it", key: "code" });
    // The interval of samples in the file follows from the duration: a check of the file without it gives the duration.
    const draft = lines(state, known, 1).slice(0, -1).join("\n");
    const [of] = await engine.ask<Check>({ check: { scenario: `${draft}\n` } });
    if (mine !== turn) return;
    const files = state.cc.map((_, i) => file(state, known, of.duration_s, i));
    const answers = await Promise.all([
      ...files.map((scenario, control) =>
        engine.ask<Run>({ run: { scenario, series: true, intervals: INTERVALS, own: own() } }, state.code).catch((e: unknown) => {
          if (e instanceof Refused && /^flows\..*\.cc/.test(e.failure.key ?? "")) e.failure.control = control;
          throw e;
        }),
      ),
      drawing as Promise<unknown>,
    ]);
    if (mine !== turn) return;
    check = of;
    runs = answers.slice(0, files.length).map((a) => (a as [Run, number])[0]);
    const took = answers.slice(0, files.length).map((a) => (a as [Run, number])[1]);
    labels = state.cc.map((c) => label(c, state.cc));
    const seconds = (performance.now() - from) / 1000;
    const events = runs.reduce((sum, r) => sum + r.events, 0);
    say(`${runs.length} ${runs.length === 1 ? "run" : "runs"} of ${of.duration_s} s, ${events.toLocaleString("en")} events, simulated in ${seconds.toFixed(2)} s.`);
    document.body.dataset.took = took.map((t) => Math.round(t)).join(" ");
    now = state.t === "" ? of.duration_s : Math.min(Number(state.t) || 0, of.duration_s);
    await show(files);
  } catch (e) {
    if (mine === turn) complain(e);
  } finally {
    if (mine === turn) by("stop").hidden = true;
  }
}

async function show(files: string[]): Promise<void> {
  by("results").classList.remove("stale");
  by("stale").hidden = true;
  flows();
  by("table").replaceChildren(...rows(runs, labels, known.link));
  scenarioFile(files, 0);
  by("legend").replaceChildren(...labels.map((l, i) => entry(swatch(i), l)));
  const early = runs.flatMap((r, i) => (r.ended_early ? [`${labels[i]}: ${r.ended_early}`] : []));
  const warnings = [...notes, ...early, ...check!.warnings.map((w) => `${w.key}: ${w.message}`)].map((text) => {
    const li = document.createElement("li");
    li.textContent = text;
    return li;
  });
  by("warnings").replaceChildren(...warnings);
  await drawCharts();
  kept.clear();
  seek(now);
  document.body.dataset.ready = `${turn}`;
}

function flows(): void {
  const select = by<HTMLSelectElement>("flow");
  const names = runs[0]!.flows.map((f, i) => new Option(runs[0]!.flows.length === 1 ? String(f.group) : `${f.group}[${f.index}]`, String(i)));
  select.replaceChildren(new Option("mean of all", "mean"), ...names.slice(0, 200));
  select.value = state.flow === "mean" || Number(state.flow) < names.length ? state.flow : "mean";
  state.flow = select.value;
}

async function drawCharts(): Promise<void> {
  const of = check!;
  const duration = of.duration_s;
  const entity = state.flow === "mean" ? "mean" : Number(state.flow);
  const link = Math.max(0, runs[0]!.links.findIndex((l) => l.link === known.link && l.direction === "forward"));
  shown = runs.map((r) => ({ cwnd: curve(r.series.flows, "cwnd", entity), queue: curve(r.series.links, "queue", link), goodput: goodput(r, of) }));
  const line = (what: keyof Shown) => shown.map((s, control) => ({ label: labels[control]!, control, ...s[what] }));
  by("c-drops").closest(".charts")!.classList.toggle("many", runs.length > 2);
  const height = by("c-cwnd").clientHeight || HEIGHT.chart;
  await charts.lines(by("c-cwnd"), height, duration, "segments", line("cwnd"), "Congestion window over time, one line per control.");
  await charts.lines(by("c-queue"), height, duration, "packets", line("queue"), "Packets queued at the link over time, one line per control.");
  await charts.lines(by("c-goodput"), height, duration, "Mbit/s", line("goodput"), "Goodput of all flows over time, one line per control.");
  const drops = runs.map((r) => {
    const { interval_s: interval, losses } = r.over_time;
    const causes = [...new Set(losses.map((l) => l.cause))];
    return {
      interval,
      bars: causes.map((cause) => {
        const of = losses.filter((l) => l.cause === cause);
        const y = of[0]!.counts.map((_, i) => of.reduce((sum, l) => sum + l.counts[i]!, 0));
        return { cause, most: 1, x: y.map((_, i) => i * interval), y };
      }),
    };
  });
  // Controls are compared: a lane has the same scale for each.
  for (const cause of charts.CAUSES) {
    const lanes = drops.flatMap((d) => d.bars.filter((b) => b.cause === cause));
    const most = Math.max(1, ...lanes.flatMap((b) => b.y));
    lanes.forEach((b) => (b.most = most));
  }
  by("c-drops").replaceChildren();
  for (const [i, d] of drops.entries()) {
    const panel = document.createElement("div");
    const head = document.createElement("p");
    head.className = "drops-of";
    const list = runs[i]!.over_time.losses.map((l) => ({ ...l, sum: l.counts.reduce((a, b) => a + b, 0) }));
    const words = list.map((l) => `${l.sum.toLocaleString("en")} ${l.class}, ${charts.CAUSE_WORDS[l.cause]}`).join("; ");
    head.textContent = `${labels[i]}: ${words || "no losses"}`;
    const plot = document.createElement("div");
    plot.className = "plot small";
    panel.append(head, plot);
    by("c-drops").append(panel);
    await charts.bars(plot, HEIGHT.drops, duration, d.interval, d.bars, `Losses of ${labels[i]} over time, by true cause.`);
  }
  const causes = [...new Set(drops.flatMap((d) => d.bars.map((b) => b.cause)))];
  by("cause-legend").replaceChildren(...causes.map((c) => entry(box(`cause-${charts.CAUSES.indexOf(c)}`), charts.CAUSE_WORDS[c] ?? c)));
  document.querySelectorAll<HTMLElement>(".charts .plot").forEach((plot) => {
    plot.querySelector(".veil")?.remove();
    const veil = document.createElement("div");
    veil.className = "veil";
    plot.append(veil);
  });
  // The legend of the segments on the link.
  const marks = links.KINDS.map((kind) => mark((g) => links.dot(g, 7, 7, kind, charts.colour("text")), links.KIND_WORDS[kind]!));
  by("kind-legend").replaceChildren(...marks, mark((g) => links.cross(g, 7, 7, charts.colour("text")), "lost: the colour is that of the cause"));
  panels();
}

// ---- Simulated time

function seek(t: number): void {
  const duration = check!.duration_s;
  now = Math.max(0, Math.min(t, duration));
  const scrub = by<HTMLInputElement>("scrub");
  scrub.value = String(Math.round((now / duration) * 1000));
  const text = clock(now);
  scrub.setAttribute("aria-valuetext", text);
  by("now").textContent = text;
  document.querySelectorAll<HTMLElement>(".charts .veil").forEach((veil) => {
    const width = veil.parentElement!.clientWidth - charts.LEFT - charts.RIGHT;
    veil.style.left = `${charts.LEFT + (width * now) / duration}px`;
    veil.style.visibility = now >= duration ? "hidden" : "visible";
  });
  for (const [what, digits] of [["cwnd", 1], ["queue", 0], ["goodput", 2]] as const) {
    const values = shown.map((s, i) => {
      const span = document.createElement("span");
      span.style.color = `var(--control-${i})`;
      span.textContent = valueAt(s[what], now)?.toFixed(digits) ?? "–";
      return span;
    });
    by(`r-${what}`).replaceChildren(...values);
  }
  drawCrossings();
}

function clock(t: number): string {
  const duration = check?.duration_s ?? 1;
  return `${t.toFixed(duration < 20 ? 2 : 1)} s`;
}

let last = 0;
function tick(at: number): void {
  if (!playing) return;
  const duration = check!.duration_s;
  seek(now + Math.min(0.1, (at - last) / 1000) * Number(by<HTMLSelectElement>("speed").value));
  last = at;
  if (now >= duration) pause();
  else requestAnimationFrame(tick);
}

function play(): void {
  if (runs.length === 0) return;
  if (now >= check!.duration_s) seek(0);
  playing = true;
  by("play").textContent = "Pause";
  by("play").setAttribute("aria-pressed", "true");
  last = performance.now();
  requestAnimationFrame(tick);
}

function pause(): void {
  const was = playing;
  playing = false;
  by("play").textContent = "Play";
  by("play").setAttribute("aria-pressed", "false");
  if (was) rest();
}

/** The cursor stands: its place becomes part of the link. */
function rest(): void {
  state.t = now >= check!.duration_s ? "" : String(Number(now.toPrecision(6)));
  remember();
  words();
}

// ---- Segments on the link

const kept = new Map<number, Links.Crossing>();
const asked = new Set<number>();

function rtt(): number {
  return Math.max(0.01, check?.flows.find((f) => f.name === known.group)?.base_rtt_s ?? check?.flows[0]?.base_rtt_s ?? 0.5);
}

function panels(): void {
  const list = runs.map((_, i) => {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.className = "legend";
    caption.append(entry(swatch(i), labels[i]!));
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Segments of ${labels[i]} between sender and receiver`);
    figure.append(caption, canvas);
    return figure;
  });
  by("crossings").replaceChildren(...list);
  kept.clear();
}

function drawCrossings(): void {
  const canvases = by("crossings").querySelectorAll("canvas");
  const [history, margin] = [3 * rtt(), 8 * rtt()];
  for (const [i, canvas] of canvases.entries()) {
    const c = kept.get(i);
    const complete = c && c.from <= Math.max(0, now - history - rtt()) && c.to >= now;
    if (!complete) void fetchCrossing(i, Math.max(0, now - history - 2 * rtt()), Math.min(check!.duration_s, now + margin));
    if (c && c.from <= now && now <= c.to) links.draw(canvas, c, now, history, i);
  }
  if (!playing) words();
}

async function fetchCrossing(i: number, from: number, to: number): Promise<void> {
  if (asked.has(i)) return;
  asked.add(i);
  const mine = turn;
  const flow = state.flow === "mean" ? 0 : Number(state.flow);
  const scenario = file(state, known, check!.duration_s, i);
  try {
    const [answer] = await engine.ask<Crossings>({ crossings: { of: { scenario, own: own() }, flow, from, to, until: to + 2 * rtt() } }, state.code);
    asked.delete(i);
    if (mine !== turn) return;
    const delay = check!.links.find((l) => l.name === known.link)?.forward.delay_s ?? rtt() / 2;
    kept.set(i, links.crossing(answer, from, to, delay));
    if (!playing) drawCrossings();
  } catch (e) {
    asked.delete(i);
    if (mine === turn) complain(e);
  }
}

function words(): void {
  const texts = [...kept.entries()].sort(([a], [b]) => a - b).map(([i, c]) => {
    const { on, lost } = links.count(c, now);
    const list = Object.entries(on).map(([kind, n]) => `${n} ${links.KIND_PLURALS[kind]}`);
    return `${labels[i]}: ${list.join(", ") || "nothing"} in flight, ${lost} lost within the last round trip`;
  });
  const flow = runs[0]?.flows[state.flow === "mean" ? 0 : Number(state.flow)];
  by("crossing-words").textContent = flow ? `Flow ${flow.group}[${flow.index}] at ${clock(now)}. ${texts.join(". ")}.` : "";
}

// ---- File, sweep

function scenarioFile(files: string[], chosen: number): void {
  by("file").textContent = files[chosen]!;
  // The command has no controls of one's own; Python has, with the same methods.
  const elsewhere = /^\s*(\{.*)?("?user[:"])/.test(state.cc[chosen] ?? "");
  by("command").textContent = elsewhere ? "This control runs in this page alone; the Python package takes one with the same methods." : `skyhaul run lab.toml --digest    # ${runs[chosen]!.digest}`;
  const tabs = labels.map((l, i) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = l;
    b.setAttribute("aria-pressed", String(i === chosen));
    b.onclick = () => scenarioFile(files, i);
    return b;
  });
  by("file-tabs").replaceChildren(...tabs);
}

async function sweep(): Promise<void> {
  if (!check) return;
  const mine = turn;
  pause();
  const button = by<HTMLButtonElement>("sweep-run");
  button.disabled = true;
  by("stop").hidden = false;
  const from = performance.now();
  const points: { loss: string; control: number; y: number }[] = [];
  try {
    await drawing;
    const duration = check!.duration_s;
    const all = LOSSES.flatMap((loss) => state.cc.map((_, control) => ({ loss, control })));
    by("sweep-figure").hidden = false;
    const rate = check!.links.find((l) => l.name === known.link)?.forward.rate_bit_s ?? null;
    await Promise.all(
      all.map(async ({ loss, control }) => {
        // A sweep draws nothing over time, so nothing is recorded.
        const text = file({ ...state, loss }, known, duration, control).replace(/^record = .*\n/m, "");
        const [r] = await engine.ask<Run>({ run: { scenario: text, own: own() } }, state.code);
        points.push({ loss, control, y: (r.goodput_bit_s ?? 0) / 1e6 });
        by("sweep-status").textContent = `${points.length} of ${all.length} runs`;
      }),
    );
    if (mine !== turn) return;
    points.sort((a, b) => LOSSES.indexOf(a.loss) - LOSSES.indexOf(b.loss));
    await charts.sweep(by("c-sweep"), by("c-sweep").clientHeight, LOSSES, points, rate === null ? null : rate / 1e6, state.cc.length);
    const at = (control: number) => points.find((p) => p.loss === "1e-2" && p.control === control)!.y;
    const ratio = state.cc.length === 2 ? ` At 1e-2 ${labels[1]} delivers ${Math.abs((at(1) / at(0) - 1) * 100).toFixed(1)} % ${at(1) < at(0) ? "less" : "more"} than ${labels[0]}.` : "";
    by("sweep-status").textContent = `${all.length} runs in ${((performance.now() - from) / 1000).toFixed(1)} s.${ratio}`;
  } catch (e) {
    by("sweep-status").textContent = "";
    complain(e);
  } finally {
    button.disabled = false;
    if (mine === turn) by("stop").hidden = true;
  }
}

// ---- The walk

function walk(focus: boolean): void {
  const step = Number(state.step);
  const open = step >= 1 && step <= WALK.length;
  by("walk").hidden = !open;
  by("walk-open").setAttribute("aria-expanded", String(open));
  by("results").dataset.view = open ? WALK[step - 1]!.view : "charts";
  if (!open) return;
  const { title, figure, text, look } = WALK[step - 1]!;
  by("walk-title").textContent = title;
  by("walk-where").textContent = `Step ${step} of ${WALK.length} · ${figure}`;
  by("walk-text").replaceChildren(...text.map((t) => Object.assign(document.createElement("p"), { textContent: t })));
  by("walk-look").textContent = look;
  by<HTMLButtonElement>("walk-back").disabled = step === 1;
  by("walk-next").textContent = step === WALK.length ? "Finish" : "Next";
  const steps = WALK.map((s, i) => {
    const li = document.createElement("li");
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = String(i + 1);
    b.setAttribute("aria-label", `Step ${i + 1}: ${s.title}`);
    if (i + 1 === step) b.setAttribute("aria-current", "step");
    b.onclick = () => go(i + 1);
    li.append(b);
    return li;
  });
  by("walk-steps").replaceChildren(...steps);
  if (focus) by("walk-title").focus();
}

function go(step: number): void {
  state = step >= 1 && step <= WALK.length ? stepState(step) : { ...state, step: "" };
  fill();
  walk(true);
  if (step >= 1 && step <= WALK.length) void run();
  else remember();
}

// ---- Everything that can be pressed

form.onsubmit = (e) => {
  e.preventDefault();
  read();
  trusted = state.code;
  fill();
  void run();
};
form.addEventListener("change", (e) => {
  notes = [];
  const target = e.target as HTMLInputElement;
  if (target.name === "orbit") {
    const chosen = target.value;
    if (chosen === "other") {
      field("delay").focus();
      return;
    }
    field("delay").value = chosen;
  }
  read();
  if (target.name === "code") trusted = state.code;
  if (target.name === "preset") {
    // Values for the links and flows of another preset need not fit this one.
    const { cc, code, preset, seed, speed } = state;
    state = { ...START, cc, code, preset, seed, speed, loss: preset === START.preset ? START.loss : "", duration: preset === START.preset ? START.duration : "" };
    fill();
  }
  state.t = "";
  orbit();
  void run();
});
by("cc-add").onclick = () => {
  read();
  state.cc.push(["cubic", "bbr", "hybla", "vegas"].find((c) => !state.cc.includes(c)) ?? "cubic");
  fill();
  void run();
};
by("own-start").onclick = () => {
  read();
  const mine = state.code === trusted;
  state.code = state.code === "" ? EXAMPLE : `${state.code}\n${EXAMPLE}`;
  if (mine) trusted = state.code;
  if (!state.cc.includes("user:gentle") && state.cc.length < MOST) state.cc.push("user:gentle");
  fill();
  void run();
};
by("reset").onclick = () => {
  state = { ...START, cc: [...START.cc], set: [] };
  fill();
  walk(false);
  void run();
};
by("stop").onclick = () => {
  turn += 1;
  engine.stop();
  asked.clear();
  by("stop").hidden = true;
  say("Stopped.");
};
by("play").onclick = () => (playing ? pause() : play());
by<HTMLInputElement>("scrub").oninput = (e) => {
  if (runs.length === 0) return;
  playing = false;
  by("play").textContent = "Play";
  seek((Number((e.target as HTMLInputElement).value) / 1000) * check!.duration_s);
};
by("scrub").onchange = () => runs.length > 0 && rest();
by("speed").onchange = () => {
  state.speed = by<HTMLSelectElement>("speed").value;
  remember();
};
by("flow").onchange = () => {
  state.flow = by<HTMLSelectElement>("flow").value;
  remember();
  if (runs.length > 0) void drawCharts().then(() => seek(now));
};
by("sweep-run").onclick = () => void sweep();
by("walk-open").onclick = () => go(Number(state.step) >= 1 ? 0 : 1);
by("walk-close").onclick = () => {
  go(0);
  by("walk-open").focus();
};
by("walk-next").onclick = () => go(Number(state.step) + 1);
by("walk-back").onclick = () => go(Number(state.step) - 1);

async function copy(button: HTMLElement, text: string): Promise<void> {
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed here";
  }
  setTimeout(() => (button.textContent = words), 1500);
}
by("to-form").onclick = () => {
  form.scrollIntoView();
  field("preset").focus({ preventScroll: true });
};
by("share").onclick = () => {
  remember();
  void copy(by("share"), location.href);
};
by("file-copy").onclick = () => void copy(by("file-copy"), by("file").textContent ?? "");

addEventListener("hashchange", () => {
  state = fromLink(location.hash);
  notes = notFollowed(location.hash);
  fill();
  walk(false);
  void run();
});
addEventListener("keydown", (e) => {
  const free = e.target === document.body || e.target === by("results");
  if (!free || e.ctrlKey || e.metaKey || e.altKey || runs.length === 0) return;
  if (e.key === " ") {
    e.preventDefault();
    if (playing) pause();
    else play();
  } else if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
    seek(now + (e.key === "ArrowLeft" ? -1 : 1) * sample(check!.duration_s) * 10);
    rest();
  }
});

let resize = 0;
function redraw(): void {
  clearTimeout(resize);
  resize = window.setTimeout(() => runs.length > 0 && void drawCharts().then(() => seek(now)), 150);
}
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) redraw();
  width = innerWidth;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

async function begin(): Promise<void> {
  fill();
  walk(false);
  const library = engine.ask<{ name: string; title: string }[]>({ library: {} });
  try {
    const [list] = await library;
    const select = field("preset") as unknown as HTMLSelectElement;
    select.replaceChildren(...list.map((p) => new Option(p.name, p.name, false, p.name === state.preset)));
    list.forEach((p, i) => (select.options[i]!.title = p.title));
    await run();
    if (location.protocol === "https:" || location.hostname === "127.0.0.1" || location.hostname === "localhost")
      await navigator.serviceWorker?.register("offline.js");
  } catch (e) {
    complain(e);
  }
}
void begin();
