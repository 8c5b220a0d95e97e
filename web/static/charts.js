// The charts: curves of the selected runs against iterations, time or bits. Whether an axis is logarithmic is fixed until the reader changes it.
import { significant, percent, bits, grouped, duration, si, short, tickPlain, tickPercent, tickTime, dash } from "./format.js";
import { smoothed } from "./runs.js";
import { asSVG, asPNG, asCSV, download } from "./export.js";

const plain = { tick: tickPlain, value: (v, digits = 4) => significant(v, digits) };
const share = { tick: tickPercent, value: v => percent(v) };

const definitions = [
  { id: "training_loss", title: "Training loss", y: "loss on the training data", log: true, ...plain,
    kinds: [["train_loss_avg", "mean model"], ["train_loss_worst", "worst agent"]] },
  { id: "test_accuracy", title: "Test accuracy", y: "correct on the test set", log: false, ...share,
    kinds: [["test_acc_avg", "mean model"], ["test_acc_min", "worst agent"], ["test_acc_mean", "mean of agents"]], band: ["test_acc_min", "test_acc_max"] },
  { id: "consensus_error", title: "Consensus error", y: "squared distance to mean", log: true, ...plain,
    kinds: [["consensus", "sum over agents"], ["consensus_max", "farthest agent"]] },
  { id: "gradient_norm", title: "Squared gradient norm", y: "of the whole training loss", log: true, ...plain,
    kinds: [["grad_sq_avg", "mean model"], ["grad_sq_worst", "worst agent"]] },
  { id: "validation_loss", title: "Validation loss", y: "nats a token of the validation text", log: true, text: true, ...plain,
    kinds: [["test_loss_avg", "mean model"], ["test_loss_mean", "mean of agents"]] },
  { id: "perplexity", title: "Perplexity", y: "of the validation text", log: true, text: true, ...plain, kinds: [["perplexity", "mean model"]] },
  { id: "bits_per_byte", title: "Bits per byte", y: "of the validation text", log: false, text: true, ...plain, kinds: [["bits_per_byte", "mean model"]] },
];

export const axes = {
  iteration: { name: "iteration", label: () => "iteration", tick: v => v >= 1000 ? si(v, "", 4).replace(" ", "") : significant(v, 4), value: v => "iteration " + grouped(v) },
  wall_s: { name: "time", label: () => "wall time", tick: tickTime, value: duration,
    steps: [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000] },
  bits_total: { name: "bits", label: view => `bits sent by all agents, ${view.accounting()} accounting`, tick: v => bits(v), value: bits },
  virtual_time: { name: "virtual time", label: () => "virtual time of the last agent", tick: v => significant(v, 4), value: v => significant(v, 4) },
};

const kindColours = ["blue", "orange", "green"];
export const runColours = ["blue", "orange", "green", "purple", "wine", "olive", "slate", "ink"];
const dashes = [[], [7, 3], [2, 2.5]];
const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const translucent = (hex, a) => hex + Math.round(255 * a).toString(16).padStart(2, "0");

// logTicks returns a tick for each digit of each decade, or for each of many decades; logLabels returns those that fit with a label.
function logTicks(u, axis, min, max) {
  const ticks = [], digits = max / min > 1e7 ? 1 : 9;
  for (let e = Math.floor(Math.log10(min)) - 1; e <= Math.log10(max); e++) for (let m = 1; m <= digits; m++) {
    const v = Number(`${m}e${e}`);
    if (v >= min && v <= max) ticks.push(v);
  }
  if (ticks.length < 3) { // round numbers, as on a linear axis
    const p = 10 ** Math.floor(Math.log10((max - min) / 4)), step = [1, 2, 5, 10].find(m => m * p >= (max - min) / 4) * p;
    return Array.from({ length: 8 }, (_, k) => (Math.ceil(min / step) + k) * step).filter(v => v <= max);
  }
  return ticks;
}
function logLabels(u, ticks) {
  const decades = Math.log10(ticks.at(-1) / ticks[0]), digit = v => Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9));
  const powers = ticks.filter(v => digit(v) === 1).length, every = Math.max(1, Math.ceil(powers / 7));
  return ticks.map(v => {
    const d = digit(v);
    if (powers >= 3) return d === 1 && Math.round(Math.log10(v)) % every === 0 ? v : null;
    return decades < 0.5 || d === 1 || d === 2 || d === 5 ? v : null;
  });
}

// nearest returns the index of the point of curve k that is nearest to x, looking from index idx; null if it has none.
function nearest(data, k, idx, x) {
  const xs = data[0], ys = data[k], known = i => ys[i] !== null && ys[i] !== undefined;
  if (idx === null || known(idx)) return idx;
  let a = idx, b = idx;
  while (a >= 0 && !known(a)) a--;
  while (b < xs.length && !known(b)) b++;
  if (a < 0) return b < xs.length ? b : null;
  return b < xs.length && xs[b] - x < x - xs[a] ? b : a;
}

const maxNumbers = 40; // evaluations of a run in the table behind a chart

const make = (name, attrs = {}, ...children) => {
  const e = document.createElement(name);
  for (const k in attrs) k in e && k !== "role" ? (e[k] = attrs[k]) : e.setAttribute(k, attrs[k]);
  e.append(...children);
  return e;
};

class Chart {
  constructor(def, view) {
    this.def = def;
    this.view = view;
    this.isLog = def.log;
    this.off = new Set(def.kinds.slice(1).map(k => k[0])); // for several runs only the first kind is shown
    this.offSingle = new Set();
    this.shape = "";
    this.legend = make("div", { className: "legend" });
    this.readout = make("div", { className: "readout" });
    this.plot = make("div", { className: "plot", tabIndex: 0, role: "application", "aria-roledescription": "chart" });
    this.logButton = make("button", { type: "button", textContent: "log y", title: "logarithmic y axis", onclick: () => { this.isLog = !this.isLog; this.update(); } });
    this.tableButton = make("button", { type: "button", textContent: "Table", title: "the numbers", "aria-label": `Table of ${def.title}`, "aria-expanded": "false", onclick: () => { this.numbers.hidden = !this.numbers.hidden; this.tableButton.setAttribute("aria-expanded", String(!this.numbers.hidden)); this.fillNumbers(); } });
    this.numbers = make("div", { className: "scroll numbers", hidden: true, tabIndex: 0, role: "region", "aria-label": `Table: ${def.title}` });
    const save = (name, how) => make("button", { type: "button", textContent: name, title: `download as ${name}`, "aria-label": `Download ${def.title} as ${name}`, onclick: () => how() });
    this.node = make("figure", { className: "chart", id: def.id },
      make("figcaption", {}, make("b", { textContent: def.title }), make("span", { className: "tools" }, this.logButton, this.tableButton,
        save("SVG", () => download(`${def.id}.svg`, "image/svg+xml", asSVG(this.picture()))),
        save("PNG", () => asPNG(this.picture(), this.u).then(b => download(`${def.id}.png`, "image/png", b))),
        save("CSV", () => download(`${def.id}.csv`, "text/csv", asCSV(this.view.runs(), this.view.x, this.columns()))))),
      this.legend, this.plot, this.readout, this.numbers);
    this.plot.addEventListener("keydown", e => this.key(e));
    new ResizeObserver(() => this.resize()).observe(this.plot);
  }

  several() { return this.view.shown().length > 1; }
  hidden() { return this.several() ? this.off : this.offSingle; }
  columns() { return [...new Set([...this.def.kinds.map(k => k[0]), ...(this.def.band ?? [])])]; }

  // lines returns the curves to draw: one for each run and kind. Their names drop what is common.
  lines() {
    const runs = this.view.shown(), several = runs.length > 1, kinds = this.kinds(), lines = [];
    for (const run of runs) {
      for (const [column, kind, k] of kinds) {
        if (!run.columns[column]) continue;
        const c = colour(several ? this.view.colourOf(run) : kindColours[k]);
        const name = !several ? kind : kinds.length > 1 ? `${this.view.nameOf(run)}, ${kind}` : this.view.nameOf(run);
        lines.push({ run, column, name, colour: c, dash: dashes[k], spread: run.spread?.[column] });
      }
    }
    return lines;
  }

  // kinds returns the kinds of curves that are switched on, with their numbers.
  kinds() { return this.def.kinds.map((kind, k) => [...kind, k]).filter(([column]) => !this.hidden().has(column)); }

  // heading names the chart, and the kind of its curves if all are of one and their names do not say so.
  heading() {
    const kinds = this.kinds();
    return this.several() && kinds.length === 1 ? `${this.def.title}, ${kinds[0][1]}` : this.def.title;
  }

  // points returns the points of columns that the axes can show.
  points(run, columns) {
    const xs = run.columns[this.view.x] ?? [], logx = this.view.logx, log = this.isLog, at = [], rows = [];
    let last = -Infinity;
    for (let r = 0; r < run.length; r++) {
      const x = xs[r];
      if (x === null || x === undefined || x <= last || logx && x <= 0) continue;
      last = x;
      at.push(x);
      rows.push(r);
    }
    return [at, ...columns.map(c => rows.map(r => { const v = c?.[r]; return v === null || v === undefined || log && v <= 0 ? null : v; }))];
  }

  update() {
    if (this.def.text) { // of runs of text only
      this.node.hidden = !this.view.shown().some(r => r.has("perplexity"));
      if (this.node.hidden) return;
    }
    const lines = this.lines();
    this.logButton.setAttribute("aria-pressed", this.isLog);
    this.drawLegend();
    this.node.classList.toggle("several", this.several());
    const { data, series, bands } = this.assemble(lines);
    const empty = !series.length || !data.slice(1).some(ys => ys.some(v => v !== null));
    const shape = JSON.stringify([this.isLog, this.view.x, this.view.logx, series.map(s => [s.stroke, s.dash, s.name]), bands, data[0]?.length > 40, empty && this.why(), colour("ink")]);
    this.lines_ = lines;
    this.series = series;
    if (shape !== this.shape || !this.u) this.rebuild(shape, data, series, bands, empty);
    else this.u.setData(data, false);
    if (this.u) this.u.setScale("x", this.xRange(data[0]));
    this.show(this.u?.cursor.idx);
    if (!this.numbers.hidden) this.fillNumbers();
  }

  // assemble merges the x values of all lines, as uPlot requires. A band is two series, its upper and its lower edge.
  assemble(lines) {
    const tables = [], series = [], bands = [], smooth = this.view.smooth;
    const band = (fill, lower) => {
      const edge = { stroke: "transparent", width: 0, points: { show: false }, quiet: true, name: "band" };
      series.push(edge, { ...edge, auto: lower });
      bands.push({ series: [series.length - 1, series.length], fill: translucent(fill, 0.16) });
    };
    if (!this.several() && lines.length && this.def.band && !smooth && !lines[0].spread) {
      tables.push(this.points(lines[0].run, this.def.band.toReversed().map(c => lines[0].run.columns[c])));
      band(colour("blue"), true);
    }
    for (const l of lines) {
      const mean = l.run.columns[l.column], s = smooth ? null : l.spread, low = mean.map((v, r) => s && v !== null ? v - s[r] : null);
      const [xs, ys, ...edges] = this.points(l.run, s ? [mean, mean.map((v, r) => v === null ? null : v + s[r]), this.isLog ? low.map((v, r) => v > 0 ? v : mean[r] * 1e-9) : low] : [mean]);
      if (s) {
        tables.push([xs, ...edges, ys]);
        band(l.colour, !this.isLog);
      } else if (smooth) {
        tables.push([xs, ys, smoothed(ys, smooth)]);
        series.push({ ...l, stroke: translucent(l.colour, 0.25), width: 1.2, quiet: true });
      } else tables.push([xs, ys]);
      series.push({ ...l, stroke: l.colour, width: 2, read: true, deviation: Boolean(s) });
    }
    return { data: tables.length === 1 ? tables[0] : tables.length ? uPlot.join(tables) : [[]], series, bands };
  }

  xRange(xs) {
    if (this.view.zoom) return { min: this.view.zoom[0], max: this.view.zoom[1] };
    if (!xs?.length) return { min: this.view.logx ? 1 : 0, max: 10 };
    let lo = xs[0], hi = xs.at(-1);
    if (lo === hi) return this.view.logx ? { min: lo / 2, max: hi * 2 } : { min: lo - 1, max: hi + 1 };
    return { min: lo, max: hi };
  }

  // why says why the chart is empty.
  why() {
    const runs = this.view.shown(), measured = runs.some(r => this.columns().some(c => r.columns[c]?.some(v => v !== null)));
    const next = this.view.next();
    if (!runs.some(r => r.length)) return next || "no evaluation yet";
    return [measured ? "0 at every evaluation" : "not measured", measured ? next : ""].filter(Boolean).join("\n");
  }

  rebuild(shape, data, series, bands, empty) {
    this.u?.destroy();
    this.u = null;
    this.shape = shape;
    this.plot.replaceChildren();
    if (empty) {
      const why = this.why();
      this.plot.append(make("div", { className: "empty", textContent: why }));
      this.plot.setAttribute("aria-label", `${this.def.title}: ${why}`);
      return;
    }
    const ink = colour("soft"), grid = colour("faint"), x = axes[this.view.x];
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 20, labelGap: 0 };
    const step = splits => { const s = splits.filter(v => v !== null); return s.length > 1 ? s[1] - s[0] : 0; };
    const width = Math.max(200, this.plot.clientWidth), height = this.plot.clientHeight;
    this.u = new uPlot({
      width, height, series: [{}, ...series.map(s => ({ label: s.name, stroke: s.stroke, width: s.width, dash: s.dash, spanGaps: true, auto: s.auto ?? true,
        points: s.points ?? { show: data[0].length <= 40 && !s.quiet, size: 5, fill: s.stroke, stroke: s.stroke } }))],
      bands: bands, legend: { show: false }, padding: [8, 26, 0, 0],
      scales: { x: { time: false, distr: this.view.logx ? 3 : 1, auto: false, range: (u, lo, hi) => [lo, hi] },
        y: { distr: this.isLog ? 3 : 1, range: (u, lo, hi) => this.yRange(lo, hi) } },
      axes: [
        { ...axis, label: x.label(this.view), size: 36, space: 74, values: (u, s) => s.map(v => v === null ? "" : x.tick(v)), ...(this.view.logx ? { splits: logTicks, filter: logLabels } : x.steps ? { incrs: x.steps } : {}) },
        { ...axis, label: this.def.y, size: (u, words) => Math.max(52, 16 + 7 * Math.max(0, ...(words ?? []).map(w => w.length))), space: 34, values: (u, s) => s.map(v => v === null ? "" : this.def.tick(v, this.isLog ? 0 : step(s))), ...(this.isLog ? { splits: logTicks, filter: logLabels } : {}) },
      ],
      cursor: { sync: { key: "fspda", setSeries: false }, drag: { x: true, y: false, uni: 20 },
        dataIdx: (u, k, idx, x) => k ? nearest(u.data, k, idx, x) : idx, points: { size: 7 },
        bind: { dblclick: () => () => { this.view.setZoom(null); return null; } } },
      hooks: {
        setCursor: [u => this.show(u.cursor.idx)],
        setSelect: [u => { if (u.select.width > 4) this.view.setZoom([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]); }],
      },
    }, data, this.plot);
  }

  yRange(lo, hi) {
    if (lo === null || hi === null) return this.isLog ? [0.1, 1] : [0, 1];
    if (this.isLog) {
      if (lo <= 0) return [0.1, 1];
      const f = hi / lo > 1 + 1e-6 ? (hi / lo) ** 0.04 : 2;
      return [lo / f, hi * f];
    }
    if (hi - lo <= 1e-9 * Math.max(Math.abs(lo), Math.abs(hi))) { const d = Math.abs(lo) / 10 || 1; return [lo - d, hi + d]; }
    const pad = 0.04 * (hi - lo);
    return [lo === 0 ? 0 : lo - pad, hi + pad];
  }

  resize() {
    if (this.u && this.plot.clientWidth > 0) this.u.setSize({ width: this.plot.clientWidth, height: this.plot.clientHeight });
  }

  drawLegend() {
    const several = this.several(), hidden = this.hidden();
    const state = JSON.stringify([several, [...hidden], colour("ink")]);
    if (state === this.legendState) return;
    this.legendState = state;
    this.legend.replaceChildren(...this.def.kinds.map(([column, name], k) => {
      const b = make("button", { type: "button", "aria-pressed": !hidden.has(column), onclick: () => {
        hidden.has(column) ? hidden.delete(column) : hidden.add(column);
        this.update();
      } });
      const stroke = colour(several ? "soft" : kindColours[k]);
      b.innerHTML = `<svg viewBox="0 0 22 8" aria-hidden="true"><line x1="0" x2="22" y1="4" y2="4" stroke="${stroke}" stroke-width="2" stroke-dasharray="${dashes[k].join(" ")}"/></svg>`;
      b.append(name);
      return b;
    }));
  }

  // show writes the values at the cursor, or the latest: of each curve those of its own evaluation, whose x it names where
  // it is not that of the cursor. For several runs it is also the legend.
  show(idx) {
    const u = this.u, x = axes[this.view.x];
    if (!u) { this.readout.replaceChildren(); return; }
    const xs = u.data[0], at = idx ?? xs.length - 1, values = [];
    this.series.forEach((s, i) => {
      if (!s.read) return;
      const ys = u.data[i + 1], k = u.cursor.idxs?.[i + 1] ?? nearest(u.data, i + 1, at, xs[at]);
      if (k === null || ys[k] === null || ys[k] === undefined) return;
      const upper = s.deviation ? u.data[i - 1][k] : null;
      values.push({ name: s.name, colour: s.colour, x: xs[k], text: this.def.value(ys[k]) + (upper > ys[k] ? ` ± ${this.def.value(upper - ys[k], 2)}` : "") });
    });
    const own = idx === null || idx === undefined ? values[0]?.x : xs[at], where = own === undefined ? dash : x.value(own);
    const apart = v => v.x === own ? "" : x.value(v.x);
    this.words = `${where}: ${values.map(v => `${v.name} ${v.text}${apart(v) && ` at ${apart(v)}`}`).join(" · ")}`;
    this.readout.replaceChildren(...this.several() ? this.table(where, values, apart) : [this.words]);
    this.plot.setAttribute("aria-label", `${this.heading()} against ${x.label(this.view)}, ${values.length} curves. ${this.words}. Arrow keys read values, plus and minus zoom, Escape shows all.`);
  }

  // table lists the values of several runs. If all are of the same kind, the heading names it.
  table(where, values, apart) {
    const kinds = this.kinds(), alone = kinds.length === 1 ? `, ${kinds[0][1]}` : "";
    return [make("div", { textContent: where + alone }), make("ul", {}, ...values.map(v => {
      const swatch = make("span", { className: "swatch" });
      swatch.style.background = v.colour;
      return make("li", {}, swatch, make("span", { className: "name", title: v.name, textContent: short(v.name, 40) }), make("span", { className: "own", textContent: apart(v).replace(/^iteration/, "at") }), make("span", { className: "value", textContent: v.text }));
    }))];
  }

  // fillNumbers writes the table behind the chart: of each run at most maxNumbers evaluations, spread evenly.
  fillNumbers() {
    if (this.numbers.hidden) return;
    const several = this.several(), columns = this.columns(), x = axes[this.view.x], names = Object.fromEntries(this.def.kinds);
    const title = c => names[c] ?? (c === this.def.band?.[1] ? "best agent" : c), cell = (tag, textContent, more = {}) => make(tag, { textContent, ...more });
    const head = make("tr", {}, ...[...several ? ["run"] : [], x.name, ...columns.map(title)].map(t => cell("th", t, { scope: "col" })));
    const body = this.view.shown().flatMap(r => {
      const n = Math.min(r.length, maxNumbers), rows = Array.from({ length: n }, (_, i) => n < 2 ? i : Math.round(i * (r.length - 1) / (n - 1)));
      return rows.map(k => make("tr", {}, ...several ? [cell("th", this.view.nameOf(r), { scope: "row" })] : [], cell(several ? "td" : "th", x.value(r.columns[this.view.x]?.[k]), several ? {} : { scope: "row" }),
        ...columns.map(c => { const v = r.columns[c]?.[k], d = r.spread?.[c]?.[k]; return cell("td", v === null || v === undefined ? dash : this.def.value(v) + (d ? ` ± ${this.def.value(d, 2)}` : "")); })));
    });
    this.numbers.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
  }

  key(e) {
    const u = this.u;
    if (!u || e.ctrlKey || e.metaKey || e.altKey) return;
    const xs = u.data[0], { min, max } = u.scales.x, inside = xs.map((x, i) => i).filter(i => xs[i] >= min && xs[i] <= max);
    const now = u.cursor.idx ?? inside.at(-1) ?? 0;
    const move = i => {
      i = Math.min(inside.at(-1) ?? 0, Math.max(inside[0] ?? 0, i));
      u.setCursor({ left: u.valToPos(xs[i], "x"), top: u.over.clientHeight / 2 });
      this.view.say(this.words);
    };
    const jump = Math.max(1, Math.round(inside.length / 20));
    const keys = {
      ArrowLeft: () => move(now - (e.shiftKey ? jump : 1)), ArrowRight: () => move(now + (e.shiftKey ? jump : 1)),
      Home: () => move(inside[0]), End: () => move(inside.at(-1)), Escape: () => this.view.setZoom(null),
      "+": () => this.zoom(xs[now], 0.6), "-": () => this.zoom(xs[now], 1 / 0.6),
    };
    if (!keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  }

  zoom(about, factor) {
    const { min, max } = this.u.scales.x, logx = this.view.logx;
    const f = logx ? Math.log : v => v, g = logx ? Math.exp : v => v;
    const all = this.xRange_();
    const lo = g(f(about) - (f(about) - f(min)) * factor), hi = g(f(about) + (f(max) - f(about)) * factor);
    this.view.setZoom(lo <= all.min && hi >= all.max ? null : [Math.max(lo, all.min), Math.min(hi, all.max)]);
  }

  // xRange_ is the full x range, independent of the zoom.
  xRange_() {
    const xs = this.u.data[0];
    return { min: xs[0], max: xs.at(-1) };
  }

  // picture returns the data for exporting the chart.
  picture() {
    const u = this.u;
    const { data, series, bands } = this.assemble(this.lines_ ?? []);
    const axis = k => u ? (u.axes[k]._splits ?? []).map((v, i) => [v, u.axes[k]._values?.[i] ?? ""]).filter(([v]) => v !== null) : [];
    return {
      title: this.heading(), xLabel: axes[this.view.x].label(this.view), yLabel: this.def.y, logx: this.view.logx, logy: this.isLog,
      x: u?.scales.x ?? { min: 0, max: 1 }, y: u?.scales.y ?? { min: 0, max: 1 }, xTicks: axis(0), yTicks: axis(1), xs: data[0],
      series: series.map((s, k) => ({ ...s, ys: data[k + 1] })).filter(s => s.name !== "band"),
      bands: bands.map(b => ({ upper: data[b.series[0]], lower: data[b.series[1]], fill: b.fill })),
      ink: colour("ink"), soft: colour("soft"), line: colour("line"), paper: colour("paper"),
    };
  }
}

// makeCharts creates the charts in a node; view holds their settings.
export function makeCharts(node, view) {
  const charts = definitions.map(d => new Chart(d, view));
  node.append(...charts.map(c => c.node));
  return charts;
}
