// The data of the runs on the page: columns of numbers that grow, and what stands of a run from its start.
export class Run {
  constructor(name) {
    this.name = name;
    this.columns = {};
    this.length = 0;
    this.damaged = 0;
    this.every = 1;
    this.about = null; // the answer of /api/run
    this.frame = null; // the latest of a live run
    this.agents = null;
    this.pace = []; // [time, iteration] of the last seconds
  }

  // add takes in a message with rows.
  add(message) {
    if (message.fresh) { this.columns = {}; this.length = 0; this.every = 1; }
    for (const c of message.columns) this.columns[c] ??= [];
    for (const row of message.rows) message.columns.forEach((c, k) => this.columns[c].push(row[k]));
    this.length += message.rows.length;
    this.damaged = message.damaged;
    this.every = Math.max(this.every, message.every);
  }

  // saw takes in a frame of a live run.
  saw(frame) {
    this.frame = frame;
    const now = performance.now() / 1000;
    this.pace.push([now, frame.iteration]);
    while (this.pace.length > 2 && now - this.pace[0][0] > 12) this.pace.shift();
  }

  last(column) { return this.columns[column]?.[this.length - 1] ?? null; }

  // rate is in iterations a second: over the last seconds of a live run, else over the last quarter of the rows.
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

// smoothed is an exponential moving average without bias towards the start; gaps stay gaps.
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
