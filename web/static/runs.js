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
