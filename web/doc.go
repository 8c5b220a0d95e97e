// Package web draws the results of runs: charts, report pages, and a live page in the browser.
//
// A run writes a folder with config.yaml, metrics.jsonl (one JSON object per evaluation),
// summary.json and shards.json. [WritePlots] draws its curves into plots/, as SVG and PNG.
// [WriteReport] writes report.html, one self-contained file without scripts, fonts or network
// access, with a table behind each drawing. Both only read the files of the run and may be called
// while it goes on.
//
// A [Comparison] shows several runs in the same charts: as one sheet of panels in SVG and PNG, and
// as a self-contained HTML page on which curves can be switched off, axes changed and values read.
// [Labels] names runs by the settings in which they differ.
//
// A [Server] is the live page. It shows the runs of a folder as their files grow, and one run of
// this process, a [LiveRun], with its agents and exchanges. The goroutine of each client polls the
// files and the run at the pace of that client, so nothing is queued, and a frame of the live run
// is encoded once for all clients. A table lists the runs with the settings in which they differ;
// runs that differ in their seeds only are one row and one curve, a mean. The page itself is
// embedded from static/ and loads nothing from other sites. Files are opened through an os.Root,
// so neither paths nor links lead out of the folder. Controlling a run requires a token.
//
// Input files. metrics.jsonl is required, but may be empty. The others are optional; the page says
// which are missing. A damaged file is an error that names the file and, for metrics.jsonl, the
// line. If an iteration occurs in metrics.jsonl more than once (a resumed run repeats some
// evaluations), the last line counts.
//
// Drawing. A chart, a heat map or a graph becomes a drawing: a list of lines, areas and texts,
// each with a named style. A drawing can be written as SVG with fixed colours, as SVG with the CSS
// variables of the page (for light and dark themes), as PNG by gonum's plotting canvas, and as
// PDF. All formats show the same.
//
// Conventions. Accuracies are fractions of 1 and shown in percent. Bits are cumulative over all
// agents and counted once, at the sender. A missing or null number is NaN in memory and a dash on
// the page. Whether an axis is logarithmic depends on the quantity and never on the values. Text
// from files is escaped wherever it appears. Files are written under a temporary name and renamed,
// so that no reader sees an incomplete file.
//
// Where to look next: plots.go, report.go and compare.go, then chart.go and drawing.go; for the
// live page server.go, stream.go and tail.go, then static/page.js, charts.js and runtable.js.
package web
