// Package web turns the folder of a run into pictures and a page that explain it.
//
// A run leaves a folder with config.yaml, metrics.jsonl (one JSON object a line, one per
// evaluation), summary.json and shards.json. [WritePlots] draws its curves into plots/, as SVG and
// PNG; [WriteReport] writes report.html, one file that needs nothing else: no network, no script,
// no font. Both only read what the run wrote and may be called while it goes on, or again later.
//
// A [Comparison] shows several runs in the same pictures: as one sheet of panels, SVG and PNG, and
// as a page in which curves can be switched off, axes changed and values read. That page has a
// script, and still loads nothing.
//
// A [Server] is the live page: it shows the runs of a folder to browsers as their files grow, and
// one run of this process, a [LiveRun], with its agents and exchanges. It pulls: a reader's goroutine
// asks files and run for what is new at its own pace, so nothing queues up, and a frame of the run
// is made once for all readers. static/ is the page, in the program; it loads nothing from
// elsewhere. Files are opened through an os.Root, so neither paths nor links lead out of the
// folder. What a page may do to a run takes a token.
//
// What each file must hold: metrics.jsonl is required, but may be empty. The others are optional:
// without them the page says what is missing. A file that is there but damaged is an error that
// names the file and, for metrics.jsonl, the line. An iteration that stands in metrics.jsonl more
// than once (a run that was resumed evaluates some again) counts as its last line says.
//
// How a picture is made: a chart, a heat map or a graph becomes a drawing, which is a list of
// lines, areas and texts, each of a named style. A drawing can be written as SVG, with fixed
// colours or with the page's, which change with light and dark, or painted as PNG by gonum's
// plotting canvas. So all three show the same.
//
// Conventions. Accuracies are fractions of 1 and shown in percent; bits are cumulative over all
// agents, counted once at the sending side. A number that is missing or null is NaN in memory and a
// dash on the page. Text from files is data: it is escaped wherever it appears. Files are written
// beside their final name and renamed, so that no reader sees half of one.
//
// Where to look next: plots.go, report.go and compare.go, then chart.go and drawing.go; for the
// live page server.go, stream.go and follow.go, then static/page.js.
package web
