// Formats of numbers, with the rules of units.go: three or four significant digits, SI prefixes, a dash for unknown numbers.
export const dash = "–";
const prefixes = ["", "k", "M", "G", "T", "P", "E"];
const known = v => v !== null && v !== undefined && Number.isFinite(v);
const minus = s => s.replace("-", "−");

export function significant(v, n = 4) {
  if (!known(v)) return dash;
  const a = Math.abs(v);
  if (a !== 0 && (a < 1e-3 || a >= 1e6)) {
    const [m, e] = v.toExponential(n - 1).split("e");
    return minus(String(+m)) + "e" + minus(String(+e));
  }
  return minus(String(+v.toPrecision(n)));
}

export function si(v, unit = "", n = 3) {
  if (!known(v)) return dash;
  let p = 0;
  while (p + 1 < prefixes.length && Math.abs(v) >= 999.5) { v /= 1000; p++; }
  const s = significant(v, n);
  return prefixes[p] || unit ? `${s} ${prefixes[p]}${unit}` : s;
}

export const bits = v => si(v, "bit");
export const percent = (v, digits = 2) => known(v) ? minus((100 * v).toFixed(digits)) + " %" : dash;
export const grouped = v => known(v) ? minus(String(Math.round(v)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009")) : dash;

export function duration(s) {
  if (!known(s) || s < 0) return dash;
  if (s < 59.95) return significant(s, s < 10 ? 2 : 3) + " s";
  if (s < 3599.5) return `${Math.floor(Math.round(s) / 60)} min ${String(Math.round(s) % 60).padStart(2, "0")} s`;
  const m = Math.round(s / 60);
  return m < 2880 ? `${Math.floor(m / 60)} h ${String(m % 60).padStart(2, "0")} min` : `${(m / 1440).toFixed(1)} days`;
}

// short omits the middle of a long name, as names usually differ at their ends.
export const short = (name, n) => name.length <= n ? name : `${name.slice(0, Math.ceil(n / 2) - 1)}…${name.slice(-Math.floor(n / 2))}`;

export function bytes(v) {
  if (!known(v)) return dash;
  let p = 0;
  while (p < 4 && v >= 1000) { v /= 1024; p++; }
  return `${+v.toPrecision(3)} ${["B", "KiB", "MiB", "GiB", "TiB"][p]}`;
}

// Tick labels, with as few digits as distinguish neighbouring ticks.
export function tickPlain(v, step) {
  const a = Math.abs(v);
  if (a === 0) return "0";
  if (a < 1e-3 || a >= 1e5) return significant(v, 3);
  return minus(String(+v.toFixed(step > 0 ? Math.max(0, Math.min(6, Math.ceil(-Math.log10(step) - 1e-9))) : 6)));
}
export function tickPercent(v, step) {
  return percent(v, step > 0 ? Math.max(0, Math.min(4, Math.ceil(-Math.log10(100 * step) - 1e-9))) : 0);
}
export function tickTime(v) {
  if (v < 60) return `${+v.toPrecision(3)} s`;
  if (v < 3600) return v % 60 ? `${Math.floor(v / 60)}:${String(Math.round(v % 60)).padStart(2, "0")}` : `${v / 60} min`;
  const m = Math.round(v / 60);
  return m % 60 ? `${Math.floor(m / 60)} h ${m % 60}` : `${m / 60} h`;
}
