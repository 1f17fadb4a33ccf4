// The marks of legends, with their words.

/** Dashes of the lines of the controls, in pixels. */
export const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3]];

/** The line of the control with this number. */
export function swatch(i: number): SVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", "26");
  svg.setAttribute("height", "10");
  svg.setAttribute("aria-hidden", "true");
  svg.innerHTML = `<line x1="0" x2="26" y1="5" y2="5" stroke="var(--control-${i})" stroke-width="2.5" stroke-dasharray="${DASHES[i]!.join(" ")}"/>`;
  return svg;
}

/** A mark with its words. */
export function entry(mark: Element, text: string): HTMLElement {
  const span = document.createElement("span");
  span.append(mark, text);
  return span;
}

/** A box in a colour of the style sheet. */
export function box(name: string): Element {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", "12");
  svg.setAttribute("height", "12");
  svg.setAttribute("aria-hidden", "true");
  svg.innerHTML = `<rect width="12" height="12" fill="var(--${name})"/>`;
  return svg;
}

/** Something painted on 14 pixels, with its words. */
export function mark(paint: (g: CanvasRenderingContext2D) => void, words: string): HTMLElement {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 28;
  canvas.style.width = canvas.style.height = "14px";
  canvas.setAttribute("aria-hidden", "true");
  const g = canvas.getContext("2d")!;
  g.scale(2, 2);
  paint(g);
  return entry(canvas, words);
}
