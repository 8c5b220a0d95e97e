// The live page: the selected runs, their events, and the buttons that control the live run.
import { significant, percent, bits, grouped, duration, bytes, si, dash } from "./format.js";
import { Run, Mean, labels } from "./runs.js";
import { makeCharts, axes, runColours } from "./charts.js";
import { RunTable, foldSeeds, ended } from "./runtable.js";
import { Agents } from "./agents.js";

const id = name => document.getElementById(name);
const runs = new Map(); // by name, those with data
const means = new Map(); // by the names of their runs
let list = [], varied = [], folder = "", picked = [], live = "", canSteer = false, source = null, lost = false;
let curves = []; // what the charts show: infos of a run, or of several seeds, its name, and its numbers

const say = text => { id("said").textContent = text; };
const store = (key, value) => { try { sessionStorage.setItem(key, value); } catch { /* without storage the page asks again */ } };
const stored = key => { try { return sessionStorage.getItem(key); } catch { return null; } };
const run = name => { if (!runs.has(name)) runs.set(name, new Run(name)); return runs.get(name); };
const first = () => run(picked[0] ?? "");

// Settings of the charts, and functions that they call. Each quantity of the x axis has a scale of its own.
const view = {
  x: "iteration", logs: { bits_total: true }, smooth: 0, zoom: null,
  get logx() { return Boolean(view.logs[view.x]); },
  shown: () => curves.map(c => c.numbers.refresh?.() ?? c.numbers),
  runs: () => picked.map(run),
  colourOf: r => runColours[Math.max(0, curves.findIndex(c => c.numbers === r)) % runColours.length],
  nameOf: r => curves.find(c => c.numbers === r)?.label ?? r.name,
  accounting: () => first().about?.accounting ?? "shared-seed",
  setZoom: z => { view.zoom = z; id("unzoom").hidden = !z; drawCharts(); },
  next: nextEvaluation,
  say,
};
const charts = makeCharts(id("charts"), view);
const agents = new Agents(say);
let asked = false;
function drawCharts() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; for (const c of charts) c.update(); drawNext(); });
}

// ---- the next evaluation

const running = r => r.frame ? r.frame.state !== "ended" : list.find(i => i.run === r.name)?.status === "running";

// nextEvaluation says when the first of the shown runs that goes on is evaluated again; empty if none goes on.
function nextEvaluation() {
  const r = view.runs().find(running), info = list.find(i => i.run === r?.name), a = r?.about;
  if (!a) return "";
  const all = r.frame?.iterations ?? info.iterations, now = r.last("iteration") ?? -1;
  const every = a.eval_epochs > 0 ? (r.last("epoch") > 0 ? a.eval_epochs * now / r.last("epoch") : null) : a.eval_points > 0 ? all / a.eval_points : null;
  if (now >= 0 && !every) return "";
  let k = Math.max(0, Math.floor(now / every));
  while (now >= 0 && Math.round(k * every) <= now) k++;
  const at = now < 0 ? 0 : Math.min(all, Math.round(k * every));
  if (at <= now) return "";
  const rate = r.rate(), t = r.frame?.iteration, left = rate > 0 && t < at ? `, in about ${duration(Math.max(1, Math.round((at - t) / rate)))}` : "";
  if (now >= 0 && t >= at) return `evaluating iteration ${grouped(at)}`;
  return (now < 0 ? "the first evaluation comes at iteration 0" : `next evaluation at iteration ${grouped(at)}`) + (r.frame?.state === "paused" ? ", when the run is resumed" : left);
}

function drawNext() {
  const text = nextEvaluation();
  if (id("next").textContent !== text) id("next").textContent = text;
}

// ---- the bar above the charts

function fillAxes() {
  const shown = Object.keys(axes).filter(k => k !== "virtual_time" || view.shown().some(r => r.has("virtual_time")));
  if (id("xaxis").dataset.shown === shown.join()) return;
  id("xaxis").dataset.shown = shown.join();
  id("xaxis").replaceChildren(id("xaxis").querySelector("legend"), ...shown.flatMap(k => {
    const input = Object.assign(document.createElement("input"), { type: "radio", name: "x", id: "x-" + k, value: k, checked: k === view.x });
    input.onchange = () => { view.x = k; id("logx").checked = view.logx; view.setZoom(null); };
    return [input, Object.assign(document.createElement("label"), { htmlFor: input.id, textContent: axes[k].name })];
  }));
}
id("logx").onchange = e => { view.logs[view.x] = e.target.checked; view.setZoom(null); };
id("smooth").oninput = e => { view.smooth = Number(e.target.value); id("smooth-value").textContent = view.smooth ? view.smooth.toFixed(2) : "0"; drawCharts(); };
id("unzoom").onclick = () => view.setZoom(null);

// ---- colours

const themes = { "": ["◐", "system theme"], light: ["○", "light"], dark: ["●", "dark"] };
function setTheme(t) {
  t ? document.documentElement.setAttribute("data-theme", t) : document.documentElement.removeAttribute("data-theme");
  id("theme").textContent = themes[t][0];
  id("theme").setAttribute("aria-label", `Colours: ${themes[t][1]}`);
  id("theme").title = `colours: ${themes[t][1]}`;
  store("theme", t);
  recolour();
}
function recolour() {
  drawCharts();
  agents.graph.theme();
  if (agents.run) agents.update();
}
id("theme").onclick = () => { const order = Object.keys(themes), now = document.documentElement.dataset.theme ?? ""; setTheme(order[(order.indexOf(now) + 1) % order.length]); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);

// ---- the list of runs

async function getJSON(path) {
  const r = await fetch(path, { cache: "no-store" });
  if (!r.ok) throw new Error(`${path}: ${r.status} ${await r.text()}`);
  return r.json();
}

async function loadList() {
  const answer = await getJSON("/api/runs");
  ({ runs: list, live, steer: canSteer, varied, folder } = answer);
  if (!picked.length && !chosen) {
    const wanted = new URLSearchParams(location.search).getAll("run").filter(r => list.some(i => i.run === r));
    const newest = list.length ? foldSeeds(list, true)[0].map(i => i.run) : [];
    pick(wanted.length ? wanted : newest);
  }
  settle();
  drawHead();
}

const table = new RunTable(id("run-table"), (names, on) => { chosen = true; pick(on ? [...picked, ...names.filter(n => !picked.includes(n))] : picked.filter(n => !names.includes(n))); }, stored, store);
table.onfold = () => pick(picked);
let chosen = false; // by the reader
const maxCurves = 8, maxShown = 48; // as many as there are colours, and as a stream has runs

// settle puts the picked runs together to curves, and draws the table of runs.
function settle() {
  const infos = picked.map(name => list.find(i => i.run === name) ?? { run: name, name, settings: {} });
  curves = foldSeeds(infos, table.folded).slice(0, maxCurves).map(group => ({ infos: group, numbers: group.length > 1 ? mean(group.map(i => i.run)) : run(group[0].run) }));
  const names = labels(curves.map(c => c.infos[0]), varied.filter(k => k !== "seed" || curves.some(c => c.infos.length === 1)));
  curves.forEach((c, k) => { c.label = c.infos.length > 1 ? `${names[k]} (${c.infos.length} seeds)` : names[k]; });
  const some = list.length > 0;
  id("runs").hidden = list.length < 2;
  id("empty").hidden = some;
  for (const part of document.querySelectorAll("main > .of-runs")) part.classList.toggle("none", !picked.length);
  id("choose").hidden = !some || picked.length > 0;
  id("runs-count").textContent = `${list.length}, ${picked.length} shown`;
  id("try").textContent = `fspda train --iterations 300${folder === "runs" || !folder ? "" : ` --out ${folder}/first`}`;
  table.set(list, varied, live, new Map(curves.flatMap((c, k) => c.infos.map(i => [i.run, runColours[k % runColours.length]]))));
}

function mean(names) {
  const key = names.join("\n");
  if (!means.has(key)) means.set(key, new Mean(names.map(run)));
  return means.get(key);
}

// pick selects the runs to show. The sections about a single run show the first.
function pick(names) {
  const infos = names.map(name => list.find(i => i.run === name)).filter(Boolean);
  picked = foldSeeds(infos, table.folded).slice(0, maxCurves).flat().map(i => i.run).slice(0, maxShown);
  if (picked.length < infos.length) notice(`At most ${maxCurves} curves are shown at a time: take some away before adding others.`);
  view.zoom = null;
  const query = picked.map(r => "run=" + encodeURIComponent(r)).join("&");
  history.replaceState(null, "", picked.length ? "?" + query : location.pathname);
  for (const [name] of runs) if (!picked.includes(name)) runs.delete(name);
  for (const [key] of means) if (!key.split("\n").every(name => picked.includes(name))) means.delete(key);
  settle();
  listen(query);
  for (const name of picked) if (!run(name).about) describe(name);
  showFirst();
}

async function describe(name) {
  try {
    run(name).about = await getJSON("/api/run?run=" + encodeURIComponent(name));
  } catch (e) {
    notice(String(e.message));
    return;
  }
  if (name === picked[0]) showFirst();
  drawCharts();
}

function notice(text) {
  id("notice").hidden = !text;
  id("notice").textContent = text;
}

// ---- events

function listen(query) {
  source?.close();
  if (!query) return;
  source = new EventSource("/api/events?" + query);
  source.addEventListener("open", () => { lost = false; notice(""); for (const name of picked) Object.assign(run(name), { length: 0, columns: {} }); drawHead(); });
  source.addEventListener("error", () => {
    lost = true;
    const over = ["ended", "stopping"].includes(run(live).frame?.state);
    notice((over ? "The run and the program that served this page have ended." : "The program that serves this page cannot be reached.") + " The data received so far remain; fspda web shows the run from its folder.");
    drawHead();
  });
  source.addEventListener("rows", e => { const m = JSON.parse(e.data); run(m.run).add(m); fillAxes(); drawCharts(); if (curves[0]?.infos.some(i => i.run === m.run)) drawTiles(); if (m.run === picked[0]) { drawLedger(); drawSample(); } });
  source.addEventListener("runs", () => loadList().then(() => { const r = first(); if (r.name && r.about && !r.about.files.includes("report.html")) describe(r.name); }).catch(() => {}));
  source.addEventListener("agents", e => {
    const m = JSON.parse(e.data), r = run(m.run);
    r.agents = m;
    if (m.run === picked[0]) agents.receive();
  });
  source.addEventListener("frame", e => {
    const m = JSON.parse(e.data), r = run(m.run), before = r.frame?.state;
    r.update(m);
    if (m.run !== picked[0]) return;
    if (m.exchanges.length) agents.graph.exchanged(m.exchanges);
    drawTiles();
    drawNext();
    if (before !== m.state) { drawHead(); drawCharts(); }
  });
}

// ---- sections about a single run

function showFirst() {
  const r = first(), a = r.about;
  id("command").textContent = a?.command || "not recorded";
  id("config").textContent = a?.config ?? "";
  const path = r.name === "." ? "" : r.name.split("/").map(encodeURIComponent).join("/") + "/";
  id("files").replaceChildren(...(a?.files ?? []).map(f => Object.assign(document.createElement("a"), { href: `/files/${path}${f}`, textContent: f })));
  if (a?.problems?.length) notice(a.problems.join(" · "));
  agents.set(r);
  fillAxes();
  drawHead();
  drawTiles();
  drawLedger();
  drawSample();
  drawCharts();
}

function drawHead() {
  const info = list.find(i => i.run === picked[0]), r = first();
  const name = picked.length ? (curves.length > 1 || curves[0].infos.length > 1 ? curves[0].label : info?.name ?? picked[0]) : list.length ? "no run is selected" : "no runs yet";
  id("title").textContent = curves.length > 1 ? `${name} and ${curves.length - 1} more` : name;
  document.title = `${name} · fspda`;
  const goes = r.frame && r.frame.state !== "ended", state = lost ? "lost" : goes ? r.frame.state : info?.status ?? "";
  const seeds = curves[0]?.infos.length ?? 1;
  id("sentence").textContent = (r.about?.sentence ?? "").replace(/; seed \d+/, seeds > 1 ? `; ${seeds} seeds` : "$&").replace(/ trains /, running(r) ? "$&" : " trained ");
  const failed = goes ? [] : (curves[0]?.infos ?? []).filter(i => i.failed_to_converge);
  id("state").textContent = lost ? "no connection" : failed.length && !goes ? ended(failed[0]) : state;
  id("state").className = "badge " + (failed.length && !lost ? "failed" : state);
  id("failure").hidden = !failed.length;
  id("failure").textContent = failed.map(i => `${curves[0].infos.length > 1 ? i.name : "The run"} has failed to converge: ${i.failed_to_converge}.`).join(" ");
  id("actions").hidden = !(canSteer && picked[0] === live && !lost && r.frame?.state !== "ended");
  const pause = id("actions").querySelector("[data-action=pause],[data-action=resume]"), paused = r.frame?.state === "paused";
  pause.dataset.action = paused ? "resume" : "pause";
  pause.textContent = paused ? "Resume" : "Pause";
  for (const b of id("actions").children) b.disabled = r.frame?.state === "stopping";
}

function tile(name, value, note, more) {
  const t = document.createElement("div");
  t.className = "tile";
  for (const [tag, text] of [["span", name], ["b", value]]) t.append(Object.assign(document.createElement(tag), { textContent: text }));
  if (more) t.append(more);
  t.append(Object.assign(document.createElement("small"), { textContent: note }));
  return t;
}

let tilesAt = 0, tilesLater = 0;
function drawTiles() {
  clearTimeout(tilesLater);
  const wait = 250 - (performance.now() - tilesAt);
  if (wait > 0) { tilesLater = setTimeout(drawTiles, wait); return; }
  tilesAt = performance.now();
  if (!curves.length) return;
  const r = view.shown()[0], f = r.frame, info = curves[0].infos[0], goes = running(r);
  const t = f?.iteration ?? r.last("iteration"), all = f?.iterations ?? info.iterations ?? null, rate = goes || !f ? r.rate() : null;
  const bar = document.createElement("progress");
  bar.max = all || 1;
  bar.value = t ?? 0;
  bar.setAttribute("aria-label", "iterations made");
  const wall = r.last("wall_s"), left = goes && rate > 0 && all ? (all - t) / rate : null, seeds = curves[0].infos.length;
  // measured is a tile of a column; of several seeds it has the mean, and notes the standard deviation.
  const measured = (name, column, write, note) => tile(name, write(r.last(column)), r.deviation(column) ? `± ${write(r.deviation(column), 2)} over ${seeds} seeds` : note);
  const text = r.last("perplexity") !== null, k = r.about?.evaluated_agents;
  const worst = v => `mean model; worst agent${k ? ` of ${grouped(k)} looked at` : ""} ${v}`;
  const tiles = [
    tile("Iteration", grouped(t), all ? `of ${grouped(all)}` : "", bar),
    ...text ? [measured("Perplexity", "perplexity", significant, `validation loss ${significant(r.last("test_loss_avg"), 4)}`), measured("Bits per byte", "bits_per_byte", significant, "of the validation text")] : [],
    ...text && r.last("test_acc_avg") === null ? [] : [measured("Test accuracy", "test_acc_avg", v => percent(v), worst(percent(r.last("test_acc_min"))))],
    measured("Training loss", "train_loss_avg", significant, worst(significant(r.last("train_loss_worst"), 3))),
    measured("Consensus error", "consensus", (v, n = 3) => significant(v, n), "squared distances to the mean"),
    measured("Sent", "bits_total", bits, `until iteration ${grouped(r.last("iteration"))}, ${view.accounting()}`),
    tile("Speed", rate > 0 ? si(rate, "", 3).trim() + "/s" : f?.state === "paused" ? "paused" : dash, seeds > 1 ? "iterations, first seed" : "iterations"),
    goes && left !== null ? tile("Time left", duration(left), wall === null ? "" : `after ${duration(wall)}`) : measured("Wall time", "wall_s", v => duration(v), "at the latest row"),
  ];
  if (f && goes) tiles.push(tile("Memory", bytes(f.memory), "of the whole program"));
  id("tiles").replaceChildren(...tiles);
}

// drawSample shows the latest text that the mean model wrote, if it is a language model.
async function drawSample() {
  const r = first(), path = r.name === "." ? "" : r.name.split("/").map(encodeURIComponent).join("/") + "/";
  const language = r.last("perplexity") !== null;
  id("samples").hidden = !language;
  if (!language) return;
  const answer = await fetch(`/files/${path}samples.jsonl`, { cache: "no-store" }).catch(() => null);
  if (r !== first()) return;
  const lines = answer?.ok ? (await answer.text()).split("\n").slice(0, -1) : [];
  id("samples").hidden = !lines.length;
  if (!lines.length) return;
  const sample = JSON.parse(lines.at(-1));
  id("sample-when").textContent = `at iteration ${grouped(sample.iteration)}`;
  id("sample").textContent = sample.text;
}

// drawLedger lists the sent bits by kind.
function drawLedger() {
  const r = first(), v = k => r.last(k), table = id("ledger-table");
  id("ledger").hidden = !r.length;
  if (!r.length) return;
  id("ledger-when").textContent = `until iteration ${grouped(v("iteration"))}`;
  const values = v("bits_shared_seed"), kinds = [
    ["values", values, "what was exchanged: coordinates, or codes of them; both ends derive the mask from the seed"],
    ["indices, packed", v("bits_packed") - values, "if indices had to travel: ⌈log₂ d⌉ bits each"],
    ["indices, 64 bits each", v("bits_reference") - values, "as in published curves; packed is not counted twice"],
    ["handshakes", v("overhead_bits"), "asking for an exchange, and declining"],
    ["moved by the transport", 8 * v("wire_bytes"), "in one process the vectors that changed hands"],
    ["busiest agent", v("bits_agent_max"), `most by one agent, ${view.accounting()} accounting`],
  ].filter(k => Number.isFinite(k[1]));
  const max = Math.max(1, ...kinds.map(k => k[1]));
  const per = v("grads_total") > 0 ? values / v("grads_total") : null;
  const cell = (tag, text, name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });
  const rows = kinds.map(([name, n, why]) => {
    const tr = document.createElement("tr"), m = Object.assign(document.createElement("meter"), { max, value: n });
    m.setAttribute("aria-label", `${name}: ${bits(n)}`);
    const td = cell("td", "", "bar-cell");
    td.append(m);
    tr.append(cell("td", name), td, cell("td", bits(n)), cell("td", why, "why"));
    return tr;
  });
  if (per !== null && per > 0) {
    const tr = document.createElement("tr");
    tr.append(cell("td", "a gradient"), cell("td", "", "bar-cell"), cell("td", bits(per)), cell("td", "values sent for each gradient computed", "why"));
    rows.push(tr);
  }
  table.replaceChildren(...rows);
}

for (const b of document.querySelectorAll("[data-copy]")) b.onclick = async () => {
  try {
    await navigator.clipboard.writeText(id(b.dataset.copy).textContent);
    b.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(id(b.dataset.copy)); // without clipboard permission, select the text instead
    b.textContent = "Selected";
  }
  setTimeout(() => { b.textContent = "Copy"; }, 1500);
};

// ---- control of the live run

function ask(box) {
  return new Promise(done => {
    box.returnValue = "";
    box.onclose = () => done(box.returnValue === "ok");
    box.showModal();
  });
}

async function token() {
  if (stored("token")) return stored("token");
  id("token").value = "";
  if (!await ask(id("token-box"))) return null;
  return id("token").value.trim();
}

async function steer(action) {
  if (action === "stop" && !await ask(id("stop-box"))) return;
  const t = await token();
  if (!t) return;
  const r = await fetch("/api/steer", { method: "POST", headers: { "Content-Type": "application/json", "X-Fspda-Token": t }, body: JSON.stringify({ run: live, action }) });
  if (r.status === 403) store("token", ""); else store("token", t);
  const words = { pause: "paused", resume: "resumed", checkpoint: "writing a checkpoint", stop: "stopping; a checkpoint will be written" };
  const text = r.ok ? words[action] : (await r.text()).trim();
  say(text);
  notice(r.ok && action === "pause" ? "" : text);
  if (r.ok) setTimeout(() => { if (id("notice").textContent === text) notice(""); }, 4000);
}
id("actions").onclick = e => { const action = e.target.dataset?.action; if (action) steer(action).catch(err => notice(String(err.message))); };

// The URL may carry the token in its fragment, which is not sent to servers.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) { store("token", given); history.replaceState(null, "", location.pathname + location.search); }
setTheme(stored("theme") ?? "");
loadList().then(() => { id("runs-box").open = !live && !matchMedia("(max-width: 620px)").matches; }).catch(e => notice(String(e.message)));
setInterval(() => { if (!picked.length) loadList().catch(() => {}); }, 3000);
setInterval(() => { if (picked.length && id("runs-box").open && list.some(i => i.status === "running")) loadList().catch(() => {}); }, 8000); // numbers of runs that go on

// For tests and debugging.
globalThis.fspda = { view, charts, agents, runs, pick, table };
