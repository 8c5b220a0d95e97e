// The data of the runs on the page: their growing columns of metrics, and their static description.
export class Run {
  constructor(name) {
    this.name = name;
    this.columns = {};
    this.length = 0;
    this.damaged = 0;
    this.every = 1;
    this.about = null; // the answer of /api/run
    this.frame = null; // the latest frame of a live run
    this.agents = null;
    this.pace = []; // [time, iteration] of the last seconds
  }

  // add appends the rows of a message.
  add(message) {
    if (message.fresh) { this.columns = {}; this.length = 0; this.every = 1; }
    for (const c of message.columns) this.columns[c] ??= [];
    for (const row of message.rows) message.columns.forEach((c, k) => this.columns[c].push(row[k]));
    this.length += message.rows.length;
    this.damaged = message.damaged;
    this.every = Math.max(this.every, message.every);
  }

  // update stores a frame of a live run.
  update(frame) {
    this.frame = frame;
    const now = performance.now() / 1000;
    this.pace.push([now, frame.iteration]);
    while (this.pace.length > 2 && now - this.pace[0][0] > 12) this.pace.shift();
  }

  last(column) { return this.columns[column]?.[this.length - 1] ?? null; }
  deviation() { return null; }

  // rate returns iterations per second: over the last seconds of a live run, else over the last quarter of the rows.
  rate() {
    if (this.frame && this.frame.state !== "ended") {
      if (this.pace.length < 2) return null;
      const [a, b] = [this.pace[0], this.pace.at(-1)];
      return b[0] - a[0] > 0.5 ? (b[1] - a[1]) / (b[0] - a[0]) : null;
    }
    const n = this.length, from = Math.floor(n * 0.75) - 1;
    if (n < 2) return null;
    const at = Math.max(0, Math.min(from, n - 2)), t = this.columns.iteration, w = this.columns.wall_s;
    const d = w[n - 1] - w[at];
    return d > 0 ? (t[n - 1] - t[at]) / d : null;
  }

  has(column) { return this.columns[column]?.some(v => v !== null && v !== 0) ?? false; }
}

// Mean is the mean of runs that differ in their seeds only, evaluation by evaluation, with the sample standard deviations
// in spread. It ends with the shortest run, or where the runs were evaluated at different iterations.
export class Mean {
  constructor(runs) {
    Object.assign(this, { runs, name: runs.map(r => r.name).join("\n"), length: 0, columns: {}, spread: {}, seen: "", frame: null });
  }

  get about() { return this.runs[0].about; }

  // refresh follows the runs.
  refresh() {
    const seen = this.runs.map(r => r.length).join();
    if (seen === this.seen) return this;
    this.seen = seen;
    const all = this.runs.map(r => r.columns), t = all[0].iteration ?? [];
    this.length = 0;
    while (this.length < Math.min(...this.runs.map(r => r.length)) && all.every(c => c.iteration[this.length] === t[this.length])) this.length++;
    this.columns = {};
    this.spread = {};
    for (const c of Object.keys(all[0])) {
      const mean = [], spread = [];
      for (let r = 0; r < this.length; r++) {
        const v = all.map(o => o[c]?.[r] ?? null), known = !v.includes(null);
        mean.push(known ? v.reduce((a, b) => a + b, 0) / v.length : null);
        spread.push(known ? Math.sqrt(v.reduce((a, b) => a + (b - mean[r]) ** 2, 0) / (v.length - 1)) : null);
      }
      this.columns[c] = mean;
      this.spread[c] = spread;
    }
    return this;
  }

  last(column) { return this.columns[column]?.[this.length - 1] ?? null; }
  deviation(column) { return this.spread[column]?.[this.length - 1] ?? null; }
  has(column) { return this.columns[column]?.some(v => v !== null && v !== 0) ?? false; }
  rate() { return this.runs[0].rate(); }
}

// distinguishing returns as few keys of settings as tell runs apart, the first ones where several would do.
export function distinguishing(infos, keys) {
  const chosen = [], parts = keys => new Set(infos.map(i => JSON.stringify(keys.map(k => i.settings[k] ?? "")))).size;
  for (const k of keys) if (parts([...chosen, k]) > parts(chosen)) chosen.push(k);
  return chosen;
}

// labels returns names for legends: what differs between runs, and not what they have in common.
export function labels(infos, keys) {
  if (infos.length < 2) return infos.map(i => i.name);
  const chosen = distinguishing(infos, keys), plain = ["algo", "model", "data"];
  const names = infos.map(i => chosen.map(k => plain.includes(k) ? i.settings[k] : `${k.replaceAll("_", " ")} ${i.settings[k] ?? "–"}`).join(", "));
  return names.map((n, at) => names.some((o, k) => o === n && k !== at) || !n ? [n, infos[at].name.split("/").at(-1)].filter(Boolean).join(", ") : n);
}

// smoothed returns the bias-corrected exponential moving average; gaps remain gaps.
export function smoothed(values, share) {
  if (!share) return values;
  let sum = 0, weight = 0;
  return values.map(v => {
    if (v === null) return null;
    sum = share * sum + (1 - share) * v;
    weight = share * weight + (1 - share);
    return sum / weight;
  });
}
