// Draws figures of studies as SVG. Usage: node figures.mjs IN.vl.json OUT.svg …
import fs from "node:fs";
import * as vega from "vega";
import { compile } from "vega-lite";

const files = process.argv.slice(2);
for (let i = 0; i + 1 < files.length; i += 2) {
  const spec = compile(JSON.parse(fs.readFileSync(files[i], "utf8"))).spec;
  const view = new vega.View(vega.parse(spec), { renderer: "none" });
  fs.writeFileSync(files[i + 1], await view.toSVG());
  view.finalize();
}
