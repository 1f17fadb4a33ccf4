// Congestion controls written in the page: the class that they extend, and its connection to the simulator. The interface is that of
// Python (docs/algorithms/add-your-own-python.md): the same events, facts and requests, under the same names.

type Json = Record<string, unknown>;
type Ack = { acked: number; kind: string; rtt: number | null; rate: Json | null; lost: number; ece: boolean };
type Loss = { kind: string };

/** A question to the simulator while it waits for an answer. */
type Ask = (question: object) => Json;

/** An error in the code of a control; `line` is that of the code. */
export class OwnError extends Error {
  constructor(message: string, readonly line?: number) {
    super(line === undefined ? message : `${message} (line ${line} of your code)`);
  }
}

/** An instance's facts, and in the current event the attributes that it has set and its requests. */
interface State {
  facts: Json;
  set: Json;
  act: Json;
}
const states = new WeakMap<object, State>();
let ask: Ask = () => ({});
/** Whether an event is being handled: outside of events there is no path, and there are no random numbers. */
let inside = false;

const state = (of: object): State => states.get(of)!;
const refuse = (what: string, accepted: string, found: unknown): never => {
  const shown = typeof found === "number" ? String(found) : (JSON.stringify(found) ?? String(found));
  throw new TypeError(`${what}: write ${accepted} (found ${shown})`);
};
function number(what: string, value: unknown, accepted: string, allowed: (x: number) => boolean): number {
  return typeof value === "number" && allowed(value) ? value : refuse(what, accepted, value);
}
const source = (value: unknown): string => {
  const known = ["last-segment", "one-byte", "unacked-round-robin", "unacked-modulo"];
  return known.includes(value as string) ? (value as string) : refuse("source", known.join(", "), value);
};
const count = (what: string, value: unknown) => number(what, value, "a whole number, 1 or more", (n) => Number.isInteger(n) && n >= 1 && n < 2 ** 32);
const span = (what: string, value: unknown) => number(what, value, "a time in seconds, 0 or more", (t) => Number.isFinite(t) && t >= 0);

/** Asks the simulator for the inherited reaction to the event. */
function inherit(of: object, method: string): void {
  const s = state(of);
  if (!inside) throw new Error(`super.${method}: only in an event of the same name`);
  const answer = ask({ inherit: { method, set: s.set } });
  s.set = {};
  s.facts = { ...revived(answer.facts as Json), flow: s.facts.flow };
}

/** Facts with infinite numbers in place of the word "inf", which JSON needs. */
function revived(facts: Json): Json {
  for (const [key, value] of Object.entries(facts)) if (value === "inf") facts[key] = Infinity;
  return facts;
}

function growth(ack: Ack): number {
  return ask({ growth: { acked: ack.acked } }).value as number;
}

/** The connection's own random stream. */
class Random {
  #draw(of: string, parameter = 0): number {
    if (!inside) throw new Error("rng: random numbers are for events, such as on_ack; not for a constructor");
    return ask({ random: { of, with: parameter } }).value as number;
  }
  /** Uniform on [0, 1). */
  random(): number {
    return this.#draw("random");
  }
  /** Uniform on [low, high). */
  uniform(low: number, high: number): number {
    return low + (high - low) * this.random();
  }
  /** A whole number uniform on 0 … n − 1; 0 for n = 0. */
  below(n: number): number {
    return this.#draw("below", number("below", n, "a whole number, 0 or more", (x) => Number.isInteger(x) && x >= 0));
  }
  /** Exponentially distributed with this mean, in its unit. */
  exponential(mean: number): number {
    return this.#draw("exponential", number("exponential", mean, "a finite mean", Number.isFinite));
  }
  /** Normally distributed with mean 0 and standard deviation 1. */
  normal(): number {
    return this.#draw("normal");
  }
}
const rng = new Random();

/** Facts of the path and the connection, read only. Windows are in segments, times in seconds, rates in bit/s. */
const FACTS = [
  "now", "smss", "rwnd", "in_flight", "pipe", "queued", "srtt", "rttvar", "min_rtt", "round", "delivered", "lost", "head_age",
  "head_retransmissions", "phase", "after_timeout", "app_limited", "probes", "flow",
];

/** The base class: SACK with Reno's growth and halving. A class overrides what differs. */
export class Control {
  constructor(_options: Json = {}) {
    states.set(this, { facts: { cwnd: 1, ssthresh: Infinity, pacing: null }, set: {}, act: {} });
  }
  get cwnd(): number {
    return state(this).facts.cwnd as number;
  }
  set cwnd(value: number) {
    const cwnd = number("cwnd", value, "a finite number of segments, 1 or more", (x) => Number.isFinite(x) && x >= 1);
    state(this).facts.cwnd = state(this).set.cwnd = cwnd;
  }
  get ssthresh(): number {
    return state(this).facts.ssthresh as number;
  }
  set ssthresh(value: number) {
    const ssthresh = number("ssthresh", value, "a number of segments above 0; Infinity is no limit", (x) => x > 0);
    state(this).facts.ssthresh = ssthresh;
    state(this).set.ssthresh = ssthresh === Infinity ? "inf" : ssthresh;
  }
  get pacing(): number | null {
    return state(this).facts.pacing as number | null;
  }
  set pacing(value: number | null) {
    const accepted = "a rate in bit/s, 1 or more, or null for no pacing";
    const rate = value === null ? null : Math.round(number("pacing", value, accepted, (x) => x >= 1 && x < 1e18));
    state(this).facts.pacing = rate;
    state(this).set.pacing = rate ?? "none";
  }
  get in_slow_start(): boolean {
    return this.cwnd < this.ssthresh;
  }
  get rng(): Random {
    return rng;
  }

  probe_now(n: number, from = "last-segment"): void {
    this.#asks("probe_now");
    state(this).act.probe_now = [source(from), count("probe_now, count", n)];
  }
  train(n: number, first: number, spacing: number, from = "last-segment"): void {
    this.#asks("train");
    state(this).act.train = [source(from), count("train, count", n), span("train, first", first), span("train, spacing", spacing)];
  }
  stop_probes(): void {
    state(this).act.stop_probes = true;
  }
  wake_at(time: number | null): void {
    const { facts, act } = state(this);
    const now = facts.now as number;
    const accepted = `a simulated time in seconds, not before now (${now}), or null to cancel`;
    act.wake_at = time === null ? "none" : number("wake_at", time, accepted, (t) => Number.isFinite(t) && t >= now);
  }
  retransmit_head(): void {
    state(this).act.retransmit_head = true;
  }
  rewind(): void {
    state(this).act.rewind = true;
  }
  /** Refuses probes to a class whose policy has none. */
  #asks(what: string): void {
    if (!policy(this).probes) throw new Error(`${what}: the class does not ask for probes: write policy = { probes: true } in it`);
  }

  // Rules that a class may replace.
  increase(ack: Ack): number {
    return growth(ack);
  }
  slow_start(ack: Ack): number {
    return growth(ack);
  }
  reduction(_loss: Loss): number {
    return 0.5;
  }
  on_start(_start: Json): void {
    inherit(this, "on_start");
  }
  on_ack(_ack: Ack): void {
    inherit(this, "on_ack");
  }
  on_congestion(_loss: Loss): void {
    inherit(this, "on_congestion");
  }
  on_recovered(): void {
    inherit(this, "on_recovered");
  }
  on_timeout(_backoff: number): void {
    inherit(this, "on_timeout");
  }
  on_undo(): void {
    inherit(this, "on_undo");
  }
  on_probe(_probe: Json): void {}
  on_lost(_lost: Json): void {}
  on_sent(_sent: Json): void {}
  on_transmit(_transmit: Json): void {}
  on_wake(): void {}
  priority(_offset: number, _retransmission: boolean): string {
    return "normal";
  }
}
for (const fact of FACTS) {
  const get = function (this: Control) {
    return state(this).facts[fact];
  };
  const set = () => {
    throw new TypeError(`${fact} is read only`);
  };
  Object.defineProperty(Control.prototype, fact, { get, set });
}

const HOOKS = [
  "on_start", "on_ack", "on_congestion", "on_recovered", "on_timeout", "on_undo", "on_probe", "on_lost", "on_sent", "on_transmit",
  "on_wake", "increase", "slow_start", "reduction", "priority",
] as const;
const POLICY = ["recovery", "max_burst", "rtt_samples", "rate_samples", "receiver_rate", "probes", "watch_head", "low_priority_data", "rack"];
const RECOVERY = ["tahoe", "reno", "newreno", "sack", "prr"];

/** The mechanisms of the sender that the class or the instance requires. */
function policy(of: object): Json {
  const own = (of as { policy?: Json }).policy ?? (of.constructor as unknown as { policy?: Json }).policy ?? {};
  for (const [key, value] of Object.entries(own)) {
    if (!POLICY.includes(key)) throw new Error(`policy: unknown key "${key}" (known: ${POLICY.join(", ")})`);
    if (key === "recovery" && !RECOVERY.includes(value as string)) refuse("policy, recovery", RECOVERY.join(", "), value);
    if (key === "max_burst") number("policy, max_burst", value, "a whole number of segments; 0 is unlimited", (n) => Number.isInteger(n) && n >= 0 && n < 65536);
    if (key !== "recovery" && key !== "max_burst" && typeof value !== "boolean") refuse(`policy, ${key}`, "true or false", value);
  }
  return own;
}

/** The name by which a scenario uses a class: `MyControl` is `user:my-control`. */
export const nameOf = (className: string) => className.replace(/([a-z0-9])([A-Z])/g, "$1-$2").toLowerCase();

/** Names of the classes in a code that extend `Control`, or one another. */
export function classes(code: string): string[] {
  return [...code.matchAll(/^[ \t]*class\s+([A-Za-z_]\w*)\s+extends\s+[A-Za-z_]\w*/gm)].map((m) => m[1]!);
}

/** Lines before the code in the function that `new Function` makes of it. */
const HEAD = 2;

/** Where in the code an error came from. */
function line(error: unknown): number | undefined {
  const text = error instanceof Error ? (error.stack ?? "") : "";
  const found = text.match(/<anonymous>:(\d+):\d+|> Function:(\d+):\d+/);
  const n = Number(found?.[1] ?? found?.[2] ?? NaN) - HEAD;
  return n >= 1 ? n : undefined;
}

const words = (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error));

/** The controls of a page in one worker. */
export class Own {
  private code = "";
  private made = new Map<string, typeof Control>();
  private instances: Control[] = [];

  /** Takes a code in place of the one before; its instances are forgotten. Returns the names of its controls. */
  load(code: string, question: Ask): string[] {
    ask = question;
    this.instances = [];
    if (code !== this.code) {
      this.made = new Map();
      this.code = code;
      for (const name of classes(code)) {
        if (this.made.has(nameOf(name))) throw new OwnError(`two classes are called user:${nameOf(name)}`);
        try {
          const make = new Function("Control", `"use strict";${code}\nreturn ${name};`) as (base: typeof Control) => typeof Control;
          this.made.set(nameOf(name), make(Control));
        } catch (e) {
          this.code = "";
          throw new OwnError(words(e), line(e));
        }
      }
    }
    return [...this.made.keys()];
  }

  /** Handles a message of the simulator. */
  handle(message: string): string {
    const { create, call } = JSON.parse(message) as { create?: { control: string; flow: string; options: Json }; call?: Call };
    return JSON.stringify(create ? this.create(create.control, create.flow, create.options) : this.call(call!));
  }

  private create(name: string, flow: string, options: Json): Json {
    const of = this.made.get(name)!;
    try {
      const instance = new of(options);
      if (!states.has(instance)) throw new Error("a constructor has to call super()");
      const own = (hook: (typeof HOOKS)[number]) => instance[hook] !== Control.prototype[hook];
      const s = state(instance);
      s.facts.flow = flow;
      s.set = {};
      this.instances.push(instance);
      const ssthresh = instance.ssthresh === Infinity ? null : instance.ssthresh;
      const { cwnd, pacing } = instance;
      return { id: this.instances.length - 1, hooks: HOOKS.filter(own), policy: policy(instance), cwnd, ssthresh, pacing };
    } catch (e) {
      throw new OwnError(`flow ${flow}: constructor of ${of.name}: ${words(e)}`, line(e));
    }
  }

  private call({ id, method, of, facts }: Call): Json {
    const instance = this.instances[id]!;
    const s = state(instance);
    const nested = inside;
    if (facts) {
      s.facts = { ...revived(facts), flow: s.facts.flow };
      s.set = {};
      if (!nested) s.act = {};
    }
    inside = facts !== null;
    try {
      const returned = this.run(instance, method, of);
      const answer: Json = { ...s.set, returned };
      s.set = {};
      if (!nested && facts) answer.act = s.act;
      return answer;
    } catch (e) {
      if (e instanceof OwnError) throw e;
      const at = typeof facts?.now === "number" ? ` at ${facts.now} s` : "";
      throw new OwnError(`flow ${s.facts.flow}: ${instance.constructor.name}.${method}: ${words(e)}${at}`, line(e));
    } finally {
      inside = nested;
    }
  }

  private run(instance: Control, method: (typeof HOOKS)[number], of: unknown): unknown {
    switch (method) {
      case "increase":
      case "slow_start":
        return number(`what ${method} returns`, instance[method](of as Ack), "a finite number of segments", Number.isFinite);
      case "reduction": {
        const accepted = "the fraction of the window that is kept (above 0, below 1), or the new window in segments (1 or more)";
        return number("what reduction returns", instance.reduction(of as Loss), accepted, (x) => Number.isFinite(x) && x > 0);
      }
      case "priority": {
        const { offset, retransmission } = of as { offset: number; retransmission: boolean };
        const word = instance.priority(offset, retransmission);
        return word === "normal" || word === "low" ? word : refuse("what priority returns", '"normal" or "low"', word);
      }
      case "on_wake":
        if ((of as { too_often: boolean }).too_often)
          throw new Error("wake_at: woken 1000 times at one instant, since it asks for the current time each time: ask for a later one, such as this.now + this.srtt");
        instance.on_wake();
        return null;
      default:
        (instance[method] as (argument: unknown) => void).call(instance, of);
        return null;
    }
  }
}

interface Call {
  id: number;
  method: (typeof HOOKS)[number];
  of: unknown;
  facts: Json | null;
}
