// Called by build.mjs.
import fs from "node:fs";
import path from "node:path";

/** Writes the licences of the packages from which a bundle has taken files. */
export function licences(here, inputs, out) {
  const names = new Set();
  for (const input of inputs) {
    const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (found) names.add(found[1]);
  }
  const texts = [...names].sort().map((name) => {
    const folder = path.join(here, "node_modules", name);
    const { version, license } = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
    if (!/^(MIT|ISC|BSD-[23]-Clause|0BSD|Apache-2\.0)$/.test(license)) throw new Error(`${name}: licence ${license}`);
    const file = fs.readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
    const text = file ? fs.readFileSync(path.join(folder, file), "utf8").trim() : license;
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  fs.writeFileSync(out, texts.join(`\n${"-".repeat(72)}\n\n`));
}
