// Checks under node that the WebAssembly module gives the recorded digests, and that it imports nothing but controls of the host.
// usage: node tools/wasm-golden.mjs MODULE.wasm
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), "../crates/wasm/tests/golden");
const module = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
const imports = WebAssembly.Module.imports(module).map((i) => `${i.module}.${i.name}`);
const others = imports.filter((name) => !["skyhaul.ask", "skyhaul.answer"].includes(name));
if (others.length > 0) {
  console.error("wasm: the module imports", others);
  process.exit(1);
}
// No run here has a control of the host.
const never = () => {
  throw new Error("the module called the host");
};
const { memory, skyhaul_input, skyhaul_call, skyhaul_output } = new WebAssembly.Instance(module, { skyhaul: { ask: never, answer: never } }).exports;

function ask(text) {
  const request = new TextEncoder().encode(text);
  const input = skyhaul_input(request.length); // Before `memory.buffer`: the memory may grow.
  new Uint8Array(memory.buffer, input, request.length).set(request);
  const length = skyhaul_call();
  return JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, skyhaul_output(), length)));
}

let wrong = 0;
// Seeds have 64 bits, which numbers here do not: they stay text.
const text = fs.readFileSync(path.join(folder, "digests.json"), "utf8").replace(/("seed":\s*)(\d+)/g, '$1"$2"');
for (const { scenario, set, seed, digest } of JSON.parse(text).runs) {
  const content = scenario.startsWith("preset:") ? scenario : fs.readFileSync(path.join(folder, scenario), "utf8");
  const subject = JSON.stringify({ scenario: content, set });
  const from = performance.now();
  const answer = ask(`{"run":${subject.slice(0, -1)},"seed":${seed}}}`);
  const took = Math.round(performance.now() - from);
  const got = answer.ok?.digest ?? JSON.stringify(answer.error);
  console.log(`wasm: ${scenario} ${set.join(" ")}: ${got === digest ? "same" : `${got}, recorded ${digest}`} (${took} ms)`);
  wrong += got === digest ? 0 : 1;
}
process.exit(wrong > 0 ? 1 : 0);
