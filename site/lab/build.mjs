// Builds the page into dist/. Usage: node build.mjs MODULE.wasm
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";
import { licences } from "./licences.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const [wasm] = process.argv.slice(2);
if (!wasm) {
  console.error("lab: name the WebAssembly module; make lab does");
  process.exit(2);
}
const out = path.join(here, "dist");
fs.rmSync(out, { recursive: true, force: true });
fs.mkdirSync(out);

/** The module without its custom sections (names of functions): a quarter of its length, of no use to a page. */
function stripped(bytes) {
  const parts = [bytes.subarray(0, 8)];
  for (let at = 8; at < bytes.length; ) {
    let length = 0;
    let next = at + 1;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[next++];
      length += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    if (bytes[at] !== 0) parts.push(bytes.subarray(at, next + length));
    at = next + length;
  }
  return Buffer.concat(parts);
}

fs.writeFileSync(path.join(out, "skyhaul.wasm"), stripped(fs.readFileSync(wasm)));
for (const file of ["index.html", "style.css", "icon.svg"]) fs.copyFileSync(path.join(here, file), path.join(out, file));

const options = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  outdir: out,
  logLevel: "warning",
};
const entryPoints = ["src/main.ts", "src/worker.ts"];
const built = await esbuild.build({ ...options, entryPoints, splitting: true, chunkNames: "part-[hash]", metafile: true });
licences(here, Object.keys(built.metafile.inputs), path.join(out, "licences.txt"));

// The page works without a network once it has been open: its worker keeps these files, under a name that changes with them.
const files = fs.readdirSync(out).filter((f) => !f.endsWith(".txt")).sort();
const hash = createHash("sha256");
for (const file of files) hash.update(file).update(fs.readFileSync(path.join(out, file)));
const define = { FILES: JSON.stringify(["./", ...files]), VERSION: JSON.stringify(hash.digest("hex").slice(0, 16)) };
await esbuild.build({ ...options, entryPoints: { offline: "src/offline.ts" }, define });

const size = (f) => `${f} ${Math.round(fs.statSync(path.join(out, f)).size / 1024)} KB`;
console.log(`lab: ${fs.readdirSync(out).map(size).join(", ")}`);
