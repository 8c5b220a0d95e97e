// Export of a chart: SVG drawn from the data, PNG from the canvas with title and legend, CSV of the numbers.
export function download(name, type, content) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([content], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

const escaped = s => String(s).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

// asSVG returns a picture of 640 by 420 units.
export function asSVG(p) {
  const W = 640, H = 420, L = 76, R = 16, T = 62, B = 52;
  const place = (v, s, log) => log ? (Math.log(v) - Math.log(s.min)) / (Math.log(s.max) - Math.log(s.min)) : (v - s.min) / (s.max - s.min);
  const px = v => L + place(v, p.x, p.logx) * (W - L - R), py = v => H - B - place(v, p.y, p.logy) * (H - T - B);
  const n = v => v.toFixed(1).replace(/\.0$/, "");
  const text = (x, y, s, more = "") => `<text x="${n(x)}" y="${n(y)}" ${more}>${escaped(s)}</text>`;
  const out = [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${W} ${H}" width="${W}" height="${H}" font-family="Liberation Sans,Arial,Helvetica,sans-serif" font-size="12" fill="${p.soft}" role="img">`,
    `<title>${escaped(p.title)} against ${escaped(p.xLabel)}</title>`, `<rect width="${W}" height="${H}" fill="${p.paper}"/>`,
    text(14, 24, p.title, `font-size="15" font-weight="bold" fill="${p.ink}"`), `<clipPath id="c"><rect x="${L}" y="${T}" width="${W - L - R}" height="${H - T - B}"/></clipPath>`];
  for (const [v, label] of p.yTicks) {
    if (v < p.y.min || v > p.y.max) continue;
    out.push(`<path d="M${L} ${n(py(v))}H${W - R}" stroke="${p.line}" stroke-width=".7"/>`, text(L - 6, py(v) + 4, label, 'text-anchor="end"'));
  }
  for (const [v, label] of p.xTicks) {
    if (v < p.x.min || v > p.x.max) continue;
    out.push(`<path d="M${n(px(v))} ${T}V${H - B}" stroke="${p.line}" stroke-width=".7"/>`, text(px(v), H - B + 17, label, 'text-anchor="middle"'));
  }
  out.push(text((L + W - R) / 2, H - 10, p.xLabel, 'text-anchor="middle"'), text(0, 0, p.yLabel, `text-anchor="middle" transform="translate(17 ${(T + H - B) / 2}) rotate(-90)"`));
  const known = (ys, i) => ys[i] !== null && ys[i] !== undefined, at = (ys, i) => `${n(px(p.xs[i]))} ${n(py(ys[i]))}`;
  for (const b of p.bands) {
    const rows = p.xs.map((_, i) => i).filter(i => known(b.upper, i) && known(b.lower, i));
    if (rows.length > 1) out.push(`<path d="M${[...rows.map(i => at(b.upper, i)), ...rows.toReversed().map(i => at(b.lower, i))].join("L")}Z" fill="${b.fill.slice(0, 7)}" fill-opacity=".16" clip-path="url(#c)"/>`);
  }
  let key = 14;
  for (const s of p.series) {
    let d = "", up = true;
    s.ys.forEach((v, i) => {
      if (v === null || v === undefined) return;
      d += `${up ? "M" : "L"}${n(px(p.xs[i]))} ${n(py(v))}`;
      up = false;
    });
    out.push(`<path d="${d}" fill="none" stroke="${s.colour}" stroke-opacity="${s.quiet ? 0.25 : 1}" stroke-width="${s.width}" stroke-linejoin="round" stroke-dasharray="${(s.dash ?? []).join(" ")}" clip-path="url(#c)"/>`);
    if (s.quiet) continue;
    out.push(`<path d="M${key} 42h22" stroke="${s.colour}" stroke-width="2" stroke-dasharray="${(s.dash ?? []).join(" ")}"/>`, text(key + 27, 46, s.name, `fill="${p.ink}"`));
    key += 27 + s.name.length * 6.4 + 16;
  }
  return out.join("\n") + "\n</svg>\n";
}

// asPNG returns the same picture at twice the resolution.
export function asPNG(p) {
  return new Promise((done, failed) => {
    const image = new Image();
    image.onload = () => {
      const c = document.createElement("canvas");
      c.width = 1280;
      c.height = 840;
      c.getContext("2d").drawImage(image, 0, 0, c.width, c.height);
      c.toBlob(b => b ? done(b) : failed(new Error("the browser cannot write PNG")), "image/png");
    };
    image.onerror = failed;
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(asSVG(p));
  });
}

// asCSV returns the unsmoothed numbers, a line for each evaluation.
export function asCSV(runs, x, columns) {
  const head = ["run", ...new Set(["iteration", x, ...columns])];
  const cell = v => v === null || v === undefined ? "" : /[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : v;
  const lines = [head.join(",")];
  for (const run of runs) for (let r = 0; r < run.length; r++) lines.push([run.name, ...head.slice(1).map(c => run.columns[c]?.[r])].map(cell).join(","));
  return lines.join("\n") + "\n";
}
