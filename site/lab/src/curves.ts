// Curves over simulated time, from the series of a run.
import type { Check, Column, Run } from "./engine.js";

export interface Curve {
  x: number[];
  y: (number | null)[];
}

/** One value per time: of one entity, or the mean of all. */
export function curve(series: Column, column: string, entity: number | "mean"): Curve {
  const values = series[column];
  if (!values) return { x: [], y: [] };
  const sums = new Map<number, [number, number]>();
  values.forEach((v, i) => {
    if (v == null || (entity !== "mean" && series.entity![i] !== entity)) return;
    const at = series.time_s![i]!;
    const sum = sums.get(at) ?? [0, 0];
    sums.set(at, [sum[0] + v, sum[1] + 1]);
  });
  const x = [...sums.keys()];
  return { x, y: x.map((t) => sums.get(t)![0] / sums.get(t)![1]) };
}

/** Payload acknowledged per time, Mbit/s, over at least a round trip. */
export function goodput(run: Run, of: Check): Curve {
  const bytes = new Map(of.flows.map((f) => [f.name, f.segment_bytes]));
  const size = run.flows.map((f) => bytes.get(String(f.group)) ?? 1000);
  const { time_s: time, entity, acked } = run.series.flows;
  if (!acked) return { x: [], y: [] };
  const sums = new Map<number, number>();
  acked.forEach((n, i) => sums.set(time![i]!, (sums.get(time![i]!) ?? 0) + (n ?? 0) * size[entity![i]!]! * 8e-6));
  const x = [...sums.keys()];
  const total = x.map((t) => sums.get(t)!);
  const step = x.length > 1 ? x[1]! - x[0]! : 1;
  const rtt = Math.max(...of.flows.map((f) => f.base_rtt_s ?? 0));
  const back = Math.max(1, Math.round(Math.max(rtt, run.duration_s / 100) / step));
  return { x, y: x.map((t, i) => (i === 0 ? 0 : (total[i]! - total[Math.max(0, i - back)]!) / (t - x[Math.max(0, i - back)]!))) };
}

/** The last value up to a time. */
export function valueAt(c: Curve, t: number): number | null {
  let [low, high] = [0, c.x.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (c.x[middle]! <= t + 1e-9) low = middle + 1;
    else high = middle;
  }
  return low > 0 ? c.y[low - 1]! : null;
}
