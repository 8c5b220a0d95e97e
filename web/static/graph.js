// The graph of agents on a canvas: agents coloured by a quantity, recently active edges highlighted. Fast enough for a thousand agents at 60 frames a second.
const [shortGlow, longGlow] = [220, 650]; // milliseconds for which an active edge is highlighted: short if there are many
const shades = 24;
const maxLines = 6000;

const hexes = h => [1, 3, 5].map(k => parseInt(h.slice(k, k + 2), 16));
function ramp(stops) {
  const rgb = stops.map(hexes), out = [];
  for (let k = 0; k < shades; k++) {
    const at = k / (shades - 1) * (rgb.length - 1), i = Math.min(rgb.length - 2, Math.floor(at)), f = at - i;
    out.push(`rgb(${rgb[i].map((v, c) => Math.round(v + f * (rgb[i + 1][c] - v))).join(",")})`);
  }
  return out;
}
const ramps = { light: ramp(["#d9ebf7", "#3d9bd1", "#00507f", "#06263f"]), dark: ramp(["#15364a", "#2b7cab", "#7cc8f2", "#f0f9ff"]) };

// layout places n agents in the unit square, as graph.go does: a few on a circle, lattices and large graphs in rows. Without a lattice
// every other row runs backwards, so that consecutive agents are adjacent.
export function layout(n, graph, aspect) {
  const at = [];
  const lattice = /^(grid|torus)/.test(graph);
  if (n <= 120 && !lattice) {
    for (let i = 0; i < n; i++) {
      const a = 2 * Math.PI * i / n;
      at.push(n === 1 ? [0.5, 0.5] : [0.5 + 0.5 * Math.sin(a) * Math.min(1, 1 / aspect), 0.5 - 0.5 * Math.cos(a)]);
    }
    return at;
  }
  let rows = Math.max(1, Math.round(Math.sqrt(n / aspect)));
  if (lattice) for (rows = Math.floor(Math.sqrt(n)); n % rows; rows--); // the largest divisor up to √n, as the graph itself
  const across = Math.ceil(n / rows);
  for (let i = 0; i < n; i++) {
    const r = Math.floor(i / across), k = i % across;
    const c = lattice || r % 2 === 0 ? k : across - 1 - k;
    at.push([(c + 0.5) / across, (r + 0.5) / rows]);
  }
  return at;
}

export class Graph {
  constructor(canvas, tip, say) {
    this.canvas = canvas;
    this.tip = tip;
    this.ctx = canvas.getContext("2d");
    this.n = 0;
    this.edges = [];
    this.active = [];
    this.picked = 0;
    this.hover = -1;
    this.drawn = 0;
    this.glowTime = longGlow;
    this.waiting = false;
    this.describe = () => "";
    this.onpick = () => {};
    new ResizeObserver(() => this.resize()).observe(canvas);
    canvas.addEventListener("pointermove", e => this.point(e));
    canvas.addEventListener("pointerleave", () => { this.hover = -1; this.tip.hidden = true; this.ask(); });
    canvas.addEventListener("click", () => { if (this.hover >= 0) this.pick(this.hover); });
    canvas.addEventListener("keydown", e => {
      const to = { ArrowRight: this.picked + 1, ArrowDown: this.picked + 1, ArrowLeft: this.picked - 1, ArrowUp: this.picked - 1, Home: 0, End: this.n - 1 }[e.key];
      if (to === undefined || !this.n) return;
      e.preventDefault();
      this.pick((to + this.n) % this.n);
      say(this.describe(this.picked, true));
    });
  }

  set(n, edges, graph) {
    Object.assign(this, { n, edges, name: graph, active: [], hover: -1, values: null });
    this.picked = Math.min(this.picked, Math.max(0, n - 1));
    this.resize();
  }

  pick(i) {
    this.picked = i;
    this.onpick(i);
    this.ask();
  }

  // paint sets the colour level of each agent, from 0 to 1, or null for none.
  paint(levels) {
    this.levels = levels;
    this.ask();
  }

  // exchanged highlights edges, spread over the interval that the message covers.
  exchanged(pairs, over = 100) {
    const now = performance.now();
    this.glowTime = pairs.length > Math.max(4, this.n / 10) ? shortGlow : longGlow;
    pairs.forEach(([i, j], k) => { if (i < this.n && j < this.n) this.active.push([i, j, now + over * k / pairs.length]); });
    if (this.active.length > 1500) this.active.splice(0, this.active.length - 1500);
    this.ask();
  }

  resize() {
    const c = this.canvas, w = c.clientWidth, h = c.clientHeight;
    if (!w || !h) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    c.width = w * ratio;
    c.height = h * ratio;
    this.ratio = ratio;
    this.w = w;
    this.h = h;
    const margin = this.n > 120 ? 10 : 26;
    this.at = layout(this.n, this.name ?? "", (w - 2 * margin) / (h - 2 * margin)).map(([x, y]) => [margin + x * (w - 2 * margin), margin + y * (h - 2 * margin)]);
    this.r = this.n > 120 ? Math.max(2, Math.min(7, 0.33 * Math.sqrt(w * h / this.n))) : this.n > 50 ? 6 : this.n > 24 ? 9 : 13;
    this.base = null;
    this.ask();
  }

  theme() { this.base = null; this.ask(); }

  ask() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(t => { this.waiting = false; this.draw(t); });
  }

  // lines draws the edges into an offscreen canvas, which is reused.
  lines(css) {
    const b = document.createElement("canvas");
    b.width = this.canvas.width;
    b.height = this.canvas.height;
    const g = b.getContext("2d");
    g.scale(this.ratio, this.ratio);
    if (this.edges.length <= maxLines) {
      g.strokeStyle = css("soft");
      g.globalAlpha = this.edges.length > 1500 ? 0.1 : this.edges.length > 200 ? 0.2 : 0.42;
      g.lineWidth = this.edges.length > 1500 ? 0.6 : 1;
      g.beginPath();
      for (const [i, j] of this.edges) { g.moveTo(...this.at[i]); g.lineTo(...this.at[j]); }
      g.stroke();
    }
    return b;
  }

  draw() {
    const g = this.ctx;
    if (!this.at || !this.w) return;
    const style = getComputedStyle(document.documentElement), css = name => style.getPropertyValue("--" + name).trim();
    this.base ??= this.lines(css);
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, this.canvas.width, this.canvas.height);
    g.drawImage(this.base, 0, 0);
    g.scale(this.ratio, this.ratio);
    this.glow(g, css("orange"));
    this.dots(g, css);
    this.drawn++;
    if (this.active.length) this.ask();
  }

  // glow draws the highlighted edges, in a few groups of equal opacity.
  glow(g, colour) {
    const now = performance.now(), groups = Array.from({ length: 6 }, () => []);
    this.active = this.active.filter(s => now - s[2] < this.glowTime);
    this.lit = new Map();
    for (const s of this.active) {
      const left = 1 - (now - s[2]) / this.glowTime;
      if (left > 1) continue;
      groups[Math.min(5, Math.floor(left * 6))].push(s);
      for (const i of [s[0], s[1]]) this.lit.set(i, Math.max(left, this.lit.get(i) ?? 0));
    }
    g.strokeStyle = colour;
    g.lineCap = "round";
    groups.forEach((list, k) => {
      if (!list.length) return;
      g.globalAlpha = (k + 1) / 6;
      g.lineWidth = (this.n > 120 ? 1 : 1.6) + k * (this.n > 120 ? 0.15 : 0.4);
      g.beginPath();
      for (const [i, j] of list) { g.moveTo(...this.at[i]); g.lineTo(...this.at[j]); }
      g.stroke();
    });
    g.globalAlpha = 1;
  }

  // dots draws the agents, grouped by colour.
  dots(g, css) {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark", shade = ramps[dark ? "dark" : "light"];
    const groups = new Map();
    for (let i = 0; i < this.n; i++) {
      const v = this.levels?.[i], k = v === null || v === undefined ? -1 : Math.max(0, Math.min(shades - 1, Math.round(v * (shades - 1))));
      groups.has(k) ? groups.get(k).push(i) : groups.set(k, [i]);
    }
    const disc = (i, r) => { const [x, y] = this.at[i]; g.moveTo(x + r, y); g.arc(x, y, r, 0, 2 * Math.PI); };
    g.lineWidth = this.n > 120 ? 0.8 : 1.4;
    g.strokeStyle = css("soft");
    for (const [k, list] of groups) {
      g.fillStyle = k < 0 ? css("paper") : shade[k];
      g.beginPath();
      for (const i of list) disc(i, this.r);
      g.fill();
      g.stroke();
    }
    if (this.lit?.size) {
      g.strokeStyle = css("orange");
      g.lineWidth = this.n > 120 ? 1.2 : 2.4;
      g.beginPath();
      for (const i of this.lit.keys()) disc(i, this.r);
      g.stroke();
    }
    this.numbers(g, shade);
    g.strokeStyle = css("ink");
    g.lineWidth = 2;
    for (const i of new Set([this.picked, this.hover])) {
      if (i < 0 || i >= this.n) continue;
      g.beginPath();
      disc(i, this.r + 3);
      g.stroke();
    }
  }

  numbers(g, shade) {
    if (this.n > 50) return;
    g.font = `${this.n > 24 ? 10 : 12}px system-ui, sans-serif`;
    g.textAlign = "center";
    g.textBaseline = "middle";
    for (let i = 0; i < this.n; i++) {
      const v = this.levels?.[i];
      const [r, gr, b] = v === null || v === undefined ? [null] : shade[Math.max(0, Math.min(shades - 1, Math.round(v * (shades - 1))))].match(/\d+/g).map(Number);
      g.fillStyle = r === null ? getComputedStyle(document.documentElement).getPropertyValue("--ink") : 0.3 * r + 0.59 * gr + 0.11 * b > 140 ? "#10202c" : "#ffffff";
      g.fillText(String(i), this.at[i][0], this.at[i][1] + 0.5);
    }
  }

  point(e) {
    const x = e.offsetX, y = e.offsetY;
    let best = -1, least = (this.r + 8) ** 2;
    this.at?.forEach(([ax, ay], i) => { const d = (ax - x) ** 2 + (ay - y) ** 2; if (d < least) { least = d; best = i; } });
    this.hover = best;
    this.tip.hidden = best < 0;
    if (best >= 0) {
      this.tip.innerHTML = this.describe(best, false);
      const left = this.at[best][0] + 14, wide = this.tip.offsetWidth;
      this.tip.style.left = `${left + wide > this.w ? Math.max(0, this.at[best][0] - 14 - wide) : left}px`;
      this.tip.style.top = `${Math.max(0, Math.min(this.h - this.tip.offsetHeight, this.at[best][1] - 20))}px`;
    }
    this.ask();
  }

  // scale draws the colour scale into a small canvas.
  static scale(canvas) {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark", shade = ramps[dark ? "dark" : "light"];
    canvas.width = shades;
    canvas.height = 1;
    const g = canvas.getContext("2d");
    shade.forEach((c, k) => { g.fillStyle = c; g.fillRect(k, 0, 1, 1); });
  }
}
