// Segments on their way: a strip that shows where each is now, and below it the same over time, sender at the top.
import { causeColour, colour } from "./charts.js";
import type { Crossings } from "./engine.js";

/** A segment on its way. */
interface Segment {
  sent: number;
  /** When it ended, and how. */
  end: number;
  fate: string;
  kind: string;
  backward: boolean;
  seq: number;
  /** How long it waited before it was on the link. */
  wait: number;
}

export interface Crossing {
  segments: Segment[];
  /** Time on the link, by direction. */
  across: [number, number];
  from: number;
  to: number;
  leftOut: number;
}

export const KINDS = ["data", "again", "probe", "ack", "answer"] as const;
export const KIND_WORDS: Record<string, string> = {
  data: "data",
  again: "retransmitted data",
  probe: "dummy or other probe",
  ack: "acknowledgement",
  answer: "answer to a probe",
};

/** The same, of several. */
export const KIND_PLURALS: Record<string, string> = {
  data: "data segments",
  again: "retransmitted data segments",
  probe: "dummies or other probes",
  ack: "acknowledgements",
  answer: "answers to probes",
};

export function crossing(c: Crossings, from: number, to: number, delay: number): Crossing {
  const across: [number, number] = [Infinity, Infinity];
  c.sent_s.forEach((sent, i) => {
    const end = c.end_s[i];
    const direction = c.backward[i] ? 1 : 0;
    if (end != null && c.fate[i] === "arrived") across[direction] = Math.min(across[direction], end - sent);
  });
  for (const direction of [0, 1]) if (!Number.isFinite(across[direction])) across[direction] = delay;
  const segments = c.sent_s.map((sent, i): Segment => {
    const direction = c.backward[i] ? 1 : 0;
    const end = c.end_s[i] ?? Infinity;
    const fate = c.fate[i]!;
    const crossed = fate === "arrived" || fate === "error";
    const wait = crossed && Number.isFinite(end) ? Math.max(0, end - sent - across[direction]!) : 0;
    return { sent, end, fate, kind: c.kind[i]!, backward: c.backward[i]!, seq: c.seq[i]!, wait };
  });
  return { segments, across, from, to, leftOut: c.left_out };
}

/** Where a segment is at `t`, from 0 at its start to 1; a lost one stops in the middle of the link, or at the queue. */
function place(s: Segment, t: number, across: number): { at: number; lost: boolean } | undefined {
  if (t < s.sent) return undefined;
  const lost = s.fate !== "arrived" && s.fate !== "on the way";
  const onLink = t - s.sent - s.wait;
  if (lost) {
    const stop = s.fate === "error" || s.fate === "link-down" ? 0.5 : 0;
    const reached = Math.max(0, Math.min(stop, across > 0 ? onLink / across : stop));
    const gone = Math.max(s.end, s.sent + s.wait + stop * across);
    if (t > gone + Math.max(0.35 * across, 0.02)) return undefined;
    return { at: reached, lost: t >= gone };
  }
  if (t > s.end || onLink > across) return undefined;
  return { at: Math.max(0, across > 0 ? onLink / across : 1), lost: false };
}

/** How many of each kind are on the way at `t`, and how many were lost in the last round trip. */
export function count(c: Crossing, t: number): { on: Record<string, number>; lost: number } {
  const on: Record<string, number> = {};
  let lost = 0;
  for (const s of c.segments) {
    if (s.sent <= t && t <= s.end) on[s.kind] = (on[s.kind] ?? 0) + 1;
    if (s.fate !== "arrived" && s.fate !== "on the way" && s.end <= t && s.end > t - c.across[0] - c.across[1]) lost += 1;
  }
  return { on, lost };
}

const STRIP = 66;

/** Draws the segments of a control: the colour is that of the control, the shape shows the kind; the colour of a cross is that of the cause of loss. */
export function draw(canvas: HTMLCanvasElement, c: Crossing, t: number, history: number, control: number): void {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const g = canvas.getContext("2d")!;
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  const [text, line, own] = [colour("text-2"), colour("line"), colour(`control-${control}`)];
  g.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  g.textBaseline = "middle";

  // The strip.
  const [left, right] = [62, width - 62];
  const lane = (s: Segment) => (s.backward ? (s.kind === "answer" ? 52 : 42) : s.kind === "probe" ? 14 : 24);
  g.strokeStyle = line;
  g.lineWidth = 1;
  for (const y of [19, 47]) {
    g.beginPath();
    g.moveTo(left, y);
    g.lineTo(right, y);
    g.stroke();
  }
  g.fillStyle = text;
  g.textAlign = "right";
  g.fillText("sender", left - 12, 33);
  g.textAlign = "left";
  g.fillText("receiver", right + 12, 33);
  g.fillRect(left - 5, 8, 2, 50);
  g.fillRect(right + 3, 8, 2, 50);
  for (const s of c.segments) {
    const p = place(s, t, c.across[s.backward ? 1 : 0]);
    if (!p) continue;
    const x = s.backward ? right - p.at * (right - left) : left + p.at * (right - left);
    const y = lane(s);
    if (p.lost) cross(g, x, y, causeColour(s.fate));
    else dot(g, x, y, s.kind, own);
  }

  // The same over time.
  const [top, bottom] = [STRIP + 14, height - 22];
  const x = (time: number) => left + ((time - (t - history)) / history) * (right - left);
  g.save();
  g.beginPath();
  g.rect(left, top - 2, right - left, bottom - top + 4);
  g.clip();
  for (const s of c.segments) {
    if (s.sent > t || s.sent < t - history - s.wait - 2 * c.across[0]) continue;
    const across = c.across[s.backward ? 1 : 0];
    const leave = s.sent + s.wait;
    const y = (at: number) => (s.backward ? bottom - at * (bottom - top) : top + at * (bottom - top));
    const lost = s.fate !== "arrived" && s.fate !== "on the way";
    const stop = lost ? (s.fate === "error" || s.fate === "link-down" ? 0.5 : 0) : 1;
    const now = across > 0 ? Math.min(stop, Math.max(0, (t - leave) / across)) : stop;
    g.strokeStyle = own;
    g.globalAlpha = s.kind === "ack" || s.kind === "answer" ? 0.55 : 0.9;
    g.setLineDash(s.kind === "probe" || s.kind === "answer" ? [3, 2] : []);
    g.lineWidth = s.kind === "again" ? 2 : 1;
    g.beginPath();
    g.moveTo(x(s.sent), y(0));
    if (s.wait > 0) g.lineTo(x(Math.min(leave, t)), y(0));
    g.lineTo(x(Math.min(leave + now * across, t)), y(now));
    g.stroke();
    g.globalAlpha = 1;
    g.setLineDash([]);
    if (lost && leave + stop * across <= t) cross(g, x(leave + stop * across), y(stop) + (stop === 0 ? 5 : 0), causeColour(s.fate));
  }
  g.restore();
  g.strokeStyle = line;
  g.strokeRect(left, top, right - left, bottom - top);
  g.fillStyle = text;
  g.textAlign = "right";
  g.fillText("sender", left - 8, top + 4);
  g.fillText("receiver", left - 8, bottom - 4);
  const digits = history < 1 ? 2 : history < 20 ? 1 : 0;
  for (let i = 0; i <= 4; i++) {
    const at = t - history + (history * i) / 4;
    if (at < -1e-9) continue;
    g.textAlign = i === 4 ? "right" : i === 0 ? "left" : "center";
    g.fillText(`${at.toFixed(digits)} s`, x(at), bottom + 12);
  }
}

export function dot(g: CanvasRenderingContext2D, x: number, y: number, kind: string, fill: string): void {
  g.beginPath();
  g.arc(x, y, kind === "ack" || kind === "answer" ? 2 : 3, 0, 7);
  g.strokeStyle = fill;
  g.fillStyle = fill;
  g.lineWidth = 1.3;
  if (kind === "probe" || kind === "answer") g.stroke();
  else g.fill();
  if (kind === "again") {
    g.beginPath();
    g.arc(x, y, 5, 0, 7);
    g.stroke();
  }
}

export function cross(g: CanvasRenderingContext2D, x: number, y: number, stroke: string): void {
  g.strokeStyle = stroke;
  g.lineWidth = 1.6;
  g.beginPath();
  g.moveTo(x - 3.5, y - 3.5);
  g.lineTo(x + 3.5, y + 3.5);
  g.moveTo(x + 3.5, y - 3.5);
  g.lineTo(x - 3.5, y + 3.5);
  g.stroke();
}
