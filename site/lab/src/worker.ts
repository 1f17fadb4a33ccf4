// The simulator, off the thread of the page. A question is answered in one go; to stop one, the worker is ended.
import { Own, OwnError } from "./own.js";

interface Exports extends WebAssembly.Exports {
  memory: WebAssembly.Memory;
  skyhaul_input(length: number): number;
  skyhaul_call(): number;
  skyhaul_question(): number;
  skyhaul_output(): number;
}

let exports: Promise<Exports> | undefined;
/** The same, for the functions that the simulator calls. */
let loaded: Exports;
const own = new Own();
let answer = new Uint8Array();

/** What the simulator calls for the controls of the page. */
const skyhaul = {
  ask(message: number, length: number): number {
    const text = new TextDecoder().decode(new Uint8Array(loaded.memory.buffer, message, length));
    answer = new TextEncoder().encode(own.handle(text));
    return answer.length;
  },
  answer(to: number): void {
    new Uint8Array(loaded.memory.buffer, to, answer.length).set(answer);
  },
};

async function load(module: WebAssembly.Module): Promise<Exports> {
  loaded = (await WebAssembly.instantiate(module, { skyhaul })).exports as Exports;
  return loaded;
}

function put(x: Exports, text: string): void {
  const bytes = new TextEncoder().encode(text);
  const input = x.skyhaul_input(bytes.length); // Before `memory.buffer`: the memory may grow.
  new Uint8Array(x.memory.buffer, input, bytes.length).set(bytes);
}

function taken<T>(x: Exports, length: number): T {
  return JSON.parse(new TextDecoder().decode(new Uint8Array(x.memory.buffer, x.skyhaul_output(), length))) as T;
}

function ask(x: Exports, text: string): unknown {
  put(x, text);
  return taken(x, x.skyhaul_call());
}

/** A question of a control while the simulator waits for it. */
function question(of: object): Record<string, unknown> {
  put(loaded, JSON.stringify(of));
  return taken(loaded, loaded.skyhaul_question());
}

self.onmessage = async ({ data }: MessageEvent) => {
  if (data.module) {
    exports = load(data.module);
    return;
  }
  try {
    const x = await exports!;
    own.load(data.code ?? "", question);
    const from = performance.now();
    const answer = ask(x, data.request);
    self.postMessage({ answer, took: performance.now() - from });
  } catch (e) {
    // A trap, or an error in a control of the page, leaves the memory as it was in the middle of a run: the next question needs another
    // worker.
    const error = e instanceof OwnError ? { message: e.message, key: "code" } : { message: `the simulator stopped: ${e}` };
    self.postMessage({ answer: { error }, broken: true });
  }
};
