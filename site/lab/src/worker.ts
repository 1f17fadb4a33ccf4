// The simulator, off the thread of the page. A question is answered in one go; to stop one, the worker is ended.

interface Exports extends WebAssembly.Exports {
  memory: WebAssembly.Memory;
  skyhaul_input(length: number): number;
  skyhaul_call(): number;
  skyhaul_output(): number;
}

let exports: Promise<Exports> | undefined;

async function load(module: WebAssembly.Module): Promise<Exports> {
  return (await WebAssembly.instantiate(module, {})).exports as Exports;
}

function ask(x: Exports, text: string): unknown {
  const request = new TextEncoder().encode(text);
  const input = x.skyhaul_input(request.length); // Before `memory.buffer`: the memory may grow.
  new Uint8Array(x.memory.buffer, input, request.length).set(request);
  const length = x.skyhaul_call();
  return JSON.parse(new TextDecoder().decode(new Uint8Array(x.memory.buffer, x.skyhaul_output(), length)));
}

self.onmessage = async ({ data }: MessageEvent) => {
  if (data.module) {
    exports = load(data.module);
    return;
  }
  try {
    const from = performance.now();
    const answer = ask(await exports!, data.request);
    self.postMessage({ answer, took: performance.now() - from });
  } catch (e) {
    // A trap leaves the memory as it was in the middle of a run: the next question needs another worker.
    self.postMessage({ answer: { error: { message: `the simulator stopped: ${e}` } }, broken: true });
  }
};
