// Charts over time. Vega draws each once per run; what has not happened yet is veiled, so that playing costs next to nothing.
import * as vega from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";
import { DASHES } from "./marks.js";

export interface Line {
  label: string;
  /** Which of the controls, from 0. */
  control: number;
  x: number[];
  y: (number | null)[];
}

export interface Bars {
  cause: string;
  /** The largest number of any control, which fills a lane. */
  most: number;
  x: number[];
  y: number[];
}

/** Room around the plot, in pixels: fixed, so that the cursor knows where the plot is. */
export const LEFT = 58;
export const RIGHT = 10;
const TOP = 8;
const BOTTOM = 38;

const views = new Map<Element, vega.View>();

/** A colour of the page. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const controlColours = () => [0, 1, 2, 3].map((i) => colour(`control-${i}`));

/** Causes of losses, in the order of their colours. */
export const CAUSES = ["error", "full", "pushed-out", "aqm", "link-down", "arq-gave-up", "filtered"];
export const CAUSE_WORDS: Record<string, string> = {
  error: "channel error",
  full: "queue full",
  "pushed-out": "evicted by data",
  aqm: "active queue management",
  "link-down": "link down",
  "arq-gave-up": "given up by ARQ",
  filtered: "acknowledgement filtered",
};
export const causeColour = (cause: string) => colour(`cause-${CAUSES.indexOf(cause)}`);

function config(): object {
  const [text, line] = [colour("text-2"), colour("line")];
  const font = getComputedStyle(document.body).fontFamily;
  const axis = { labelColor: text, titleColor: text, gridColor: line, domainColor: line, tickColor: line };
  return {
    background: "transparent",
    font,
    axis: { ...axis, labelFontSize: 11, titleFontSize: 11, titleFontWeight: "normal", labelFlush: false },
    view: { stroke: null },
  };
}

async function show(element: HTMLElement, spec: TopLevelSpec): Promise<void> {
  views.get(element)?.finalize();
  const runtime = vega.parse(compile(spec).spec, undefined, { ast: true });
  const view = new vega.View(runtime, { renderer: "canvas", container: element, hover: false, expr: expressionInterpreter } as vega.ViewOptions);
  views.set(element, view);
  await view.runAsync();
}

function frame(element: HTMLElement, height: number, description: string) {
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    description,
    width: Math.max(80, element.clientWidth - LEFT - RIGHT),
    height: height - TOP - BOTTOM,
    autosize: { type: "none" as const },
    padding: { left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM },
    config: config(),
  };
}

const time = (duration: number) => ({
  field: "x",
  type: "quantitative" as const,
  title: "Time (s)",
  scale: { domain: [0, duration], nice: false },
  axis: { grid: false, tickCount: 6 },
});

export function lines(element: HTMLElement, height: number, duration: number, unit: string, all: Line[], says: string): Promise<void> {
  const values = all.flatMap((l) => l.x.map((x, i) => ({ x, y: l.y[i], l: `${l.control}` })));
  const domain = all.map((l) => `${l.control}`);
  const most = values.reduce((m, v) => Math.max(m, v.y ?? 0), 0);
  return show(element, {
    ...frame(element, height, says),
    data: { values },
    mark: { type: "line", interpolate: "step-after", strokeWidth: 1.6, clip: true },
    encoding: {
      x: time(duration),
      y: { field: "y", type: "quantitative", title: unit, scale: { domain: [0, most > 0 ? most : 1], nice: true }, axis: { tickCount: 5, minExtent: 34, maxExtent: 34 } },
      color: { field: "l", type: "nominal", scale: { domain, range: all.map((l) => controlColours()[l.control]) }, legend: null },
      strokeDash: { field: "l", type: "nominal", scale: { domain, range: all.map((l) => DASHES[l.control]) }, legend: null },
    },
  } as TopLevelSpec);
}

/** Losses per interval, a lane for each cause with a scale of its own: a few channel errors show beside hundreds of drops. */
export function bars(element: HTMLElement, height: number, duration: number, interval: number, all: Bars[], says: string): Promise<void> {
  const lanes = Math.max(1, all.length);
  const floor = (lane: number) => lanes - 1 - lane;
  const values = all.flatMap((b, lane) =>
    // A bar has a least height, so that a single loss can be seen.
    b.x.flatMap((x, i) => (b.y[i] ? [{ x, x2: x + interval, y: floor(lane), y2: floor(lane) + 0.85 * Math.max(0.12, b.y[i]! / b.most), c: b.cause }] : [])),
  );
  const domain = all.map((b) => b.cause);
  const y = { field: "y", type: "quantitative", scale: { domain: [0, lanes], zero: true, nice: false }, axis: null };
  return show(element, {
    ...frame(element, height, says),
    layer: [
      { data: { values: all.map((_, lane) => ({ y: lane })) }, mark: { type: "rule", color: colour("line") }, encoding: { y } },
      {
        data: { values: all.map((b, lane) => ({ y: floor(lane) + 0.42, t: b.most.toLocaleString("en") })) },
        mark: { type: "text", align: "right", baseline: "middle", fontSize: 11, color: colour("text-2") },
        encoding: { x: { value: -8 }, y, text: { field: "t" } },
      },
      {
        data: { values },
        mark: { type: "rect", clip: true },
        encoding: {
          x: time(duration),
          x2: { field: "x2" },
          y,
          y2: { field: "y2" },
          color: { field: "c", type: "nominal", scale: { domain, range: domain.map(causeColour) }, legend: null },
        },
      },
    ],
  } as unknown as TopLevelSpec);
}

/** Goodput against the loss rate: both axes by position, since a rate of zero has no place on a logarithmic one. */
export function sweep(element: HTMLElement, height: number, losses: string[], points: { loss: string; control: number; y: number }[], capacity: number | null, controls: number): Promise<void> {
  const list = [...Array(controls).keys()];
  const encoding = {
    x: { field: "loss", type: "ordinal", sort: losses, scale: { domain: losses }, title: "Segment loss probability of the link", axis: { labelAngle: 0, grid: false } },
    y: { field: "y", type: "quantitative", title: "Mbit/s", scale: { domainMin: 0 }, axis: { tickCount: 5, minExtent: 34, maxExtent: 34 } },
    color: { field: "control", type: "nominal", scale: { domain: list, range: list.map((i) => controlColours()[i]) }, legend: null },
    strokeDash: { field: "control", type: "nominal", scale: { domain: list, range: list.map((i) => DASHES[i]) }, legend: null },
  };
  const layer: object[] = [
    { mark: { type: "line", strokeWidth: 1.6 }, encoding },
    { mark: { type: "point", filled: true, size: 36, opacity: 1 }, encoding: { ...encoding, strokeDash: undefined } },
  ];
  if (capacity !== null)
    layer.push({ data: { values: [{ y: capacity }] }, mark: { type: "rule", strokeDash: [3, 3], color: colour("text-2") }, encoding: { y: { field: "y", type: "quantitative" } } });
  return show(element, {
    ...frame(element, height, "Goodput against the loss rate of the link, one line per control."),
    data: { values: points },
    layer,
  } as unknown as TopLevelSpec);
}
