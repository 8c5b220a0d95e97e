// The section of agents: their table, the details of the selected one, and the colour scale.
import { significant, percent, bits, grouped } from "./format.js";
import { Graph } from "./graph.js";

const perPage = 12;

// Number of examples, and share of the most frequent class, of a row of shards.json.
const total = row => row?.reduce((a, b) => a + b, 0) ?? 0;
const topShare = row => { const t = total(row); return t ? Math.max(...row) / t : null; };

// histogram draws how many examples of each class an agent holds.
function histogram(row) {
  const max = Math.max(1, ...row), w = 170 / row.length;
  const bars = row.map((n, c) => `<rect x="${(c * w + w * 0.1).toFixed(1)}" y="${(44 - 40 * n / max).toFixed(1)}" width="${(w * 0.8).toFixed(1)}" height="${(40 * n / max).toFixed(1)}" fill="var(--blue)"/>`);
  const names = row.length <= 20 ? row.map((_, c) => `<text x="${((c + 0.5) * w).toFixed(1)}" y="54" text-anchor="middle" font-size="9" fill="var(--soft)">${c}</text>`) : [];
  return `<svg viewBox="0 0 170 56" role="img" aria-label="examples of each class: ${row.join(", ")}"><path d="M0 44.5H170" stroke="var(--line)"/>${bars.join("")}${names.join("")}</svg>`;
}

export class Agents {
  constructor(say) {
    const id = name => document.getElementById(name);
    this.table = id("agent-table");
    this.detail = id("detail");
    this.pager = id("pager");
    this.by = id("colour-by");
    this.scale = id("scale");
    this.note = id("graph-note");
    this.title = id("graph-title");
    this.section = id("agents");
    this.graph = new Graph(id("graph"), id("graph-tip"), say);
    this.graph.describe = (i, plain) => this.describe(i, plain);
    this.graph.onpick = i => { this.showPage(i); this.update(); };
    this.by.onchange = () => this.update();
    this.sort = ["agent", 1];
    this.page = 0;
    this.smoothLoss = null; // the smoothed loss, for colours
  }

  // set selects the run to show.
  set(run) {
    const about = run.about, rows = about?.agents ?? [];
    this.run = run;
    this.rows = rows;
    this.classes = about?.classes ?? 0; // 1 of text, which has none
    this.smoothLoss = null;
    this.degree = new Array(rows.length).fill(0);
    for (const [i, j] of about?.edges ?? []) { this.degree[i]++; this.degree[j]++; }
    this.section.hidden = !rows.length;
    this.choose();
    this.graph.set(rows.length, about?.edges ?? [], about?.graph ?? "");
    this.title.textContent = rows.length ? `${about.graph || "graph"}: ${grouped(rows.length)} agents, ${grouped(about.edge_count)} edges` : "";
    this.page = 0;
    this.update();
  }

  // choose fills the list of quantities that colours can show.
  choose() {
    const live = this.run.agents, options = this.classes > 1 ? [["share", "share of the commonest class"]] : [];
    if (live) options.unshift(["loss", "loss of the batch"], ["distance", "distance from the mean model"], ["accuracy", "test accuracy"]);
    const names = options.map(o => o[0]).join();
    if (names === this.options) return;
    this.options = names;
    this.by.replaceChildren(...options.map(([value, text]) => Object.assign(document.createElement("option"), { value, textContent: text })));
    this.by.value = options[0]?.[0] ?? "";
    this.by.parentNode.hidden = !options.length;
  }

  // receive handles a message with the state of the agents.
  receive() {
    const now = this.run.agents?.loss;
    if (now) this.smoothLoss = this.smoothLoss?.length === now.length ? this.smoothLoss.map((v, i) => now[i] === null ? v : v === null ? now[i] : 0.6 * v + 0.4 * now[i]) : [...now];
    this.choose();
    this.update();
  }

  values(what) {
    if (what === "share") return this.rows.map(topShare);
    if (what === "loss") return this.smoothLoss ?? [];
    const v = this.run.agents?.[what] ?? [];
    return what === "distance" ? v.map(d => d === null ? null : Math.sqrt(d)) : v;
  }

  update() {
    if (!this.rows?.length) return;
    const what = this.by.value, values = this.values(what), known = values.filter(v => v !== null && v !== undefined);
    // Of many agents a few would take the whole scale: it ends at the quantiles 2 % and 98 % of a hundred and more.
    const sorted = known.toSorted((a, b) => a - b), cut = known.length < 100 ? 0 : Math.floor(known.length / 50);
    let lo = sorted[cut], hi = sorted[known.length - 1 - cut];
    if (what === "share") [lo, hi] = [0, 1];
    this.graph.paint(values.map(v => v === null || v === undefined ? null : hi > lo ? (v - lo) / (hi - lo) : 0.5));
    const write = what === "share" || what === "accuracy" ? v => percent(v, 0) : v => significant(v, 3);
    this.scale.replaceChildren();
    if (known.length) {
      const c = document.createElement("canvas");
      c.setAttribute("aria-hidden", "true");
      Graph.scale(c);
      this.scale.append((lo > sorted[0] ? "≤ " : "") + write(lo), c, (hi < sorted.at(-1) ? "≥ " : "") + write(hi));
    }
    const many = this.graph.edges.length > 6000 || (this.run.about?.edge_count ?? 0) > this.graph.edges.length;
    const notes = [];
    if (this.run.frame) notes.push(`${grouped(this.run.frame.exchanged)} exchanges so far; an edge lights up when its ends exchange`);
    else notes.push("Losses, distances and exchanges are shown only for a run in the program that serves this page.");
    if (many) notes.push("more edges than can be drawn");
    this.note.textContent = notes.join(" · ");
    this.graph.canvas.setAttribute("aria-label", `Graph of ${this.rows.length} agents. Arrow keys go from agent to agent.`);
    this.detail.innerHTML = this.describe(this.graph.picked, false, true);
    this.fill();
  }

  // describe returns the HTML of an agent's details. It contains numbers only, so nothing needs escaping.
  describe(i, plain, long) {
    const a = this.run.agents, row = this.rows[i], facts = [];
    if (!row) return "";
    if (a) facts.push(["loss of its batch", significant(a.loss[i], 4)], ["distance from the mean", significant(a.distance[i] === null ? null : Math.sqrt(a.distance[i]), 4)],
      ["test accuracy", percent(a.accuracy[i])], ["sent", bits(a.sent[i])], ["iteration", grouped(a.iteration[i])]);
    facts.push(["examples", grouped(total(row))], ...this.classes > 1 ? [["commonest class", percent(topShare(row), 0)]] : [], ["neighbours", grouped(this.degree[i])]);
    if (plain) return `agent ${i}: ` + facts.map(f => f.join(" ")).join(", ");
    const shown = long ? facts : facts.filter((f, k) => k < 2 || f[0] === "examples");
    const data = this.classes > 1 ? histogram(row) : "";
    const list = shown.map(([k, v]) => long ? `<dt>${k}</dt><dd>${v}</dd>` : `<div><span class="soft">${k}</span> ${v}</div>`).join("");
    return long ? `<div><b>Agent ${i}</b><dl>${list}</dl></div>${data && `<div><span class="soft">its data, by class</span>${data}</div>`}` : `<b>agent ${i}</b>${list}${data}`;
  }

  columns() {
    const a = this.run.agents, rows = this.rows;
    const cols = [["agent", "agent", i => i, v => v]];
    if (a) cols.push(["loss", "loss", i => a.loss[i], v => significant(v, 3)], ["distance", "distance", i => a.distance[i] === null ? null : Math.sqrt(a.distance[i]), v => significant(v, 3)],
      ["accuracy", "accuracy", i => a.accuracy[i], v => percent(v, 1)], ["sent", "sent", i => a.sent[i], bits], ["iteration", "iteration", i => a.iteration[i], grouped]);
    cols.push(["examples", "examples", i => total(rows[i]), grouped]);
    if (this.classes > 1) cols.push(["share", "top class", i => topShare(rows[i]), v => percent(v, 0)]);
    if (!a) cols.push(["degree", "neighbours", i => this.degree[i], grouped]);
    return cols;
  }

  order() {
    const col = this.columns().find(c => c[0] === this.sort[0]) ?? this.columns()[0];
    const key = this.rows.map((_, i) => col[2](i) ?? -Infinity);
    return this.rows.map((_, i) => i).sort((i, j) => (key[i] - key[j]) * this.sort[1] || i - j);
  }

  showPage(i) { this.page = Math.floor(this.order().indexOf(i) / perPage); }

  fill() {
    const cols = this.columns(), order = this.order(), pages = Math.ceil(order.length / perPage);
    this.page = Math.max(0, Math.min(this.page, pages - 1));
    const shape = cols.map(c => c[0]).join() + this.sort;
    if (shape !== this.shape) this.head(cols, shape);
    const shown = order.slice(this.page * perPage, (this.page + 1) * perPage);
    while (this.body.rows.length > shown.length) this.body.deleteRow(-1);
    while (this.body.rows.length < shown.length) {
      const tr = this.body.insertRow();
      for (const [k] of cols.entries()) {
        const td = tr.insertCell();
        if (k === 0) td.append(Object.assign(document.createElement("button"), { type: "button" }));
      }
      tr.onclick = () => this.graph.pick(Number(tr.dataset.agent));
    }
    shown.forEach((i, r) => {
      const tr = this.body.rows[r];
      tr.dataset.agent = i;
      tr.className = i === this.graph.picked ? "picked" : "";
      cols.forEach(([, , of, write], k) => {
        const text = String(write(of(i))), cell = k ? tr.cells[k] : tr.cells[0].firstChild;
        if (cell.textContent !== text) cell.textContent = text;
        if (!k) cell.setAttribute("aria-label", `agent ${i}`);
      });
    });
    this.turn(pages, order.length);
  }

  head(cols, shape) {
    this.shape = shape;
    const tr = document.createElement("tr");
    for (const [id, name] of cols) {
      const th = document.createElement("th");
      th.scope = "col";
      if (this.sort[0] === id) th.setAttribute("aria-sort", this.sort[1] > 0 ? "ascending" : "descending");
      th.append(Object.assign(document.createElement("button"), { type: "button", textContent: name, onclick: () => {
        this.sort = [id, this.sort[0] === id ? -this.sort[1] : id === "agent" ? 1 : -1];
        this.page = 0;
        this.fill();
      } }));
      tr.append(th);
    }
    const head = document.createElement("thead");
    head.append(tr);
    this.body = document.createElement("tbody");
    this.table.replaceChildren(head, this.body);
  }

  turn(pages, n) {
    this.pager.hidden = pages < 2;
    if (pages < 2) return;
    if (!this.pager.firstChild) {
      const b = (text, step) => Object.assign(document.createElement("button"), { type: "button", textContent: text, onclick: () => { this.page += step; this.fill(); } });
      this.pager.append(b("Previous", -1), document.createElement("span"), b("Next", 1));
    }
    const [back, text, next] = this.pager.children;
    text.textContent = `${grouped(this.page * perPage + 1)} to ${grouped(Math.min(n, (this.page + 1) * perPage))} of ${grouped(n)}`;
    back.disabled = this.page === 0;
    next.disabled = this.page === pages - 1;
  }
}
