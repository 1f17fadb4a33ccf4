// Six steps through the figures of "TCP-Peach: A New Congestion Control Scheme for Satellite IP Networks" (Akyildiz,
// Morabito, Palazzo, IEEE/ACM Transactions on Networking 9(3), 2001). Each step is a state of the page like any other.
import { IMPROVED, START, type State } from "./state.js";

export interface Step {
  title: string;
  figure: string;
  text: string[];
  look: string;
  state: Partial<State>;
  /** Part of the page to which the step draws attention. */
  view: "charts" | "crossing" | "sweep";
}

const PATH = [
  'flows.bulk.start = "0 s"',
  'flows.bulk.endpoint.initial-window = "1 segment"',
];

// Time is counted in RTT: the path has an RTT of 1 s.
const OPENING: Partial<State> = {
  rate: "unlimited",
  delay: "500 ms",
  queue: "strict-pushout",
  limit: "200 packets",
  loss: "0",
  count: "1",
  duration: "9 s",
  set: PATH,
  flow: "0",
  speed: "0.5",
};

// The 100th segment is lost while the window holds 30 segments. A train of 25 dummies, RTT/30 apart, makes the window 30 at
// that time: only its spacing follows from `known-rtt` (1173.333 ms / 64 = 550 ms / 30).
const LOSS: Partial<State> = {
  rate: "unlimited",
  delay: "275 ms",
  queue: "fifo-pushout",
  limit: "500 packets",
  count: "1",
  duration: "6.6 s",
  flow: "0",
  speed: "0.25",
  loss: "",
};
const LOST = 'links.sat.error = { kind = "list", class = "high", indices = [99] }';
const ENDS = [...PATH, 'flows.bulk.known-rtt = "1173.333 ms"'];
const RAPID = '{ name = "peach", recovery = "reno", probe-cap = 26, rapid-recovery = true }';
const FAST = '{ name = "peach", recovery = "reno", probe-cap = 26, rapid-recovery = false }';

export const WALK: Step[] = [
  {
    title: "A long path, and slow start",
    figure: "Fig. 3, dashed",
    text: [
      "A connection opens over an empty path whose round-trip time (RTT) is 1 s, so that seconds on the axis are round trips. The receiver allows 64 segments. Slow start sends one segment and doubles its window every RTT: 1, 2, 4, 8, 16, 32, 64.",
      "For six round trips most of the path is empty. With a terrestrial RTT of 20 ms that is an eighth of a second; over a geostationary satellite, with 550 ms, it is more than three seconds. Many transfers have finished by then.",
    ],
    look: "Play, and watch the link: a burst crosses, then nothing for most of a round trip.",
    state: { ...OPENING, cc: ["sack"], t: "0" },
    view: "crossing",
  },
  {
    title: "Sudden Start",
    figure: "Fig. 3",
    text: [
      "TCP-Peach sends its first segment, followed by 63 dummy segments, RTT/64 apart (Eq. 2). Dummies carry no new data and have low priority: a router drops them first. Each answer shows that there was room for a segment, and opens the window by one.",
      "The window holds 64 segments within two round trips. Slow start needs six.",
    ],
    look: "In the first second, dummies cross the link. In the second, their answers return, and data leaves at the same rate.",
    state: { ...OPENING, cc: ["sack", "peach"], t: "0" },
    view: "crossing",
  },
  {
    title: "A loss that is not congestion",
    figure: "Fig. 7, Fast Recovery",
    text: [
      "The link corrupts one segment, the 100th, while the window holds 30 segments. The RTT is 550 ms. The sender cannot know why the segment is missing. Fast Recovery assumes congestion and halves the window to 15.",
      "The path was not congested, so the reduction gained nothing. The window then grows by one segment per RTT and needs fifteen round trips, eight seconds, to return to 30.",
    ],
    look: "Losses by true cause shows one data segment lost to an error, at 2.44 s. The window falls about one RTT later.",
    state: { ...LOSS, cc: [FAST], set: [...ENDS, LOST], t: "2.2" },
    view: "charts",
  },
  {
    title: "Rapid Recovery probes the network",
    figure: "Fig. 7",
    text: [
      "TCP-Peach halves its window as well, since the loss may have been congestion. But during the recovery it sends one dummy for each segment of the old window: 30. The first fifteen answers only make up for the halved window; each further one opens the window by one.",
      "Here the path has room for all of them. Half an RTT after the recovery the window is 30 again, and the loss has cost only half a window of data.",
    ],
    look: "The two windows diverge at about 4 s. Watch the dummies leave during the recovery, and their answers return one RTT later.",
    state: { ...LOSS, cc: [FAST, RAPID], set: [...ENDS, LOST], t: "2.9" },
    view: "crossing",
  },
  {
    title: "A loss that is congestion",
    figure: "Fig. 9",
    text: [
      "The same connection loses the same segment, but now the network has no room to spare: it drops every second dummy of the recovery. (In this scenario a list selects them, so that the figure can be compared with the paper's.)",
      "Fifteen dummies are answered, and all of these answers only make up for the halved window. It stays at 15: TCP-Peach is then exactly as conservative as Reno, and the two curves coincide.",
    ],
    look: "Losses by true cause shows the dummies that were dropped; the windows do not differ.",
    state: {
      ...LOSS,
      cc: [FAST, RAPID],
      set: [
        ...ENDS,
        LOST,
        'links.router = { packet = "1000 B", rate = "unlimited", delay = "0 s", queue = "500 packets", error = { kind = "list", class = "low", indices = [26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54] }, reverse = { rate = "unlimited", error = "none" } }',
        'flows.bulk.path = ["sat", "router"]',
      ],
      t: "2.9",
    },
    view: "charts",
  },
  {
    title: "Twenty connections and random losses",
    figure: "Fig. 11",
    text: [
      "Twenty connections share a satellite channel of 1300 segments per second, which loses one segment in a hundred. Reno with SACK keeps halving its windows. TCP-Peach opens them again and delivers more.",
      "The paper prints 1.31 times as much at this loss rate for Fig. 11. Read as both papers together are, TCP-Peach has 1.3 times as much here. The third control is improved: it sends a dummy on every acknowledgement of a recovery and halves once for all losses of a window, which no paper describes, and has 2.2 times as much. The study of this figure (skyhaul study report peach-2001/fig11) runs these and other readings with ten seeds; this page shows one seed.",
    ],
    look: "Compare the goodput, then draw the sweep: below 10⁻³ the two hardly differ, above it they diverge.",
    state: { cc: ["sack", "peach", IMPROVED], loss: "1e-2", duration: "550 s", speed: "64", flow: "mean" },
    view: "sweep",
  },
];

/** The state of a step, counted from 1. */
export function stepState(step: number): State {
  const s = WALK[step - 1]?.state ?? {};
  return { ...START, ...s, cc: [...(s.cc ?? START.cc)], set: [...(s.set ?? [])], step: String(step) };
}
