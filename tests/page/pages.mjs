// SPDX-License-Identifier: Apache-2.0
// Pages in a browser, made from files of this program, and checks that hold for all of them.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const { chromium } = await import(join(process.env.ASSAY_NPM, "node_modules/playwright-core/index.mjs"));
const dir = mkdtempSync(join(tmpdir(), "assay-page-"));
const sections = ["state", "contract", "not-tested", "fleet", "findings", "pairs", "sweeps", "distributions", "telemetry", "training", "history", "comparison", "inventory"];

function run(program, args, codes = [0]) {
  const done = spawnSync(program, args, { cwd: dir, encoding: "utf8", timeout: 120000 });
  assert.ok(codes.includes(done.status), `${program} ${args.join(" ")}: exit ${done.status}\n${done.stdout}${done.stderr}`);
  return done;
}
const assay = (args, codes) => run(process.env.ASSAY, args, codes);
function report(name, inputs, options = []) {
  assay(["report", ...inputs, "-o", `${name}.html`, ...options]);
  return join(dir, `${name}.html`);
}
const simulated = (name, args) => assay(["simulate", ...args, "-o", `${name}.h5`], [0, 1, 2, 3]);

const here = dirname(fileURLToPath(import.meta.url));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });

const seen = new Set();

/// Opens a page; what it complains about or asks the network for is an error of the test.
async function open(file, { width = 1280, height = 900, hash = "" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, acceptDownloads: true }), page = await context.newPage(), wrong = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) wrong.push(m.text()); });
  page.on("pageerror", (e) => wrong.push(e.message));
  page.on("request", (r) => { if (!r.url().startsWith("file://") && !r.url().startsWith("blob:")) wrong.push(`request: ${r.url().slice(0, 80)}`); });
  const url = new URL(`file://${file.split("/").map(encodeURIComponent).join("/")}`);
  await page.goto(url.href + hash);
  await page.waitForSelector("html[data-ready]", { timeout: 20000 });
  page.finish = async () => {
    // Every picture is drawn once: that takes most of the time.
    if (!seen.has(`${file} ${width}`)) await page.evaluate(async () => { for (let y = 0; y < document.body.scrollHeight; y += 700) { scrollTo(0, y); await new Promise(requestAnimationFrame); } });
    seen.add(`${file} ${width}`);
    await page.waitForTimeout(100);
    assert.deepEqual(wrong, []);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${file} scrolls sideways`);
    await page.setViewportSize({ width: 390, height: 800 });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390, `${file} scrolls sideways at 390`);
    await context.close();
  };
  return page;
}

/// All text in the first element, cells apart by a blank: innerText leaves out what is not in view yet.
const words = (from, selector) => from.locator(selector).first().evaluate((e) => {
  const walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), out = [];
  while (walk.nextNode()) out.push(walk.currentNode.textContent);
  return out.join(" ").replace(/\s+/g, " ").trim();
});

/// Opening a finding shows its picture, or why it has none; at most eight are opened.
async function evidence(page, verdict) {
  for (let i = 0; i < Math.min(8, verdict.findings.length); i++) {
    const finding = page.locator(`[id="finding/${i + 1}"]`), summary = finding.locator("summary").first();
    if (!(await finding.evaluate((f) => f.open))) await summary.click();
    assert.ok((await words(finding, ".words")).startsWith(verdict.findings[i].text.replace(/\s+/g, " ").trim().slice(0, 60)), `finding ${i + 1} does not say its words`);
    assert.ok(await finding.locator("figure").count() > 0 || (await finding.locator(".nothing").count()) > 0, `finding ${i + 1} shows nothing`);
    if (await finding.locator("figure").count() === 0) continue;
    await finding.locator("figure").first().scrollIntoViewIfNeeded();
    await finding.locator("figure .moving canvas").first().waitFor();
  }
}

/// Every section shows something, but for those in `missing` ({id: what it says}), which say why they do not.
async function told(page, missing) {
  const shown = await page.$$eval("main > section", (all) => all.map((s) => [s.id, s.querySelector("table, svg, .fleet, .finding, .banner") !== null, s.querySelector(":scope > .nothing")?.textContent ?? ""]));
  assert.deepEqual(shown.map(([id]) => id), sections);
  for (const [id, something, why] of shown) {
    if (id in missing) assert.match(why, missing[id], `${id} does not say why it is empty`);
    else assert.ok(something, `${id} shows nothing: ${why}`);
  }
}
const unmeasured = { contract: /^No contract was given/, history: /^Only one run is given/, comparison: /^One run was given/, telemetry: /^Nothing was sampled over time/, training: /^No training case ran/ };
const noSizes = { sweeps: /^No metric of this run was measured at three sizes/ }, noPairs = { pairs: /^No pairs were measured/ };
/// Of `missing` what a run that was measured here has no pictures of: that depends on the machine.
async function unlucky(page, missing) {
  const drawn = await page.$$eval("main > section", (all) => all.filter((s) => s.querySelector("figure, .scroll")).map((s) => s.id));
  return Object.fromEntries(Object.entries(missing).filter(([id]) => !drawn.includes(id)));
}

/// Every picture has its numbers as CSV: of its own, or of the table that it is in or that follows it.
async function csvs(page) {
  const without = await page.evaluate(() => [...document.querySelectorAll("main svg[role=img]:not(.key), .fleet")].filter((picture) => {
    const figure = picture.closest("figure"), place = picture.closest("table") ?? figure?.parentElement ?? picture.parentElement;
    if (figure?.dataset.chart || figure?.closest(".rails")?.parentElement.querySelector("[data-chart]")) return false;  // asked for when it is in view
    return ![...place.querySelectorAll("button")].some((b) => b.textContent === "CSV");
  }).map((p) => p.getAttribute("aria-label") ?? p.className));
  assert.deepEqual(without, []);
}
async function csvOf(page, from) {
  await from.first().evaluate((e) => { for (let d = e.closest("details"); d; d = d.parentElement.closest("details")) d.open = true; });
  const [file] = await Promise.all([page.waitForEvent("download"), from.locator("button", { hasText: "CSV" }).first().click()]);
  return readFileSync(await file.path(), "utf8");
}

/// Every section is there or says why not; every node's tile has the state that the verdict gives.
async function whole(page, file, missing, options = [], input = `${file}.h5`) {
  await csvs(page);
  assay(["verdict", input, "--json", `${file}.json`, ...options], [0, 1, 2, 3]);
  const verdict = JSON.parse(readFileSync(join(dir, `${file}.json`), "utf8"));
  await told(page, verdict.findings.length > 0 ? missing : { ...missing, findings: /^The verdict found nothing/ });
  assert.equal(await page.innerText("#state .state"), verdict.state);
  const tiles = Object.fromEntries(await page.$$eval("#fleet .node", (all) => all.map((t) => [t.querySelector("b").textContent, t.title.split(" ").pop()])));
  const nodes = Object.fromEntries(verdict.entities.filter((e) => e.kind === "node").map((e) => [e.name, e.state]));
  assert.deepEqual(tiles, nodes);
  const drawn = await page.evaluate(() => { const p = JSON.parse(document.getElementById("data").textContent).parts; return Object.fromEntries(p.name.map((n, i) => [n, p.state[i]]).filter(([, s]) => s)); });
  assert.deepEqual(drawn, Object.fromEntries(verdict.entities.filter((e) => e.kind !== "link").map((e) => [e.name, e.state])));
  assert.equal((await page.$$("#findings .finding")).length, verdict.findings.length);
  await evidence(page, verdict);
  return verdict;
}

/// Interactive within so many ms of the browser's own work: the better of two, because this machine does other things, too.
async function soon(file, ms) {
  const took = [];
  for (let i = 0; i < 2; i++) {
    const page = await open(file);
    took.push(Number(await page.getAttribute("html", "data-ready")));
    await page.context().close();
  }
  console.log(`        interactive after ${took.map((t) => t.toFixed(0)).join(", ")} ms`);
  assert.ok(Math.min(...took) < 3 * ms, `interactive after ${Math.min(...took)} ms`);  // three times: others share the machine
}

export { assay, browser, csvOf, dir, here, noPairs, noSizes, open, report, run, sections, simulated, soon, unlucky, unmeasured, whole, words };
