// The table of runs: filter, sort, columns, and runs that differ in their seeds only folded into one row.
import { significant, percent, bits, grouped, duration, dash, short } from "./format.js";
import { distinguishing } from "./runs.js";

const longestName = 72; // characters of a name; the middle of longer ones is left out, and a tooltip has it

const maxRows = 300;
const make = (name, attrs = {}, ...children) => {
  const e = document.createElement(name);
  for (const k in attrs) k in e && k !== "role" ? (e[k] = attrs[k]) : e.setAttribute(k, attrs[k]);
  e.append(...children);
  return e;
};
const when = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

// Columns that are not settings: title, value of a run, text, and whether the larger is the better first when sorting.
const metric = (title, column, text) => ({ title, value: i => i.latest?.[column] ?? null, text, number: true });
const number = (v, i, digits = 4) => significant(v, digits);
const fixed = {
  status: { title: "status", value: ended, text: v => v },
  iteration: { ...metric("iteration", "iteration"), text: (v, i) => grouped(v) + (i.iterations > v ? ` of ${grouped(i.iterations)}` : "") },
  accuracy: { title: "test accuracy", value: i => i.accuracy, text: v => percent(v), number: true },
  worst: metric("worst agent", "test_acc_min", v => percent(v)),
  perplexity: metric("perplexity", "perplexity", number),
  loss: metric("training loss", "train_loss_avg", number),
  consensus: metric("consensus error", "consensus", number),
  bits: { title: "bits sent", value: i => i.bits, text: v => bits(v), number: true },
  time: metric("wall time", "wall_s", v => duration(v)),
  changed: { title: "latest", value: i => i.changed, text: v => when.format(new Date(1000 * v)), number: true, plain: true },
};

// ended says how a run ended, and whether it has failed to converge.
export function ended(info) { return info.failed_to_converge ? `${info.status}, failed to converge` : info.status; }

// moments returns the mean of numbers and their sample standard deviation.
function moments(values) {
  const known = values.filter(v => v !== null && v !== undefined), n = known.length;
  if (!n) return [null, null];
  const mean = known.reduce((a, b) => a + b, 0) / n;
  return [mean, n > 1 ? Math.sqrt(known.reduce((a, v) => a + (v - mean) ** 2, 0) / (n - 1)) : null];
}

export class RunTable {
  // onpick is called with the runs of a row and whether they are to be shown.
  constructor(node, onpick, stored, store) {
    Object.assign(this, { onpick, store, list: [], varied: [], folded: true, sort: null, colours: new Map(), live: "" });
    this.chosen = JSON.parse(stored("columns") ?? "null"); // null: the usual columns
    this.filter = make("input", { type: "search", placeholder: "filter: dsgd alpha=0.1", "aria-label": "Filter the runs", oninput: () => this.draw() });
    this.fold = make("input", { type: "checkbox", checked: true, onchange: () => { this.folded = this.fold.checked; this.onfold?.(); } });
    this.foldLabel = make("label", { className: "check" }, this.fold, " fold seeds");
    this.sorter = make("select", { "aria-label": "Sort the runs", onchange: () => this.sortBy(this.sorter.value) });
    this.chooser = make("details", { className: "columns" });
    this.bar = make("div", { className: "bar" }, this.filter, this.foldLabel, this.sorter, this.chooser);
    this.table = make("table", { className: "cards", role: "table" });
    this.note = make("p", { className: "note" });
    node.append(this.bar, make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Table of runs" }, this.table), this.note);
  }

  // set takes the list of runs and the colours of those that are shown.
  set(list, varied, live, colours) {
    Object.assign(this, { list, varied, live, colours });
    this.foldLabel.hidden = !list.some((i, k) => i.group && list.findIndex(o => o.group === i.group) < k);
    this.drawChooser();
    this.draw();
  }

  // column returns a column by its name: a fixed one, or a setting.
  column(id) {
    return fixed[id] ?? { title: id.replaceAll("_", " "), value: i => i.settings[id] ?? null, text: v => v };
  }

  // usual returns the names of the columns that are shown at first.
  usual() {
    const keys = distinguishing(this.list, this.varied.filter(k => k !== "seed" || !this.folded)).slice(0, 5);
    const text = this.list.some(i => i.latest?.perplexity != null), images = this.list.some(i => i.accuracy !== null);
    return [...keys, "status", "iteration", ...images || !text ? ["accuracy"] : [], ...text ? ["perplexity"] : [], "loss", "bits", "time", "changed"];
  }

  columns() {
    const known = id => id in fixed || this.varied.includes(id);
    return (this.chosen ?? this.usual()).filter(known);
  }

  drawChooser() {
    const all = [...this.varied, ...Object.keys(fixed)], shown = this.columns();
    const state = all.join() + "|" + shown.join();
    if (state === this.chooserState) return;
    this.chooserState = state;
    const boxes = all.map(id => make("label", { className: "check" }, make("input", { type: "checkbox", checked: shown.includes(id), onchange: e => {
      const now = new Set(this.columns());
      e.target.checked ? now.add(id) : now.delete(id);
      this.choose(all.filter(c => now.has(c)));
    } }), " " + this.column(id).title));
    const usual = make("button", { type: "button", textContent: "Usual columns", onclick: () => this.choose(null) });
    if (this.chooser.firstChild) this.chooser.lastChild.replaceChildren(...boxes, usual);
    else this.chooser.append(make("summary", { textContent: "Columns" }), make("div", { className: "menu" }, ...boxes, usual));
    this.sorter.replaceChildren(make("option", { value: "", textContent: "latest first" }), ...["name", ...shown].map(id => make("option", { value: id, textContent: id === "name" ? "run" : this.column(id).title })));
    this.sorter.value = this.sort?.[0] ?? "";
  }

  choose(columns) {
    this.chosen = columns;
    this.store("columns", JSON.stringify(columns));
    const open = document.activeElement;
    this.drawChooser();
    this.draw();
    if (open?.isConnected) open.focus();
  }

  sortBy(id) {
    const first = id && id !== "name" && this.column(id).number ? -1 : 1;
    this.sort = !id ? null : this.sort?.[0] === id ? [id, -this.sort[1]] : [id, first];
    this.sorter.value = this.sort?.[0] ?? "";
    this.draw();
  }

  // rows returns the runs that the filter leaves, those of one setting together if they are folded, and sorted.
  rows() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = i => {
      const text = [i.name, i.algo, i.data, i.graph, ended(i), ...Object.entries(i.settings).map(s => s.join("="))].join(" ").toLowerCase();
      return words.every(w => text.includes(w));
    };
    const rows = foldSeeds(this.list.filter(fits), this.folded);
    if (!this.sort) return rows;
    const [id, way] = this.sort;
    const key = r => id === "name" ? r[0].name : this.cell(id, r).sort;
    return rows.map(r => [key(r), r]).sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return way * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    }).map(([, r]) => r);
  }

  // cell returns the text of a cell and what it sorts by: of several runs the mean ± the standard deviation.
  cell(id, infos) {
    const c = this.column(id), values = infos.map(c.value);
    if (!c.number) {
      const some = [...new Set(values.map(v => v ?? dash))], number = Number(values[0]);
      return { text: some.join(", "), sort: values[0] === null ? null : values[0] !== "" && Number.isFinite(number) ? number : values[0] };
    }
    if (c.plain) return { text: c.text(Math.max(...values)), sort: Math.max(...values) };
    const [mean, deviation] = moments(values);
    return { text: mean === null ? dash : c.text(mean, infos[0]) + (deviation ? ` ± ${c.text(deviation, {}, 2)}` : ""), sort: mean };
  }

  draw() {
    const ids = this.columns(), rows = this.rows(), focus = document.activeElement?.closest?.("[data-key]")?.dataset.key;
    const heading = (id, title) => {
      const th = make("th", { scope: "col", role: "columnheader", className: fixed[id]?.number ? "num" : "" }, make("button", { type: "button", textContent: title, onclick: () => this.sortBy(id), "data-key": "sort " + id }));
      if (this.sort?.[0] === id) th.setAttribute("aria-sort", this.sort[1] > 0 ? "ascending" : "descending");
      return th;
    };
    const head = make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, heading("name", "run"), ...ids.map(id => heading(id, this.column(id).title))));
    const body = make("tbody", { role: "rowgroup" }, ...rows.slice(0, maxRows).map(r => this.row(r, ids)));
    this.table.replaceChildren(head, body);
    this.note.textContent = !rows.length ? "No run has all of these words." : rows.length > maxRows ? `${maxRows} of ${grouped(rows.length)} rows: filter to see others.` : "";
    this.note.hidden = !this.note.textContent;
    if (focus) [...this.table.querySelectorAll("[data-key]")].find(e => e.dataset.key === focus)?.focus();
  }

  row(infos, ids) {
    const names = infos.map(i => i.run), colour = this.colours.get(names.find(n => this.colours.has(n))), title = infos.map(i => i.name).join("\n");
    const box = make("input", { type: "checkbox", checked: names.every(n => this.colours.has(n)), "data-key": names.join(), onchange: () => this.onpick(names, box.checked) });
    const swatch = make("span", { className: "swatch" });
    if (colour) swatch.style.background = `var(--${colour})`;
    const name = infos.length > 1 ? `${common(infos.map(i => i.name))} (${infos.length} seeds)` : infos[0].name;
    const th = make("th", { scope: "row", role: "rowheader", title }, make("label", {}, box, swatch, make("span", { className: "name" }, short(name, longestName))));
    return make("tr", { role: "row", className: colour ? "picked" : "" }, th, ...ids.map(id => {
      const td = make("td", { role: "cell", "data-label": this.column(id).title, className: fixed[id]?.number ? "num" : "" }, this.cell(id, infos).text);
      if (id === "status") {
        const failed = infos.map(i => i.failed_to_converge).filter(Boolean);
        td.replaceChildren(make("span", { className: "state " + (failed.length ? "failed" : infos[0].status), title: failed.join("\n") }, infos[0].live ? "live" : td.textContent));
      }
      return td;
    }));
  }
}

// foldSeeds returns lists of runs: those of one setting together, unless they still run.
export function foldSeeds(infos, folded) {
  const groups = new Map();
  for (const i of infos) {
    const key = folded && i.group && i.status !== "running" ? "group " + i.group : "run " + i.run;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(i);
  }
  return [...groups.values()];
}

// common returns what the names of runs of several seeds have in common.
function common(names) {
  let n = 0;
  while (n < names[0].length && names.every(s => s[n] === names[0][n])) n++;
  return names[0].slice(0, n).replace(/[-_ /]*(seed)?[-_ =/]*$/, "") || names[0];
}
