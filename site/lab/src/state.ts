// What the page shows, as a link and as scenario files. Nothing else decides what is simulated: a link that is opened
// elsewhere, and a file given to `skyhaul run`, give the same results.

/** An empty text means: as in the preset. */
export interface State {
  preset: string;
  link: string;
  delay: string;
  rate: string;
  loss: string;
  queue: string;
  limit: string;
  group: string;
  count: string;
  duration: string;
  seed: string;
  /** Congestion controls side by side, as in files: a name, or an inline table. */
  cc: string[];
  /** Further lines of the file. */
  set: string[];
  /** Classes of congestion controls, in JavaScript. */
  code: string;
  /** Whose window is drawn, and whose segments cross the link: a number, or the mean of all. */
  flow: string;
  /** Where the cursor stands, in seconds; empty is the end. */
  t: string;
  speed: string;
  /** Step of the walk; empty outside of it. */
  step: string;
}

/** TCP-Peach with a dummy on every acknowledgement of a recovery, which the papers do not describe. */
export const IMPROVED = '{ name = "peach", reading = "improved" }';

export const START: State = {
  preset: "peach-geo",
  link: "",
  delay: "",
  rate: "",
  loss: "1e-3",
  queue: "",
  limit: "",
  group: "",
  count: "",
  duration: "60 s",
  seed: "1",
  // Reno, TCP-Peach as both papers have it, and improved.
  cc: ["sack", "peach", IMPROVED],
  set: [],
  code: "",
  flow: "mean",
  t: "",
  speed: "8",
  step: "",
};

/** What the page offers to somebody who writes a control. */
export const EXAMPLE = `// Additive increase, multiplicative decrease: the sender adds alpha
// segments per round trip, and keeps the fraction beta at a loss.
class Gentle extends Control {
  constructor({ alpha = 1, beta = 0.875 } = {}) {
    super();
    this.alpha = alpha;
    this.beta = beta;
  }
  increase(ack) { // segments to add, for each acknowledgement
    return this.alpha * Math.min(ack.acked, this.cwnd) / this.cwnd;
  }
  reduction(loss) { // the fraction of the window that is kept
    return this.beta;
  }
}
`;

/** Largest number of controls side by side. */
export const MOST = 4;

const LISTS = ["cc", "set"] as const;
const TEXTS = Object.keys(START).filter((k) => !LISTS.includes(k as never)) as Exclude<keyof State, "cc" | "set">[];

/** What the results depend on: it stands in every link, so that a link keeps its meaning when the start of the page changes. */
const ALWAYS: (keyof State)[] = ["preset", "cc", "loss", "duration", "seed"];

/** The part of an address behind `#`; empty for the start of the page. */
export function toLink(state: State): string {
  const query = new URLSearchParams();
  const same = (key: keyof State) => String(state[key]) === String(START[key]);
  const written = (key: keyof State) => !same(key) || ALWAYS.includes(key);
  const start = (Object.keys(START) as (keyof State)[]).every((key) => same(key) || key === "link" || key === "group");
  if (start) return "";
  for (const key of TEXTS) if (written(key)) query.set(key, state[key]);
  for (const key of LISTS) if (written(key)) state[key].forEach((v) => query.append(key, v));
  return query.toString();
}

/** Parts of an address that cannot be followed, in words. */
export function notFollowed(hash: string): string[] {
  const query = new URLSearchParams(hash.replace(/^#/, ""));
  const unknown = [...new Set(query.keys())].filter((key) => !(key in START));
  const words = unknown.map((key) => `The address has the part "${key}", which this page does not know.`);
  const controls = query.getAll("cc").filter((c) => c.trim() !== "").length;
  if (controls > MOST) words.push(`The address names ${controls} congestion controls; the page shows the first ${MOST}.`);
  return words;
}

export function fromLink(hash: string): State {
  const query = new URLSearchParams(hash.replace(/^#/, ""));
  const state: State = { ...START, cc: [...START.cc], set: [] };
  for (const key of TEXTS) state[key] = query.get(key) ?? START[key];
  for (const key of LISTS) if (query.has(key)) state[key] = query.getAll(key).map((v) => v.replace(/[\r\n]+/g, " "));
  state.cc = state.cc.filter((c) => c.trim() !== "").slice(0, MOST);
  if (state.cc.length === 0) state.cc = [...START.cc];
  return state;
}

/** What of a scenario the controls of the page need to know. */
export interface Known {
  link: string;
  group: string;
  /** Capacity of the queue, as in files. */
  limit: string;
}

/** Series that the page draws. */
const SERIES = ["acked", "cwnd", "queue"];

/** A text between quotes. */
const quoted = (text: string) => JSON.stringify(text);

/** A name as a part of a key. */
const name = (text: string) => (/^[A-Za-z0-9_-]+$/.test(text) ? text : quoted(text));

/** A value as it may stand in a file: numbers, tables and words between quotes as they are, other words between quotes. */
export function value(text: string): string {
  const t = text.trim();
  return /^([{["'+-]|\d[\d_.eE+-]*$|true$|false$)/.test(t) ? t : quoted(t);
}

/** Seconds between samples: 1, 2 or 5 times a power of ten, of which a run has at most a thousand. */
export function sample(duration: number): number {
  const least = Math.max(duration, 1e-3) / 1000;
  const power = 10 ** Math.floor(Math.log10(least));
  return Number(([1, 2, 5, 10].find((f) => f * power >= least * 0.999) ?? 10) * power).valueOf();
}

/** The lines of a file, without the congestion control. `duration` is that of the run in seconds. */
export function lines(state: State, known: Known, duration: number): string[] {
  const link = `links.${name(known.link)}`;
  const group = `flows.${name(known.group)}`;
  const out = [`schema = 1`, `extends = ${quoted(`preset:${state.preset}`)}`];
  if (state.duration) out.push(`duration = ${value(state.duration)}`);
  out.push(`seed = ${/^\d+$/.test(state.seed.trim()) ? state.seed.trim() : "1"}`);
  if (state.rate) out.push(`${link}.rate = ${value(state.rate)}`);
  if (state.delay) out.push(`${link}.delay = ${value(state.delay)}`);
  const limit = state.limit || known.limit;
  if (state.queue) out.push(`${link}.queue = { kind = ${quoted(state.queue)}${limit ? `, limit = ${value(limit)}` : ""} }`);
  else if (state.limit) out.push(`${link}.queue.limit = ${value(state.limit)}`);
  if (state.loss) out.push(`${link}.error = ${state.loss === "0" ? '"none"' : `{ kind = "per", p = ${state.loss} }`}`);
  if (state.count) out.push(`${group}.count = ${state.count}`);
  out.push(...state.set.filter((l) => l.trim() !== ""));
  const ms = Number((sample(duration) * 1000).toPrecision(6));
  out.push(`record = { sample = "${ms} ms", series = [${SERIES.map(quoted).join(", ")}] }`);
  return out;
}

/** The file of one of the controls. */
export function file(state: State, known: Known, duration: number, control: number): string {
  const all = lines(state, known, duration);
  const cc = `flows.${name(known.group)}.cc = ${value(state.cc[control] ?? "")}`;
  all.splice(all.length - 1 - state.set.filter((l) => l.trim() !== "").length, 0, cc);
  return `${all.join("\n")}\n`;
}

/** What a control is called on the page: its name, and the options in which it differs from the others. */
export function label(cc: string, all: string[]): string {
  const main = cc.match(/name\s*=\s*"([^"]+)"/)?.[1] ?? cc.replaceAll('"', "");
  const parts = (text: string) => text.replace(/^\s*\{|\}\s*$/g, "").split(/,(?![^\[{]*[\]}])/).map((p) => p.trim());
  if (!cc.trim().startsWith("{")) return main;
  const others = all.filter((c) => c !== cc).map(parts);
  const own = parts(cc).filter((p) => p && !p.startsWith("name") && !(others.length > 0 && others.every((o) => o.includes(p))));
  return own.length > 0 ? `${main} (${own.join(", ").replaceAll('"', "")})` : main;
}
