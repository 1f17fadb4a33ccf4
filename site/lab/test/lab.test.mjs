// Drives the page in a real browser, as `skyhaul lab` serves it.
// SKYHAUL names the program, CHROMIUM the browser.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import axe from "axe-core";
import { chromium } from "playwright-core";

const skyhaul = process.env.SKYHAUL ?? "skyhaul";
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "skyhaul-lab-"));
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
let server;
let base;
let browser;

before(async () => {
  server = spawn(skyhaul, ["lab", "--no-open", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  base = await new Promise((resolve, reject) => {
    let text = "";
    server.stdout.on("data", (part) => {
      text += part;
      const found = text.match(/http:\/\/127\.0\.0\.1:\d+\//);
      if (found) resolve(found[0]);
    });
    server.on("exit", (status) => reject(new Error(`skyhaul lab ended with status ${status}`)));
    server.on("error", reject);
  });
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: QUIET });
});

after(async () => {
  await browser?.close();
  server?.kill("SIGINT");
  fs.rmSync(scratch, { recursive: true, force: true });
});

/** Opens the page, waits for its first runs, and fails on whatever the console says. */
async function open(link = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && problems.push(m.text()));
  page.on("pageerror", (e) => problems.push(String(e)));
  page.on("request", (r) => r.url().startsWith(base) || problems.push(`asked for ${r.url()}`));
  page.problems = problems;
  await page.goto(base + link);
  await settled(page);
  return page;
}

/** Waits until what was asked for is drawn. */
async function settled(page) {
  await page.waitForFunction(() => document.body.dataset.ready && !/Simulating|Loading/.test(document.getElementById("status").textContent), null, { timeout: 60_000 });
}

const text = (page, selector) => page.locator(selector).innerText();
const digests = async (page) => (await page.locator("#table tr").last().innerText()).trim().split(/\s+/).slice(1);

/** The digest of a file, by the native program. */
function native(scenario) {
  const file = path.join(scratch, "lab.toml");
  fs.writeFileSync(file, scenario);
  const out = execFileSync(skyhaul, ["run", file, "--digest", "--json"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return out.match(/"digest":\s*"([0-9a-f]{16})"/)[1];
}

async function done(page) {
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

test("the files of the page give the same events natively", async () => {
  for (const link of ["", "#loss=1e-2&cc=peach&cc=bbr&duration=20+s&queue=codel", "#preset=geo-today&loss=&duration=20+s&seed=7&cc=cubic"]) {
    const page = await open(link);
    const found = await digests(page);
    const tabs = page.locator("#file-tabs button");
    assert.equal(await tabs.count(), found.length);
    for (const [i, digest] of found.entries()) {
      await tabs.nth(i).click();
      assert.equal(native(await page.locator("#file").textContent()), digest, `${link} ${i}`);
    }
    await done(page);
  }
});

test("a link says all that the page shows", async () => {
  const page = await open();
  await page.fill('[name="loss"]', "5e-3");
  await page.fill('[name="seed"]', "4");
  await page.selectOption('[name="orbit"]', "25 ms");
  await page.click("#cc-add");
  await settled(page);
  await page.locator("#scrub").fill("250");
  await page.locator("#scrub").dispatchEvent("change");
  const [link, wanted, at] = [page.url(), await digests(page), await text(page, "#now")];
  assert.equal(wanted.length, 4);
  const other = await open(link.slice(base.length));
  assert.deepEqual(await digests(other), wanted);
  assert.equal(await text(other, "#now"), at);
  assert.equal(at, "15.0 s");
  await done(other);
  await done(page);
});

const code = (page, value) => page.locator('[name="code"]').evaluate((area, value) => (area.value = value), value);
const run = async (page) => {
  const before = await page.evaluate(() => document.body.dataset.ready);
  await page.click("#run");
  await page.waitForFunction((before) => document.body.dataset.ready !== before || document.getElementById("error").textContent !== "", before, { timeout: 60_000 });
};

test("a control that is written in the page runs beside the built-in ones", async () => {
  const page = await open("#cc=sack&cc=cubic&cc=hybla&duration=20+s&loss=5e-3&preset=peach-geo&seed=3");
  const controls = page.locator("#cc input");
  await controls.nth(1).fill("user:nothing");
  await run(page);
  assert.match(await text(page, "#error"), /nobody provides the control "nothing"/);
  await page.locator("#own summary").click();
  await page.click("#own-start");
  assert.equal(await controls.nth(3).inputValue(), "user:gentle");
  await controls.nth(2).fill("user:events");
  const gentle = await page.locator('[name="code"]').inputValue();
  assert.match(gentle, /class Gentle extends Control/);
  await code(page, `${gentle}
class Nothing extends Control {}
class Events extends Control {
  on_start(start) { super.on_start(start); this.first = this.now; }
  on_ack(ack) { if (ack.acked < 0 || !(this.smss > 500)) throw new Error("facts"); super.on_ack(ack); }
  increase(ack) { return super.increase(ack); }
  on_congestion(loss) { if (loss.kind !== "loss") throw new Error(loss.kind); super.on_congestion(loss); }
  reduction() { return 0.5; }
  on_recovered() { super.on_recovered(); }
  on_timeout(backoff) { super.on_timeout(backoff); }
  on_undo() { super.on_undo(); }
}`);
  await run(page);
  assert.equal(await text(page, "#error"), "");
  const [sack, nothing, events, own] = await digests(page);
  assert.deepEqual([nothing, events], [sack, sack], "a class that does as its base class is SACK");
  assert.notEqual(own, sack);
  // Everything that the page does with a control works with one of these: segments, the sweep, a link.
  await page.click("#sweep-run");
  await page.waitForFunction(() => /28 runs in/.test(document.getElementById("sweep-status").textContent), null, { timeout: 120_000 });
  await page.locator("#file-tabs button").nth(3).click();
  assert.match(await text(page, "#command"), /Python/);
  const link = page.url().slice(base.length);
  await done(page);
  // An address brings code, which runs when its reader says so.
  const other = await browser.newContext({ viewport: { width: 1280, height: 800 } }).then((c) => c.newPage());
  other.problems = [];
  await other.goto(base + link);
  await other.waitForFunction(() => document.getElementById("error").textContent !== "");
  assert.match(await text(other, "#error"), /Your code: .*press Run/);
  assert.equal(await other.evaluate(() => document.body.dataset.ready), undefined);
  await other.fill('[name="seed"]', "3");
  await other.locator('[name="seed"]').dispatchEvent("change");
  await other.waitForTimeout(300);
  assert.equal(await other.evaluate(() => document.body.dataset.ready), undefined, "another field is no consent");
  await run(other);
  assert.deepEqual(await digests(other), [sack, nothing, events, own]);
  await done(other);
});

test("a control of the page follows the facts, asks for events, and paces", async () => {
  const page = await open("#cc=sack&duration=20+s");
  await code(page, `class Paced extends Control {
  policy = { rate_samples: true };
  constructor() { super(); this.woken = 0; this.best = 0; }
  on_start(start) { super.on_start(start); this.wake_at(this.now + 1); this.dice = this.rng.uniform(0, 1) + this.rng.below(3) + this.rng.normal() + this.rng.exponential(1); }
  on_wake() { this.woken += 1; if (this.woken < 5) this.wake_at(this.now + 1); }
  on_ack(ack) {
    if (this.woken < 5 || ack.rate === null || ack.rate.rate === null) return super.on_ack(ack);
    this.best = Math.max(0.99 * this.best, ack.rate.rate);
    this.cwnd = Math.max(4, 1.25 * this.best * this.min_rtt / (8 * this.smss));
    this.pacing = 1.1 * this.best;
  }
  on_congestion() { this.ssthresh = this.cwnd; }
}`);
  await page.locator("#cc input").first().fill("user:paced");
  await run(page);
  assert.equal(await text(page, "#error"), "");
  const first = await digests(page);
  await run(page);
  assert.deepEqual(await digests(page), first, "the same code gives the same run");
  await done(page);
});

test("a mistake in a control is shown with its line", async () => {
  const page = await open("#cc=sack&duration=20+s");
  await page.locator("#own summary").click();
  await page.locator("#cc input").first().fill("user:mine");
  for (const [body, words] of [
    ["increase(ack) {\n return this.cwnd.x.y;\n }", /flow bulk\[\d+\]: Mine\.increase: TypeError.*line 3 of your code/],
    ["increase() { return NaN; }", /what increase returns: write a finite number of segments \(found NaN\)/],
    ["on_ack() { this.cwnd = 0; }", /cwnd: write a finite number of segments, 1 or more \(found 0\)/],
    ["on_start() { this.wake_at(this.now); } on_wake() { this.wake_at(this.now); }", /woken 1000 times at one instant/],
    ["on_start() { this.probe_now(3); }", /write policy = \{ probes: true \}/],
    ["policy = { speed: 1 };", /policy: unknown key "speed" \(known: recovery/],
    ["constructor() { super(); this.rng.random(); }", /random numbers are for events/],
    ["constructor() { }", /constructor of Mine: ReferenceError/],
    ["on_ack() { this.srtt = 3; }", /srtt is read only/],
    ["increase( { }", /Your code: SyntaxError/],
  ]) {
    await code(page, `class Mine extends Control {\n${body}\n}`);
    await run(page);
    assert.match(await text(page, "#error"), words);
    assert.equal(await page.locator('[name="code"]').getAttribute("aria-invalid"), "true", body);
  }
  // A control that never returns is ended by Stop, and the page goes on.
  await code(page, "class Mine extends Control { on_ack() { for (;;); } }");
  await page.click("#run");
  await page.waitForTimeout(500);
  await page.click("#stop");
  await page.locator("#cc input").first().fill("sack");
  await run(page);
  assert.equal(await text(page, "#error"), "");
  await done(page);
});

test("it plays, pauses and scrubs in simulated time", async () => {
  const page = await open("#duration=60+s&speed=16");
  await page.click("#play");
  await page.waitForFunction(() => parseFloat(document.getElementById("now").textContent) > 2);
  await page.click("#play");
  const at = await text(page, "#now");
  await page.waitForTimeout(200);
  assert.equal(await text(page, "#now"), at);
  await page.locator("#scrub").focus();
  await page.keyboard.press("End");
  assert.equal(await text(page, "#now"), "60.0 s");
  assert.equal(await page.locator(".charts .plot canvas").count(), 6);
  await done(page);
});

test("the walk shows the figures of the paper", async () => {
  const page = await open();
  await page.click("#walk-open");
  await settled(page);
  const windowAt = async (share) => {
    await page.locator("#scrub").fill(String(Math.round(share * 1000)));
    return (await page.locator("#r-cwnd span").allInnerTexts()).map(Number);
  };
  // Fig. 3: slow start needs six round trips of 1 s for 64 segments.
  assert.deepEqual(await windowAt(5.9 / 9), [32]);
  await page.click("#walk-next");
  await page.waitForFunction(() => document.querySelectorAll("#r-cwnd span").length === 2);
  assert.deepEqual(await windowAt(2.1 / 9), [4, 64]);
  assert.match(await page.locator("#table").innerText(), /Probes sent\s+0\s+63/);
  await page.locator("#scrub").fill(String(Math.round((0.9 / 9) * 1000)));
  await page.waitForFunction(() => /dummies/.test(document.getElementById("crossing-words").textContent));
  // Figs. 7 and 9: the window of 30 is halved; Rapid Recovery restores it where the network has room, and only there.
  for (const [step, wanted] of [[4, [15, 30]], [5, [15, 15]]]) {
    await page.locator("#walk-steps button").nth(step - 1).click();
    await page.waitForFunction((n) => document.getElementById("walk-where").textContent.startsWith(`Step ${n}`), step);
    await page.waitForFunction(() => /runs of 6.6 s/.test(document.getElementById("status").textContent));
    await settled(page);
    const windows = await windowAt((2.4385 + 1.375 + 0.0575 + 0.06) / 6.6);
    windows.forEach((w, i) => assert.ok(Math.abs(w - wanted[i]) <= 1, `step ${step}: ${windows}`));
  }
  await page.locator("#walk-steps button").nth(5).click();
  await page.waitForFunction(() => /runs of 550 s/.test(document.getElementById("status").textContent), null, { timeout: 60_000 });
  // Fig. 11: at a loss rate of one in a hundred TCP-Peach delivers 1.3 times as much, and improved 2.2 times, as the step says.
  const row = (await page.locator("#table").innerText()).match(/Goodput, Mbit\/s\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)/);
  const times = [row[2], row[3]].map((g) => (Number(g) / Number(row[1])).toFixed(1));
  assert.deepEqual(times, ["1.3", "2.2"], row[0]);
  assert.match(await page.locator("#walk").innerText(), /1\.3 times as much[^]*2\.2 times as much/);
  await page.click("#walk-next");
  assert.ok(await page.locator("#walk").isHidden());
  await done(page);
});

test("what is wrong is said, with its line and key", async () => {
  const page = await open();
  const wrong = () => page.waitForFunction(() => document.getElementById("error").textContent !== "");
  const right = () => page.waitForFunction(() => document.getElementById("error").textContent === "" && document.getElementById("stale").hidden);
  const blamed = () => page.locator("[aria-invalid]").evaluateAll((all) => all.map((f) => f.name || f.ariaLabel));
  await page.fill('[name="loss"]', "2");
  await page.click("#run");
  await wrong();
  assert.match(await text(page, "#error"), /^Segment loss probability: .*links\.sat\.error/);
  assert.deepEqual(await blamed(), ["loss"]);
  // What is still drawn is of the scenario before.
  assert.match(await text(page, "#stale"), /scenario before/);
  assert.equal(await page.locator(".charts").evaluate((c) => getComputedStyle(c).opacity), "0.45");
  await page.fill('[name="loss"]', "1e-3");
  await page.click("#run");
  await settled(page);
  await right();
  assert.deepEqual(await blamed(), []);
  await page.locator("#cc input").nth(1).fill("peech");
  await page.click("#run");
  await wrong();
  assert.match(await text(page, "#error"), /^Control 2: .*did you mean "peach"/);
  assert.deepEqual(await blamed(), ["Control 2"]);
  await done(page);
});

test("the link that limits the flows is chosen, and the values of the preset are shown", async () => {
  const page = await open("#preset=leo-walker-550&duration=10+s&loss=&cc=cubic");
  assert.equal(await page.locator('[name="link"]').inputValue(), "sat");
  const shown = (name) => page.locator(`[name="${name}"]`).getAttribute("placeholder");
  assert.deepEqual([await shown("rate"), await shown("limit"), await shown("count")], ["50 Mbit/s", "117 packets", "1"]);
  assert.match(page.url(), /link=sat/);
  await page.selectOption('[name="preset"]', "peach-geo");
  await settled(page);
  assert.deepEqual([await shown("delay"), await shown("rate"), await shown("limit")], ["275 ms", "10.4 Mbit/s", "50 packets"]);
  assert.match(await page.locator('[name="queue"] option').first().innerText(), /preset: strict-pushout/);
  await done(page);
});

test("a link that cannot be followed is said", async () => {
  const page = await open("#presett=x&duration=10+s&cc=sack&cc=reno&cc=cubic&cc=bbr&cc=hybla");
  const warnings = await text(page, "#warnings");
  assert.match(warnings, /"presett", which this page does not know/);
  assert.match(warnings, /5 congestion controls; the page shows the first 4/);
  await done(page);
  const other = await browser.newPage();
  await other.goto(`${base}#link=up&duration=10+s`);
  await other.waitForFunction(() => document.getElementById("error").textContent !== "");
  assert.match(await text(other, "#error"), /peach-geo has no link "up" \(known: sat\)/);
  await other.close();
});

test("a colour means one thing, and few channel errors are seen beside many drops", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open("#cc=cubic&loss=1e-4&duration=60+s", { colorScheme });
    const colours = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      return ["control", "cause"].flatMap((of) => [0, 1, 2, 3, 4, 5, 6].map((i) => style.getPropertyValue(`--${of}-${i}`).trim())).filter((c) => c);
    });
    assert.equal(new Set(colours).size, 11, colours.join(" "));
    const [, errors, full] = (await text(page, ".drops-of")).match(/(\d+) data, channel error.*?([\d,]+) data, queue full/) ?? [];
    assert.ok(Number(errors) > 0 && Number(full.replace(",", "")) > 4 * Number(errors), await text(page, ".drops-of"));
    const heights = await page.evaluate(() => {
      const canvas = document.querySelector("#c-drops canvas");
      const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const wanted = getComputedStyle(document.documentElement).getPropertyValue("--cause-0").trim().match(/\w\w/g).map((h) => parseInt(h, 16));
      const is = (x, y) => wanted.every((v, i) => Math.abs(data[4 * (y * width + x) + i] - v) < 12);
      const columns = [...Array(width).keys()].map((x) => [...Array(height).keys()].filter((y) => is(x, y)).length);
      return columns.filter((n) => n > 0);
    });
    assert.ok(heights.length > 0 && Math.max(...heights) >= 10, `${heights}`);
    await done(page);
  }
});

test("it fits a phone, and can be used without a mouse and by a screen reader", async () => {
  for (const options of [{ viewport: { width: 390, height: 844 } }, { colorScheme: "dark" }, {}]) {
    const page = await open("#step=2&cc=sack&cc=peach", options);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, "nothing is wider than the screen");
    if (options.viewport) {
      const [chart, controls, cell] = await Promise.all(["#c-cwnd", "#controls", "#table tr:last-child td:last-child"].map((s) => page.locator(s).boundingBox()));
      assert.ok(chart.y < controls.y, "the chart comes before the form");
      assert.ok(cell.x + cell.width <= 390, "the results of every control are on the screen");
    }
    // The policy of the page allows no scripts but its own: this one comes through the debugger.
    await page.evaluate(`{ const module = undefined, exports = undefined, define = undefined; ${axe.source} }`);
    const { violations } = await page.evaluate(() => window.axe.run());
    const serious = violations.filter((v) => ["serious", "critical"].includes(v.impact));
    assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.target).join(" ")}`), []);
    await done(page);
  }
  const page = await open();
  for (let i = 0; i < 60 && !(await page.evaluate(() => document.activeElement.id === "play")); i++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("play").textContent === "Pause");
  await done(page);
});

test("it opens again without a network", async () => {
  const page = await open();
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.context().setOffline(true);
  await page.reload();
  await settled(page);
  assert.match(await text(page, "#status"), /3 runs of 60 s/);
  page.problems.length = 0; // The browser says of each file that the network is gone.
  await done(page);
});
