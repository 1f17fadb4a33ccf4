// The table of results.
import type { Run } from "./engine.js";

/** The rows of the table of results: a column for each run; `link` is the one whose utilization counts. */
export function rows(runs: Run[], labels: string[], link: string): [HTMLElement, HTMLElement] {
  const sum = (list: Record<string, number | string | null>[], column: string) => list.reduce((n, q) => n + Number(q[column] ?? 0), 0);
  const forward = (r: Run) => r.links.filter((l) => l.direction === "forward");
  const count = (n: number) => n.toLocaleString("en");
  const columns: [string, (r: Run) => string][] = [
    ["Goodput, Mbit/s", (r) => ((r.goodput_bit_s ?? 0) / 1e6).toFixed(3)],
    ["Utilization", (r) => `${(100 * Number(r.links.find((l) => l.link === link && l.direction === "forward")?.utilization ?? 0)).toFixed(1)} %`],
    ["Fairness (Jain)", (r) => (r.jain == null ? "–" : r.jain.toFixed(3))],
    ["Retransmissions", (r) => count(sum(r.flows, "retransmissions"))],
    ["Timeouts", (r) => count(sum(r.flows, "timeouts"))],
    ["Recoveries", (r) => count(sum(r.flows, "recoveries"))],
    ["Probes sent", (r) => count(sum(r.flows, "probes_sent"))],
    ["Probes answered", (r) => count(sum(r.flows, "probes_answered"))],
    ["Data lost: error", (r) => count(sum(forward(r), "data_dropped_error"))],
    ["Data lost: queue full", (r) => count(sum(forward(r), "data_dropped_full"))],
    ["Probes lost", (r) => count(sum(forward(r), "probe_dropped_error") + sum(forward(r), "probe_dropped_full") + sum(forward(r), "probe_dropped_pushed_out") + sum(forward(r), "probe_dropped_aqm"))],
    ["Digest", (r) => r.digest],
  ];
  const cell = (tag: "th" | "td", text: string, scope?: string) => {
    const c = document.createElement(tag);
    c.textContent = text;
    if (scope) c.setAttribute("scope", scope);
    return c;
  };
  const head = document.createElement("tr");
  head.append(cell("th", "Control", "col"), ...labels.map((l) => cell("th", l, "col")));
  const body = columns.map(([name, of]) => {
    const tr = document.createElement("tr");
    if (name === "Digest") tr.className = "digest";
    tr.append(cell("th", name, "row"), ...runs.map((r) => cell("td", of(r))));
    return tr;
  });
  const [thead, tbody] = [document.createElement("thead"), document.createElement("tbody")];
  thead.append(head);
  tbody.append(...body);
  return [thead, tbody];
}
