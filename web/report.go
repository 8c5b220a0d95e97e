package web

import (
	"bytes"
	_ "embed" // the template of the page
	"fmt"
	"html/template"
	"path/filepath"

	"fspda/internal/wholefile"
)

//go:embed report.html.tmpl
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// view is the input of the template, which escapes every text. Only drawings and style sheets, made
// by this package, are inserted verbatim.
type view struct {
	Name, Status, StatusClass, Sentence string
	Evaluations                         int
	Missing                             []string // files that do not exist
	CSS                                 template.CSS
	Headline, Results, Bits             []fact
	Charts                              []chartView
	Modes                               []string
	Milestones                          []milestone
	Split, Graph                        template.HTML
	SplitNote, GraphNote                string
	Config, Command                     string
	Environment                         []fact
}

// chartView is one chart with each x axis.
type chartView struct {
	Title           string
	Iteration, Bits template.HTML
}

// WriteReport reads dir, the folder of a run, and writes dir/report.html: one page with the
// settings, the results, the sent data, the data split, and the command to repeat the run. The page
// is self-contained, supports light and dark themes, phones and printing. It also writes report.md,
// the same report as Markdown with the pictures of plots.
//
// metrics.jsonl is required. config.yaml, summary.json and shards.json are optional; the page says
// which are missing. A damaged file is an error that names it. An existing page is then left
// unchanged.
func WriteReport(dir string) error {
	r, missing, err := readRun(dir)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	v := r.view(missing)
	if err := page.Execute(&b, v); err != nil {
		return fmt.Errorf("web: render report of %s: %w", dir, err)
	}
	if err := wholefile.Publish(filepath.Join(dir, "report.html"), b.Bytes()); err != nil {
		return fmt.Errorf("web: write report: %w", err)
	}
	if err := wholefile.Publish(filepath.Join(dir, "report.md"), v.markdown()); err != nil {
		return fmt.Errorf("web: write report: %w", err)
	}
	return nil
}

// readRun reads all files of a run and lists the missing ones.
func readRun(dir string) (r *run, missing []string, err error) {
	r = &run{name: dir}
	if abs, err := filepath.Abs(dir); err == nil {
		r.name = filepath.Base(abs)
	}
	if r.metrics, err = readMetrics(filepath.Join(dir, "metrics.jsonl")); err != nil {
		return nil, nil, err
	}
	if r.yaml, r.config, err = readConfig(filepath.Join(dir, "config.yaml")); err != nil {
		return nil, nil, err
	}
	if r.summary, err = readSummary(filepath.Join(dir, "summary.json")); err != nil {
		return nil, nil, err
	}
	if r.shards, err = readShards(filepath.Join(dir, "shards.json")); err != nil {
		return nil, nil, err
	}
	if r.yaml == "" {
		missing = append(missing, "config.yaml")
	}
	if r.summary == nil {
		missing = append(missing, "summary.json")
	}
	if r.shards == nil {
		missing = append(missing, "shards.json")
	}
	return r, missing, nil
}

// view computes all texts and drawings of the page.
func (r *run) view(missing []string) *view {
	v := &view{
		Name: clean(r.name), Sentence: r.sentence(), Evaluations: r.metrics.rows, Missing: missing,
		CSS:      template.CSS(paletteCSS() + stylesCSS(pageColour)),
		Headline: r.headline(), Results: r.results(), Bits: r.bits(), Milestones: r.milestones(),
		Config: clean(r.yaml), Command: r.summary.text("command"), Environment: r.environment(),
	}
	v.Status, v.StatusClass = r.status()
	for _, m := range modes {
		v.Modes = append(v.Modes, m.name)
	}
	axes := xAxesOf(r.accounting())
	for i := range charts {
		c := &charts[i]
		v.Charts = append(v.Charts, chartView{c.title, inline(c.draw(r.metrics, &axes[0])),
			inline(c.draw(r.metrics, &axes[1]))})
	}
	if r.shards == nil {
		return v
	}
	if d := r.shards.heatMap(); d != nil {
		v.Split, v.SplitNote = inline(d), r.shards.splitNote()
	}
	if d := r.shards.graph(r.setting("graph")); d != nil {
		v.Graph, v.GraphNote = inline(d), r.shards.graphNote()
	}
	return v
}

// inline returns a drawing as trusted HTML: its texts are escaped.
func inline(d *drawing) template.HTML { return template.HTML(d.svgInline()) }
