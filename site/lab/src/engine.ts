// Workers, as many as there are processors and controls, and the questions that they answer.

export interface Failure {
  message: string;
  line?: number;
  key?: string;
  what?: string;
  /** Which of the controls it concerns, from 0, if only one. */
  control?: number;
}

export interface Column {
  [name: string]: (number | null)[];
}

export interface Check {
  title: string;
  duration_s: number;
  links: { name: string; forward: { delay_s: number | null; queue_packets: number | null; queue_kind: string; rate_bit_s: number | null; rate_packets_s: number | null; loss: number }; orbit?: object }[];
  flows: { name: string; cc: string; count: number; base_rtt_s: number | null; segment_bytes: number; bottleneck: { link: string } | null }[];
  warnings: { key: string; message: string }[];
}

type Quantities = Record<string, number | string | null>;

export interface Run {
  digest: string;
  /** Why the run ended before its time. */
  ended_early?: string;
  duration_s: number;
  events: number;
  goodput_bit_s: number | null;
  jain: number | null;
  flows: Quantities[];
  links: Quantities[];
  series: { flows: Column; links: Column };
  over_time: {
    interval_s: number;
    losses: { cause: string; class: string; counts: number[] }[];
    moments: { time_s: number; flow: number; what: string }[];
  };
}

export interface Crossings {
  sent_s: number[];
  end_s: (number | null)[];
  kind: string[];
  backward: boolean[];
  seq: number[];
  fate: string[];
  left_out: number;
}

/** A question that was withdrawn. */
export class Withdrawn extends Error {}

/** What the simulator refuses. */
export class Refused extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message);
  }
}

interface Job {
  request: string;
  /** The code of the page's own controls. */
  code: string;
  done: (answer: { ok?: unknown; error?: Failure }, took: number) => void;
  fail: (e: Error) => void;
}

export class Engine {
  private module: Promise<WebAssembly.Module>;
  private idle: Worker[] = [];
  private busy = new Map<Worker, Job>();
  private waiting: Job[] = [];
  private most = Math.max(1, Math.min(navigator.hardwareConcurrency || 2, 4));

  constructor(private readonly base: URL) {
    this.module = this.compile();
    // A failure reaches everyone who asks; before the first question it would count as unhandled.
    this.module.catch(() => {});
  }

  private async compile(): Promise<WebAssembly.Module> {
    const answer = await fetch(new URL("skyhaul.wasm", this.base));
    if (!answer.ok) throw new Error(`the simulator could not be loaded (${answer.status})`);
    return WebAssembly.compile(await answer.arrayBuffer());
  }

  /** Asks, and says how long the simulator took, in milliseconds. `code` has the controls of the page that the question uses. */
  async ask<T>(request: object, code = ""): Promise<[T, number]> {
    const text = JSON.stringify(request);
    await this.module;
    return new Promise((resolve, reject) => {
      const done: Job["done"] = (answer, took) =>
        answer.error ? reject(new Refused(answer.error)) : resolve([answer.ok as T, took]);
      this.waiting.push({ request: text, code, done, fail: reject });
      void this.start();
    });
  }

  /** Withdraws all questions. */
  stop(): void {
    for (const [worker, job] of this.busy) {
      worker.terminate();
      job.fail(new Withdrawn());
    }
    this.busy.clear();
    this.waiting.splice(0).forEach((job) => job.fail(new Withdrawn()));
  }

  private async start(): Promise<void> {
    const module = await this.module;
    while (this.waiting.length > 0 && (this.idle.length > 0 || this.busy.size < this.most)) {
      const worker = this.idle.pop() ?? this.hire(module);
      const job = this.waiting.shift()!;
      this.busy.set(worker, job);
      worker.postMessage({ request: job.request, code: job.code });
    }
  }

  private hire(module: WebAssembly.Module): Worker {
    const worker = new Worker(new URL("worker.js", this.base), { type: "module" });
    worker.postMessage({ module });
    worker.onmessage = ({ data }) => {
      const job = this.busy.get(worker);
      this.busy.delete(worker);
      if (data.broken) worker.terminate();
      else this.idle.push(worker);
      job?.done(data.answer, data.took);
      void this.start();
    };
    worker.onerror = (e) => {
      this.busy.get(worker)?.fail(new Error(`the simulator could not be started: ${e.message}`));
      this.busy.delete(worker);
      void this.start();
    };
    return worker;
  }
}
