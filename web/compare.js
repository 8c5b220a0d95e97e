"use strict";
// Draws the panels of a comparison from the numbers in #data: curves can be switched off, axes changed, values read off.
const data = JSON.parse(document.getElementById("data").textContent);
const H = 300, L = 66, R = 14, T = 10, B = 44;
const off = new Set();
let raw = data.raw;

function el(name, attrs, parent, text) {
  const svg = ["svg", "path", "line", "text", "circle", "rect"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const k in attrs) e.setAttribute(k, attrs[k]);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.appendChild(e);
  return e;
}

// share reports whether a column holds accuracies, and isBits whether it counts bits.
const share = column => /^test_(acc|top5)/.test(column), isBits = column => /^bits_(shared_seed|packed|reference)$/.test(column);

// prefixed writes a number with an SI prefix.
function prefixed(v, unit) {
  let p = 0;
  while (Math.abs(v) >= 999.5 && p < 6) { v /= 1000; p++; }
  return +v.toPrecision(3) + (unit ? " " : "") + ["", "k", "M", "G", "T", "P", "E"][p] + unit;
}

function number(v, column) {
  if (v === null || v === undefined) return "–";
  if (share(column)) return (100 * v).toFixed(2) + " %";
  if (isBits(column) && Math.abs(v) >= 1000) return prefixed(v, "bit");
  if (column === "iteration") return String(Math.round(v)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
  return minus(v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5) ? v.toExponential(2).replace(/\.?0*e\+?/, "e") : String(+v.toPrecision(4)));
}

function minus(s) { return s.replaceAll("-", "−"); }

// tick writes a number beside an axis: no more digits than it needs.
function tick(v, column) {
  if (column === "iteration" && Math.abs(v) >= 1000) return prefixed(v, "");
  return share(column) ? +(100 * v).toFixed(2) + " %" : number(v, column);
}

function axis(values, log) {
  let lo = Math.min(...values), hi = Math.max(...values);
  if (log) { lo = Math.log10(lo); hi = Math.log10(hi); }
  if (hi - lo < 1e-9) { lo -= 0.5; hi += 0.5; }
  const pad = 0.04 * (hi - lo);
  lo -= log || lo !== 0 ? pad : 0;
  hi += pad;
  const raw = (hi - lo) / 5, p = 10 ** Math.floor(Math.log10(raw));
  let step = [1, 2, 5, 10].find(m => m * p >= raw) * p;
  const ticks = [];
  const few = Math.floor(hi) - Math.ceil(lo) < 2; // at most two powers of ten
  if (log && !few) step = Math.max(1, Math.round(step));
  if (log && few) {
    for (let e = Math.floor(lo); e <= hi; e++) for (const m of [1, 2, 5]) ticks.push(e + Math.log10(m));
  } else {
    for (let v = Math.ceil(lo / step) * step; v <= hi; v += step) ticks.push(v);
  }
  let marks = ticks.filter(v => v >= lo && v <= hi).map(v => log ? 10 ** v : +v.toPrecision(12));
  if (log && marks.length < 3) marks = axis([10 ** lo, 10 ** hi], false).ticks.filter(v => v >= 10 ** lo && v <= 10 ** hi);
  return {
    at: v => ((log ? Math.log10(v) : v) - lo) / (hi - lo),
    ticks: marks,
  };
}

// short names a column in a list of choices.
function short(column) {
  return isBits(column) ? "bits, " + column.slice(5).replaceAll("_", "-") : data.names[column];
}

// nearest returns the point of a curve whose x is nearest to x.
function nearest(points, x, log) {
  const far = q => log ? Math.abs(Math.log(q[0] / x)) : Math.abs(q[0] - x);
  return points.reduce((best, q) => far(q) < far(best) ? q : best, points[0]);
}

// spread writes a standard deviation.
function spread(v, column) {
  if (!v) return "";
  return " ± " + number(share(column) ? v : +v.toPrecision(2), column);
}

// unbroken keeps a number with its unit on one line, and a sign before it; between first and it a line may end.
const unbroken = (text, first = "") => text && first + text.trim().replaceAll(" ", "\u00a0");

// panel makes one picture with its controls, its readout and the table behind it, and returns what draws it anew.
function panel(p) {
  const fig = el("figure", {}, document.getElementById("panels")), title = (p.title ? p.title + ": " : "") + data.names[p.column];
  const cap = el("figcaption", {}, fig);
  el("b", {}, cap, title);
  const controls = el("span", {}, cap);
  const x = el("select", { "aria-label": "x axis" }, controls);
  for (const c of data.xs) el("option", { value: c }, x, short(c));
  x.value = p.x;
  const logs = { y: p.log, x: Object.fromEntries(data.xs.map(c => [c, isBits(c)])) }, boxes = {}; // each quantity of the x axis has a scale of its own
  for (const k of ["x", "y"]) {
    const label = el("label", {}, controls);
    boxes[k] = el("input", { type: "checkbox" }, label);
    label.append("log " + k);
  }
  const plot = el("div", { class: "plot", tabindex: 0, role: "application", "aria-roledescription": "chart" }, fig);
  const readout = el("div", { class: "readout" }, fig), details = el("details", {}, fig);
  el("summary", {}, details, "Table");
  const table = el("table", {}, el("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Table: " + title }, details));
  let at = null, points = [], xs = [], scale = null, words = ""; // at: the x that is read; null: the end of each curve

  function draw() {
    boxes.x.checked = logs.x[x.value];
    boxes.y.checked = logs.y;
    const logx = logs.x[x.value], logy = logs.y, W = Math.max(260, plot.clientWidth);
    plot.replaceChildren();
    const svg = el("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" }, plot);
    // pick returns the points [x, y, standard deviation] that the axes can show
    const pick = (columns, deviations) => {
      const xs = columns[x.value] || [], ys = columns[p.column] || [], out = [];
      xs.forEach((v, r) => {
        const w = ys[r];
        if (v === null || w === null || w === undefined || (logx && v <= 0) || (logy && w <= 0)) return;
        out.push([v, w, deviations && deviations[p.column] ? deviations[p.column][r] : null]);
      });
      return out;
    };
    points = data.curves.map((c, i) => ({ c, i })).filter(o => !off.has(o.i) && (!p.group || o.c.group === p.group)).map(({ c, i }) => ({
      name: c.name, i, out: pick(c.columns, c.spread), runs: raw ? (c.runs || []).map(r => pick(r)) : [],
    })).filter(o => o.out.length);
    const edges = q => q[2] === null ? [q] : [q, [q[0], q[1] + q[2]], ...(logy ? [] : [[q[0], q[1] - q[2]]])];
    const all = points.flatMap(o => o.out.flatMap(edges).concat(...o.runs));
    xs = [...new Set(points.flatMap(o => o.out.map(q => q[0])))].sort((a, b) => a - b);
    svg.setAttribute("aria-label", `${title} against ${data.names[x.value]}. ` + (points.map(o => `${o.name} ends at ${number(o.out.at(-1)[1], p.column)}.`).join(" ") || "Not measured."));
    if (!details.open) table.replaceChildren(); else fill();
    if (!all.length) {
      el("text", { x: W / 2, y: H / 2, "text-anchor": "middle", class: "v-note" }, svg, "not measured");
      scale = null;
      read();
      return;
    }
    const ax = axis(all.map(q => q[0]), logx), ay = axis(all.map(q => q[1]), logy);
    const px = v => L + ax.at(v) * (W - L - R), py = v => H - B - ay.at(v) * (H - T - B);
    for (const t of ay.ticks) {
      el("line", { x1: L, x2: W - R, y1: py(t), y2: py(t), class: "v-grid" }, svg);
      el("text", { x: L - 5, y: py(t) + 4, "text-anchor": "end", class: "v-tick" }, svg, tick(t, p.column));
    }
    let taken = 0;
    for (const t of ax.ticks) {
      el("line", { x1: px(t), x2: px(t), y1: T, y2: H - B, class: "v-grid" }, svg);
      if (px(t) - taken < 58) continue;
      taken = px(t);
      el("text", { x: Math.min(px(t), W - 26), y: H - B + 15, "text-anchor": "middle", class: "v-tick" }, svg, tick(t, x.value));
    }
    el("text", { x: (L + W - R) / 2, y: H - 8, "text-anchor": "middle", class: "v-label" }, svg, W < 380 ? short(x.value) : data.names[x.value]);
    const path = list => list.map((q, k) => (k ? "L" : "M") + q[0].toFixed(1) + " " + q[1].toFixed(1)).join("");
    const line = list => path(list.map(q => [px(q[0]), py(q[1])]));
    for (const o of points.slice().reverse()) {
      const style = data.curves[o.i].style, wide = o.out.filter(q => q[2] !== null);
      if (wide.length > 1) {
        const low = q => logy && q[1] - q[2] <= 0 ? H - B : Math.min(H - B, py(q[1] - q[2]));
        el("path", { class: style.replace("c", "b"), d: path(wide.map(q => [px(q[0]), py(q[1] + q[2])]).concat(wide.slice().reverse().map(q => [px(q[0]), low(q)]))) + "Z" }, svg);
      }
      for (const r of o.runs) el("path", { class: style.replace("c", "r"), d: line(r) }, svg);
      el("path", { class: style, d: line(o.out) }, svg);
    }
    scale = { px, py, svg, from: px(xs[0]), to: px(xs.at(-1)) };
    read();
  }

  // read shows the crosshair at an x, and of each curve the values of its evaluation nearest to it, with its own x.
  function read() {
    const logx = logs.x[x.value], values = points.map(o => ({ o, q: at === null ? o.out.at(-1) : nearest(o.out, at, logx) }));
    if (scale) {
      scale.svg.querySelectorAll(".cross").forEach(e => e.remove());
      if (at !== null) {
        el("line", { x1: scale.px(at), x2: scale.px(at), y1: T, y2: H - B, class: "cross v-axis", "stroke-dasharray": "3 3" }, scale.svg);
        for (const { o, q } of values) el("circle", { cx: scale.px(q[0]), cy: scale.py(q[1]), r: 4, class: "cross " + data.curves[o.i].style.replace("c", "o") }, scale.svg);
      }
    }
    const list = el("ul", {});
    for (const { o, q } of values) {
      const item = el("li", {}, list);
      key(o.i, item);
      el("span", { class: "name", title: o.name }, item, o.name);
      el("span", { class: "own" }, item, number(q[0], x.value));
      el("span", { class: "value" }, item, number(q[1], p.column) + spread(q[2], p.column));
    }
    readout.replaceChildren(list);
    words = values.map(({ o, q }) => `${o.name} ${number(q[1], p.column)}${spread(q[2], p.column)} at ${number(q[0], x.value)}`).join(", ");
    plot.setAttribute("aria-label", `${title} against ${data.names[x.value]}: ${words || "not measured"}. Arrow keys read values.`);
  }

  // fill writes the table behind the picture: of each curve at most 40 evaluations, spread evenly.
  function fill() {
    table.replaceChildren();
    const head = el("tr", {}, el("thead", {}, table)), body = el("tbody", {}, table);
    for (const t of ["run", short(x.value), data.names[p.column]]) el("th", { scope: "col" }, head, t);
    for (const o of points) {
      const n = Math.min(40, o.out.length);
      for (let k = 0; k < n; k++) {
        const q = o.out[n < 2 ? k : Math.round(k * (o.out.length - 1) / (n - 1))], row = el("tr", {}, body);
        el("th", { scope: "row" }, row, o.name);
        el("td", {}, row, number(q[0], x.value));
        el("td", {}, row, number(q[1], p.column) + spread(q[2], p.column));
      }
    }
  }

  plot.onpointermove = e => {
    if (!scale) return;
    const left = e.clientX - plot.getBoundingClientRect().left;
    at = xs.reduce((best, v) => Math.abs(scale.px(v) - left) < Math.abs(scale.px(best) - left) ? v : best, xs[0]);
    read();
  };
  plot.onpointerleave = () => { at = null; read(); };
  plot.onkeydown = e => {
    if (!xs.length || e.ctrlKey || e.metaKey || e.altKey) return;
    const now = at === null ? xs.length - 1 : xs.indexOf(at), last = xs.length - 1;
    const to = { ArrowLeft: at === null ? last : now - 1, ArrowRight: now + 1, Home: 0, End: last }[e.key];
    if (to === undefined && e.key !== "Escape") return;
    e.preventDefault();
    at = to === undefined ? null : xs[Math.max(0, Math.min(last, to))];
    read();
    document.getElementById("said").textContent = words;
  };
  plot.onblur = () => { at = null; read(); };
  details.ontoggle = fill;
  x.onchange = () => { at = null; draw(); };
  boxes.x.onchange = () => { logs.x[x.value] = boxes.x.checked; draw(); };
  boxes.y.onchange = () => { logs.y = boxes.y.checked; draw(); };
  let width = 0;
  new ResizeObserver(() => { if (plot.clientWidth !== width) { width = plot.clientWidth; draw(); } }).observe(plot);
  return draw;
}

// key draws the line of a curve as it is in the pictures.
function key(i, parent) {
  const svg = el("svg", { viewBox: "0 0 26 8", "aria-hidden": "true", class: "key" }, parent);
  el("line", { x1: 1, x2: 25, y1: 4, y2: 4, class: data.curves[i].style }, svg);
}

const draws = data.panels.map(panel);
data.curves.forEach((c, i) => {
  const label = el("label", {}, document.getElementById("series"));
  const box = el("input", { type: "checkbox" }, label);
  box.checked = true;
  key(i, label);
  label.append(" " + c.name);
  if (c.run) label.title = c.run;
  box.onchange = () => { box.checked ? off.delete(i) : off.add(i); draws.forEach(d => d()); };
});
if (data.curves.some(c => c.runs)) {
  const label = el("label", {}, document.getElementById("series"));
  const box = el("input", { type: "checkbox" }, label);
  box.checked = raw;
  label.append(" each seed");
  box.onchange = () => { raw = box.checked; draws.forEach(d => d()); };
}
const names = ["run", ...data.table.map(c => data.names[c])], results = document.getElementById("table");
const head = el("tr", { role: "row" }, el("thead", { role: "rowgroup" }, results)), body = el("tbody", { role: "rowgroup" }, results);
for (const t of names) el("th", { scope: "col", role: "columnheader" }, head, t);
data.curves.forEach((c, i) => {
  const row = el("tr", { role: "row" }, body), name = el("th", { scope: "row", role: "rowheader" }, row);
  key(i, name);
  name.append(c.name);
  if (c.run) el("span", { class: "soft" }, name, c.run);
  data.table.forEach((k, n) => el("td", { role: "cell", "data-label": names[n + 1] }, row, unbroken(number((c.columns[k] || []).at(-1), k)) + unbroken(spread(c.spread && (c.spread[k] || []).at(-1), k), " ")));
});
// A table that is wider than its place shows each row as a list of names and values.
const fit = table => {
  table.classList.remove("stacked");
  table.classList.toggle("stacked", table.offsetWidth > table.parentElement.clientWidth);
};
const fitAll = () => document.querySelectorAll(".cards").forEach(fit);
addEventListener("resize", fitAll);
addEventListener("beforeprint", fitAll);
fitAll();
