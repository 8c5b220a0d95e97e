// Does with the live page what a person would do, and writes what it found as JSON. Called by browser_test.go.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";

const modules = process.env.FSPDA_NODE_MODULES;
const require = createRequire(path.join(modules, "..", "x.js"));
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(path.join(modules, "axe-core", "axe.min.js"), "utf8");
const [scene, url, token, shots] = process.argv.slice(2);

const findings = [];
const found = (name, ok, detail) => findings.push({ Name: name, OK: Boolean(ok), Detail: String(detail) });
const troubles = [];

const browser = await chromium.launch({ executablePath: process.env.FSPDA_CHROMIUM, args: ["--no-sandbox"] });

async function open(width, height, options = {}, hash = "") {
  const context = await browser.newContext({ viewport: { width, height }, acceptDownloads: true, bypassCSP: false, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000); // of a machine that does other work
  page.on("console", m => { if (["error", "warning"].includes(m.type())) troubles.push(`${m.type()}: ${m.text()}`); });
  page.on("pageerror", e => troubles.push(String(e.stack)));
  await page.goto(url + hash);
  await page.waitForFunction(() => globalThis.fspda?.charts[0].u, null, { timeout: 60_000 });
  return page;
}

const length = page => page.evaluate(() => fspda.runs.get(fspda.view.shown()[0].name).length);
const shot = (page, name, full = true) => page.screenshot({ path: path.join(shots, name + ".png"), fullPage: full });

// accessible runs axe by the debugger's hand, which the page's policy allows.
async function accessible(page, name) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  found(`axe, ${name}`, result.violations.length === 0, result.violations.map(v => `${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 120)} ${v.nodes[0].failureSummary}`).join("; ") || "clean");
}

// overflow looks for parts that stand out of the page's width.
async function fits(page, name) {
  const out = await page.evaluate(() => {
    const w = document.documentElement.clientWidth;
    return [...document.querySelectorAll("main *, header *")].filter(e => !e.closest(".scroll, .tip, .u-wrap, .skip, pre") && e.getClientRects().length && e.getBoundingClientRect().right > w + 1).map(e => e.tagName + "." + e.className).slice(0, 5);
  });
  found(`width, ${name}`, out.length === 0, out.join(", ") || "all fits");
}

async function downloads(page) {
  for (const kind of ["SVG", "PNG", "CSV"]) {
    const [d] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: `Download Test accuracy as ${kind}` }).click()]);
    const file = await d.path(), text = fs.readFileSync(file), start = text.subarray(0, 8).toString("latin1");
    const good = { SVG: text.includes("correct on the test set") && /<path d="M[\d.]+ [\d.]+L/.test(text.toString()), PNG: start.startsWith("\x89PNG") && text.length > 5000, CSV: text.toString().split("\n").length > 4 && text.includes("test_acc_avg") }[kind];
    found(`download ${kind}`, good, `${d.suggestedFilename()}, ${text.length} bytes`);
  }
}

async function ofRun() {
  const page = await open(1360, 900);
  const before = await length(page);
  await page.waitForFunction(n => fspda.view.shown()[0].length >= n, before + 3, { timeout: 240_000 });
  found("curves advance", true, `${before} rows, then ${await length(page)}`);
  const state = await page.textContent("#state");
  found("state", state === "running", state);
  const lit = await page.waitForFunction(() => fspda.agents.graph.active.length > 0, null, { timeout: 20_000 }).then(() => true, () => false);
  found("edges light up", lit, "");

  await page.click("label[for=x-bits_total]");
  await page.waitForFunction(() => fspda.charts.every(c => !c.u || /^bits sent by all agents, shared-seed accounting$/.test(c.u.axes[0].label)));
  const ticks = await page.evaluate(() => fspda.charts[1].u.axes[0]._values.filter(Boolean));
  found("bits axis", ticks.length >= 2 && ticks.every(t => / [kMGT]?bit$/.test(t)), ticks.join(", "));
  const same = await page.evaluate(() => { const u = fspda.charts[1].u, r = fspda.view.shown()[0]; return r.columns.bits_total.includes(u.data[0].at(-1)); });
  found("bits are the run's", same, "");
  await page.click("label[for=x-wall_s]");
  await page.waitForFunction(() => fspda.charts[0].u.axes[0].label === "wall time");
  await page.click("label[for=x-iteration]");

  await page.focus("#test_accuracy .plot");
  for (const k of ["ArrowLeft", "ArrowLeft", "+"]) await page.keyboard.press(k);
  await page.waitForFunction(() => fspda.view.zoom);
  const said = await page.textContent("#said");
  found("keys read and zoom", /^iteration .*mean model \d+\.\d\d %/.test(said), said);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !fspda.view.zoom);
  await page.locator("#training_loss .plot").scrollIntoViewIfNeeded();
  const box = await page.locator("#training_loss .u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 60, { steps: 5 });
  await page.mouse.up();
  const zoomed = await page.waitForFunction(() => fspda.view.zoom && fspda.charts.every(c => !c.u || Math.abs(c.u.scales.x.min - fspda.view.zoom[0]) < 1e-6), null, { timeout: 5000 }).then(() => true, () => false);
  found("drag zooms all charts", zoomed, "");
  await page.click("#unzoom");
  await page.fill("#smooth", "0.6");
  await page.dispatchEvent("#smooth", "input");
  await page.waitForFunction(() => fspda.charts[0].u.series.length === 5);
  found("smoothing keeps the raw curve", true, "");
  await page.fill("#smooth", "0");
  await page.dispatchEvent("#smooth", "input");
  await downloads(page);

  await page.waitForFunction(() => fspda.view.shown()[0].length >= 16, null, { timeout: 240_000 });
  await page.mouse.move(5, 300);
  await page.locator("#training_loss .plot").blur();
  await accessible(page, "light");
  await fits(page, "desktop");
  await page.evaluate(() => scrollTo(0, 0));
  await shot(page, "live");

  const next = await page.textContent("#next");
  found("the next evaluation", /^(next evaluation at iteration [\d\u2009]+(, in about .+)?|evaluating iteration [\d\u2009]+)$/.test(next), next);
  await numbers(page);
  await page.click("#runs-box > summary");
  await page.locator("#run-table tbody label", { hasText: "dsgd" }).click();
  await page.waitForFunction(() => fspda.view.shown().length === 2 && fspda.view.shown().every(r => r.length > 5) && fspda.charts[1].u?.series.length === 3, null, { timeout: 20_000 });
  found("two runs overlaid", true, await page.textContent("#test_accuracy .readout"));
  const names = await page.evaluate(() => fspda.view.shown().map(fspda.view.nameOf));
  found("the legend drops what is common", names.join() === "fspda-sa,dsgd", names.join(", "));
  await ownPoints(page);
  await page.click("#runs-box > summary");
  await scales(page);
  await page.click("label[for=x-bits_total]");
  await page.waitForTimeout(800);
  await accessible(page, "two runs");
  await page.evaluate(() => scrollTo(0, 0));
  await shot(page, "live-two", false);

  const dark = await open(1360, 900, { colorScheme: "dark" });
  await dark.waitForTimeout(1500);
  await accessible(dark, "dark");
  await shot(dark, "live-dark");
  await dark.click("#theme");
  found("light by hand in the dark", (await dark.evaluate(() => getComputedStyle(document.body).backgroundColor)) === "rgb(255, 255, 255)", "");
  await dark.context().close();
  const phone = await open(390, 844, { deviceScaleFactor: 2, isMobile: true, hasTouch: true });
  await phone.waitForTimeout(1500);
  await accessible(phone, "phone");
  await fits(phone, "phone");
  await shot(phone, "live-phone", false);
  await phone.context().close();

  const click = action => page.click(`#actions [data-action=${action}]`);
  await click("pause");
  await page.fill("#token", "guess");
  await page.click("#token-box button[value=ok]");
  await page.waitForFunction(() => /token is missing or wrong/.test(document.getElementById("notice").textContent));
  found("a wrong token does nothing", (await page.textContent("#state")) === "running", await page.textContent("#notice"));
  expected.push(/403/);
  await click("pause");
  await page.fill("#token", token);
  await page.click("#token-box button[value=ok]");
  await page.waitForFunction(() => document.getElementById("state").textContent === "paused", null, { timeout: 40_000 });
  await page.waitForTimeout(600);
  const at = () => page.evaluate(() => fspda.view.shown()[0].frame.iteration);
  const [one, two] = [await at(), await page.waitForTimeout(700).then(at)];
  found("pause", one === two, `iteration ${one}, then ${two}`);
  await click("resume");
  await page.waitForFunction(t => fspda.view.shown()[0].frame.iteration > t, two, { timeout: 40_000 });
  await click("checkpoint");
  await page.waitForFunction(() => /writing a checkpoint/.test(document.getElementById("notice").textContent));
  found("checkpoint", true, "");
  await click("stop");
  await page.click("#stop-box button[value=ok]");
  await page.waitForFunction(() => document.getElementById("state").textContent !== "running", null, { timeout: 20_000 });
  expected.push(/ERR_(INCOMPLETE_CHUNKED_ENCODING|CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE)/, /Failed to load resource/);
  await page.waitForFunction(() => document.getElementById("state").textContent === "no connection", null, { timeout: 30_000 });
  found("stop with the token", true, await page.textContent("#notice"));
}

// numbers opens the table behind a chart.
async function numbers(page) {
  await page.getByRole("button", { name: "Table of Test accuracy" }).click();
  const rows = await page.evaluate(() => [...document.querySelectorAll("#test_accuracy .numbers tbody tr")].map(r => [...r.cells].map(c => c.textContent)));
  const same = await page.evaluate(() => fspda.view.shown()[0].columns.test_acc_avg[0]);
  found("the table behind a chart", rows.length >= 3 && rows[0][0] === "iteration 0" && rows[0][1] === `${(100 * same).toFixed(2)} %`, `${rows.length} rows, ${rows[0]}`);
  await page.getByRole("button", { name: "Table of Test accuracy" }).click();
}

// ownPoints looks with the cursor at several places: the readout has for each run the value of its own evaluation that is nearest, and says at which x.
async function ownPoints(page) {
  const wrong = [];
  await page.locator("#test_accuracy .plot").scrollIntoViewIfNeeded();
  const box = await page.locator("#test_accuracy .u-over").boundingBox();
  for (const part of [0.03, 0.31, 0.62, 0.97]) {
    await page.mouse.move(box.x + box.width * part, box.y + 60);
    await page.waitForTimeout(60);
    wrong.push(...await page.evaluate(() => {
      const chart = fspda.charts[1], u = chart.u, left = u.posToVal(u.cursor.left, "x"), at = u.data[0][u.cursor.idx], lines = [...chart.node.querySelectorAll(".readout li")];
      return fspda.view.shown().map((r, k) => {
        const xs = r.columns[fspda.view.x].slice(0, r.length), best = xs.reduce((b, x, i) => Math.abs(x - at) < Math.abs(xs[b] - at) ? i : b, 0);
        const value = lines[k]?.querySelector(".value").textContent.split(" ±")[0], want = `${(100 * r.columns.test_acc_avg[best]).toFixed(2)} %`;
        const own = lines[k]?.querySelector(".own").textContent, digits = own?.replace(/\D/g, "");
        const named = xs[best] === at ? own === "" : fspda.view.x !== "iteration" || digits === String(xs[best]);
        return value === want && named ? "" : `${r.name} at ${at} (cursor ${left}): ${value} ${own}, want ${want} of ${xs[best]}`;
      });
    }));
  }
  found("each curve is read at its own evaluations", wrong.every(w => !w), wrong.filter(Boolean).join("; ") || `${wrong.length} readings`);
  await page.mouse.move(5, 300);
}

// scales sees that no axis becomes linear or logarithmic but by its switch.
async function scales(page) {
  const state = () => page.evaluate(() => [fspda.view.logx, ...fspda.charts.map(c => c.isLog)].join());
  const first = await state();
  await page.click("label[for=x-bits_total]");
  const bits = await state();
  await page.uncheck("#logx");
  await page.click("label[for=x-iteration]");
  const back = await state();
  await page.click("label[for=x-bits_total]");
  const again = await state();
  found("axes keep their scales", first.slice(5) === bits.slice(4) && back === first && again === bits.replace("true", "false"), [first, bits, back, again].join(" | "));
  await page.check("#logx");
  await page.click("label[for=x-iteration]");
}

// ofRuns looks at the runs of a folder: two algorithms with three seeds each, and one run of another with evaluations elsewhere.
async function ofRuns() {
  const page = await open(1360, 900), texts = n => page.evaluate(n => [...document.querySelectorAll("#run-table tbody tr")].map(r => n ? r.cells[n].textContent : r.cells[0].textContent), n);
  const folded = await texts(0);
  const empty = await page.evaluate(() => [...document.querySelectorAll("#curves section, #curves figure, #curves .chart")].filter(n => n.textContent.includes("not measured")).map(n => n.id || n.tagName));
  found("a chart without numbers says that they are not measured", empty.length === 1 && /gradient/.test(empty[0]), empty.join());
  found("seeds are folded", folded.length === 3 && folded.filter(t => t.includes("(3 seeds)")).length === 2, folded.join(", "));
  const head = await page.evaluate(() => [...document.querySelectorAll("#run-table thead th")].map(c => c.textContent)), accuracy = head.indexOf("test accuracy");
  const shown = (await texts(accuracy))[folded.findIndex(t => t.includes("dsgd"))];
  const want = await page.evaluate(() => { const v = fspda.table.list.filter(i => i.algo === "dsgd").map(i => 100 * i.accuracy), m = v.reduce((a, b) => a + b) / v.length; return `${m.toFixed(2)} % ± ${Math.sqrt(v.reduce((a, b) => a + (b - m) ** 2, 0) / (v.length - 1)).toFixed(2)} %`; });
  found("mean and standard deviation", shown === want, `${shown}, want ${want}`);
  await page.getByRole("button", { name: "test accuracy", exact: true }).click();
  const sorted = (await texts(accuracy)).map(parseFloat);
  found("the table of runs sorts", sorted.every((v, i) => !i || v <= sorted[i - 1]) && await page.getAttribute(`#run-table thead th:nth-child(${accuracy + 1})`, "aria-sort") === "descending", sorted.join(" "));
  await page.fill("#run-table input[type=search]", "algo=dsgd");
  found("the filter", (await texts(0)).join().includes("dsgd") && (await texts(0)).length === 1, (await texts(0)).join());
  await page.fill("#run-table input[type=search]", "nothing of that name");
  found("an empty filter says so", (await page.textContent("#run-table .note")) === "No run has all of these words.", "");
  await page.fill("#run-table input[type=search]", "");
  await page.click("#run-table .columns summary");
  await page.getByRole("checkbox", { name: "consensus error" }).check();
  found("columns", (await page.textContent("#run-table thead")).includes("consensus error"), "");
  await accessible(page, "columns of the table of runs");
  await page.click("#run-table .columns summary");

  for (const algo of ["fspda-sa", "dsgd"]) { // the latest run, choco, is shown from the start
    const box = page.locator("#run-table tbody tr", { hasText: algo }).locator("input");
    await box.check();
    found(`focus stays at ${algo}`, await box.evaluate(e => e === document.activeElement), await page.evaluate(() => document.activeElement.outerHTML.slice(0, 80)));
  }
  await page.waitForFunction(() => fspda.view.shown().length === 3 && fspda.view.shown().every(r => r.length > 2));
  const names = await page.evaluate(() => fspda.view.shown().map(fspda.view.nameOf).sort());
  found("names of means", names.join() === "choco,dsgd (3 seeds),fspda-sa (3 seeds)", names.join(", "));
  const band = await page.evaluate(() => fspda.charts[1].u.series.length);
  found("bands of standard deviations", band === 1 + 3 + 2 * 2, band);
  await ownPoints(page);
  await accessible(page, "runs");
  await fits(page, "runs");
  await page.evaluate(() => scrollTo(0, 0));
  await shot(page, "runs", false);
  await page.uncheck("#run-table .bar > label input");
  await page.waitForFunction(() => fspda.view.shown().length === 7 && fspda.charts[1].u?.series.length === 8);
  found("unfolded", (await texts(0)).length === 7, "");
  await page.reload();
  await page.waitForFunction(() => globalThis.fspda?.charts[0].u);
  found("the address keeps the choice", (await page.evaluate(() => fspda.view.runs().length)) === 7, page.url());
  await page.context().close();

  const phone = await open(390, 844, { deviceScaleFactor: 2, isMobile: true, hasTouch: true });
  await phone.click("#runs-box > summary");
  const cut = await phone.evaluate(() => { const s = document.querySelector("#run-table .scroll"); return s.scrollWidth - s.clientWidth; });
  found("no column of the runs is cut on a phone", cut <= 0, `${cut} px`);
  await phone.selectOption("#run-table select", "accuracy");
  await accessible(phone, "runs, phone");
  await fits(phone, "runs, phone");
  await shot(phone, "runs-phone", false);
  await phone.context().close();
}

// ofNone looks at a folder without runs.
async function ofNone() {
  const context = await browser.newContext({ viewport: { width: 1100, height: 600 }, bypassCSP: false }), page = await context.newPage();
  page.on("pageerror", e => troubles.push(String(e.stack)));
  await page.goto(url);
  await page.waitForSelector("#empty:not([hidden])");
  const command = await page.textContent("#try");
  found("a command to try", /^fspda train --iterations 300( --out \S+)?$/.test(command), command);
  found("no charts without runs", !await page.isVisible("#curves"), "");
  await accessible(page, "no runs");
  await shot(page, "none", false);
}

// compared looks closer at a comparison: its readout, its keys, its tables.
async function compared(page, kind) {
  const text = () => page.evaluate(() => [...document.querySelectorAll("#panels figure:nth-child(2) .readout li")].map(l => l.textContent));
  const end = await text();
  await page.focus("#panels figure:nth-child(2) .plot");
  for (const k of ["Home", "ArrowRight"]) await page.keyboard.press(k);
  const early = await text();
  found(`keys read every curve, ${kind}`, end.length === 2 && early.length === 2 && early.every((t, i) => t !== end[i] && / %$/.test(t)), early.join(", "));
  found(`what is read is said, ${kind}`, (await page.textContent("#said")).includes(" at "), await page.textContent("#said"));
  await page.keyboard.press("Escape");
  const bad = await page.evaluate(() => [...document.querySelectorAll("#panels svg[role=img]")].filter(s => !/ends at/.test(s.getAttribute("aria-label"))).length);
  found(`pictures have labels, ${kind}`, bad === 0, bad);
  await page.click("#panels figure:nth-child(2) summary");
  await page.waitForFunction(() => document.querySelectorAll("#panels figure:nth-child(2) tbody tr").length > 10);
  await page.click("#panels figure:nth-child(2) summary");
  const cut = await page.evaluate(() => [...document.querySelectorAll("main > .table")].map(t => t.scrollWidth - t.clientWidth));
  found(`no column is cut, ${kind}`, cut.every(c => c <= 0), cut.join());
}

// ofPages looks at pages that need no server, NAME=FILE with a comma between: reports, in which the picture of the manual is taken, and comparisons.
async function ofPages() {
  for (const [name, file] of url.split(",").map(p => p.split("="))) {
    for (const [kind, options] of Object.entries({ light: {}, dark: { colorScheme: "dark" }, phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 } })) {
      const context = await browser.newContext({ viewport: { width: 1100, height: 1190 }, bypassCSP: false, ...options }), page = await context.newPage();
      page.on("console", m => { if (["error", "warning"].includes(m.type())) troubles.push(`${m.type()}: ${m.text()}`); });
      page.on("pageerror", e => troubles.push(String(e.stack)));
      page.on("request", r => { if (!r.url().startsWith("file:") && !r.url().startsWith("data:")) troubles.push(`${name} asks for ${r.url()}`); });
      await page.goto("file://" + file);
      await accessible(page, `${name}, ${kind}`);
      if (name.startsWith("compare")) await compared(page, kind);
      if (name === "report" && kind === "phone") found("the cost of an accuracy fits a phone", await page.evaluate(() => { const s = document.querySelector(".costs").parentNode; return s.scrollWidth <= s.clientWidth; }), "");
      if (name === "report") found(`tables behind drawings, ${kind}`, await page.evaluate(() => [...document.querySelectorAll("figure")].every(f => f.querySelector("svg[role=img][aria-label]") && f.querySelectorAll("details tbody tr").length > 2)), "");
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      found(`width, ${name}, ${kind}`, wide <= 0, `${wide} px beyond the window`);
      const curves = await page.evaluate(() => [...document.querySelectorAll("figure svg[role=img] path")].filter(p => p.getAttribute("d").length > 40).length);
      found(`curves, ${name}, ${kind}`, curves >= 4, curves);
      await shot(page, kind === "light" ? name : `${name}-${kind}`, false);
      await context.close();
    }
  }
}

async function ofThousand() {
  const page = await open(1360, 900, {}, "#token=" + token);
  found("the token leaves the address", !page.url().includes("token"), page.url());
  await page.waitForFunction(() => fspda.agents.graph.n === 1000 && fspda.agents.smoothLoss, null, { timeout: 60_000 });
  const sentence = await page.textContent("#sentence");
  found("what goes on is said to", /^fspda-sa trains .* 1\u2009000\u2009000 iterations;/.test(sentence), sentence);
  await page.waitForFunction(() => document.getElementById("tiles").textContent.includes("worst agent"), null, { timeout: 60_000 });
  const tiles = await page.textContent("#tiles");
  found("the worst agent of how many", tiles.includes("worst agent of 4 looked at"), tiles);
  await page.locator("#agents").scrollIntoViewIfNeeded();
  const pace = await page.evaluate(() => new Promise(done => {
    const g = fspda.agents.graph, draw = g.draw.bind(g), begin = performance.now(), from = g.drawn;
    let spent = 0;
    g.draw = t => { const a = performance.now(); draw(t); spent += performance.now() - a; };
    const keep = setInterval(() => { const k = Math.floor(Math.random() * 999); g.exchanged([[k, k + 1]]); }, 10); // a run that is paused by the machine's load still shows what drawing costs
    setTimeout(() => { clearInterval(keep); const s = (performance.now() - begin) / 1000, n = g.drawn - from; done({ fps: n / s, ms: spent / n }); }, 4000);
  }));
  found("1000 agents at 30 frames a second", pace.fps >= 30, `${pace.fps.toFixed(1)} frames a second, ${pace.ms.toFixed(2)} ms each`);
  await page.locator("#graph").hover({ position: { x: 200, y: 150 } });
  const tip = await page.textContent("#graph-tip");
  found("an agent tells of its data", /agent \d+.*examples \d+/.test(tip), tip);
  await page.focus("#graph");
  await page.keyboard.press("ArrowRight");
  found("keys go from agent to agent", (await page.textContent("#said")).startsWith("agent 1:"), await page.textContent("#said"));
  await page.click("#agent-table th:nth-child(2) button");
  const sorted = await page.evaluate(() => [...document.querySelectorAll("#agent-table tbody tr")].map(r => Number(r.cells[1].textContent)));
  found("the table sorts", sorted.length === 12 && sorted.every((v, i) => i === 0 || v <= sorted[i - 1]), sorted.join(" "));
  await accessible(page, "a thousand agents");
  await page.locator("#agents").evaluate(e => scrollTo(0, e.offsetTop - 60));
  await page.waitForFunction(() => fspda.agents.graph.active.length > 8, null, { timeout: 20_000 }).catch(() => {});
  await shot(page, "live-thousand", false);
}

const expected = []; // what a browser logs of answers that are meant to be refused
try {
  await { run: ofRun, runs: ofRuns, none: ofNone, thousand: ofThousand, pages: ofPages }[scene]();
} catch (e) {
  const page = browser.contexts()[0]?.pages()[0], text = id => page?.evaluate(id => document.getElementById(id)?.textContent, id);
  found("the scene", false, `${e.stack}\nstate ${await text("state")}, notice ${await text("notice")}`);
}
const rest = troubles.filter(t => !expected.some(e => e.test(t)));
found("console", rest.length === 0, rest.join("\n") || "quiet");
await browser.close();
console.log(JSON.stringify(findings));
