"use strict";
// Draws the panels of a comparison from the numbers in #data: curves can be switched off, axes changed, values read off.
const data = JSON.parse(document.getElementById("data").textContent);
const W = 480, H = 300, L = 66, R = 14, T = 10, B = 44;
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

function number(v, column) {
  if (v === null || v === undefined) return "–";
  if (column.startsWith("test_")) return (100 * v).toFixed(2) + " %";
  const big = Math.abs(v) >= 1000;
  if (big && (column.startsWith("bits") || column === "iteration")) {
    let p = 0;
    while (Math.abs(v) >= 999.5 && p < 6) { v /= 1000; p++; }
    return +v.toPrecision(3) + " " + ["", "k", "M", "G", "T", "P", "E"][p] + (column.startsWith("bits") ? "bit" : "");
  }
  return minus(v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5) ? v.toExponential(2).replace(/\.?0*e\+?/, "e") : String(+v.toPrecision(4)));
}

function minus(s) { return s.replaceAll("-", "−"); }

// tick writes a number beside an axis: no more digits than it needs.
function tick(v, column) {
  return column.startsWith("test_") ? +(100 * v).toFixed(2) + " %" : number(v, column);
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
  if (log && hi - lo > 2) step = Math.max(1, Math.round(step));
  if (log && hi - lo <= 2) {
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

// panel makes one picture with its controls, and returns what draws it anew.
function panel(p) {
  const fig = el("figure", {}, document.getElementById("panels"));
  const cap = el("figcaption", {}, fig);
  el("b", {}, cap, (p.title ? p.title + ": " : "") + data.names[p.column]);
  const controls = el("span", {}, cap);
  const x = el("select", { "aria-label": "x axis" }, controls);
  for (const c of data.xs) el("option", { value: c }, x, data.names[c]);
  x.value = p.x;
  const logs = {};
  for (const k of ["x", "y"]) {
    const label = el("label", {}, controls);
    logs[k] = el("input", { type: "checkbox" }, label);
    label.append("log " + k);
  }
  logs.y.checked = p.log;
  logs.x.checked = p.x.startsWith("bits");
  const tip = el("div", { class: "tip" }, fig);
  let svg = null;
  function draw() {
    if (svg) svg.remove();
    svg = el("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": data.names[p.column] }, fig);
    const curves = data.curves.map((c, i) => ({ c, i })).filter(o => !off.has(o.i) && (!p.group || o.c.group === p.group));
    // pick returns the points [x, y, standard deviation] that the axes can show
    const pick = (columns, spread) => {
      const xs = columns[x.value] || [], ys = columns[p.column] || [], out = [];
      xs.forEach((v, r) => {
        const w = ys[r];
        if (v === null || w === null || w === undefined || (logs.x.checked && v <= 0) || (logs.y.checked && w <= 0)) return;
        out.push([v, w, spread && spread[p.column] ? spread[p.column][r] : null]);
      });
      return out;
    };
    const points = curves.map(({ c, i }) => ({
      name: c.name, i, out: pick(c.columns, c.spread), runs: raw ? (c.runs || []).map(r => pick(r)) : [],
    })).filter(o => o.out.length);
    const edges = q => q[2] === null ? [q] : [q, [q[0], q[1] + q[2]], ...(logs.y.checked ? [] : [[q[0], q[1] - q[2]]])];
    const all = points.flatMap(o => o.out.flatMap(edges).concat(...o.runs));
    if (!all.length) { el("text", { x: W / 2, y: H / 2, "text-anchor": "middle", class: "v-note" }, svg, "nothing to show"); return; }
    const ax = axis(all.map(q => q[0]), logs.x.checked), ay = axis(all.map(q => q[1]), logs.y.checked);
    const px = v => L + ax.at(v) * (W - L - R), py = v => H - B - ay.at(v) * (H - T - B);
    for (const t of ay.ticks) {
      el("line", { x1: L, x2: W - R, y1: py(t), y2: py(t), class: "v-grid" }, svg);
      el("text", { x: L - 5, y: py(t) + 4, "text-anchor": "end", class: "v-tick" }, svg, tick(t, p.column));
    }
    let taken = 0;
    for (const t of ax.ticks) {
      el("line", { x1: px(t), x2: px(t), y1: T, y2: H - B, class: "v-grid" }, svg);
      if (px(t) - taken < 52) continue;
      taken = px(t);
      el("text", { x: px(t), y: H - B + 15, "text-anchor": "middle", class: "v-tick" }, svg, tick(t, x.value));
    }
    el("text", { x: (L + W - R) / 2, y: H - 8, "text-anchor": "middle", class: "v-label" }, svg, data.names[x.value]);
    const path = list => list.map((q, k) => (k ? "L" : "M") + q[0].toFixed(1) + " " + q[1].toFixed(1)).join("");
    const line = list => path(list.map(q => [px(q[0]), py(q[1])]));
    for (const o of points.slice().reverse()) {
      const style = data.curves[o.i].style, wide = o.out.filter(q => q[2] !== null);
      if (wide.length > 1) {
        const low = q => logs.y.checked && q[1] - q[2] <= 0 ? H - B : Math.min(H - B, py(q[1] - q[2]));
        el("path", { class: style.replace("c", "b"), d: path(wide.map(q => [px(q[0]), py(q[1] + q[2])]).concat(wide.slice().reverse().map(q => [px(q[0]), low(q)]))) + "Z" }, svg);
      }
      for (const r of o.runs) el("path", { class: style.replace("c", "r"), d: line(r) }, svg);
      el("path", { class: style, d: line(o.out) }, svg);
    }
    const dot = el("circle", { r: 4, class: "v-node", visibility: "hidden" }, svg);
    svg.onpointermove = e => {
      const box = svg.getBoundingClientRect(), k = W / box.width;
      const mx = (e.clientX - box.left) * k, my = (e.clientY - box.top) * k;
      let best = null, least = 900;
      for (const o of points) for (const q of o.out) {
        const d = (px(q[0]) - mx) ** 2 + (py(q[1]) - my) ** 2;
        if (d < least) { least = d; best = { o, q }; }
      }
      tip.style.display = best ? "block" : "none";
      dot.setAttribute("visibility", best ? "visible" : "hidden");
      if (!best) return;
      dot.setAttribute("cx", px(best.q[0]));
      dot.setAttribute("cy", py(best.q[1]));
      const spread = best.q[2] === null ? "" : " ± " + number(best.q[2], p.column);
      tip.textContent = `${best.o.name}\n${number(best.q[1], p.column)}${spread} at ${number(best.q[0], x.value)}`;
      tip.style.left = Math.min(e.clientX - box.left + 14, box.width - 170) + "px";
      tip.style.top = e.clientY - box.top + 8 + "px";
    };
    svg.onpointerleave = () => { tip.style.display = "none"; dot.setAttribute("visibility", "hidden"); };
  }
  x.onchange = () => { logs.x.checked = x.value.startsWith("bits"); draw(); };
  logs.x.onchange = logs.y.onchange = draw;
  draw();
  return draw;
}

const draws = data.panels.map(panel);
data.curves.forEach((c, i) => {
  const label = el("label", {}, document.getElementById("series"));
  const box = el("input", { type: "checkbox" }, label);
  box.checked = true;
  const svg = el("svg", { viewBox: "0 0 26 8" }, label);
  el("line", { x1: 1, x2: 25, y1: 4, y2: 4, class: c.style }, svg);
  label.append(" " + c.name);
  box.onchange = () => { box.checked ? off.delete(i) : off.add(i); draws.forEach(d => d()); };
});
if (data.curves.some(c => c.runs)) {
  const label = el("label", {}, document.getElementById("series"));
  const box = el("input", { type: "checkbox" }, label);
  box.checked = raw;
  label.append(" each seed");
  box.onchange = () => { raw = box.checked; draws.forEach(d => d()); };
}
const head = el("tr", {}, document.getElementById("table"));
for (const t of ["last evaluation", ...data.table.map(c => data.names[c])]) el("th", {}, head, t);
for (const c of data.curves) {
  const row = el("tr", {}, document.getElementById("table"));
  el("td", {}, row, c.name);
  for (const k of data.table) {
    const spread = c.spread ? (c.spread[k] || []).at(-1) : null;
    el("td", {}, row, number((c.columns[k] || []).at(-1), k) + (spread === null || spread === undefined ? "" : " ± " + number(spread, k)));
  }
}
