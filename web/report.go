package web

import (
	"bytes"
	_ "embed" // the template of the page
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path/filepath"

	"fspda/internal/bounded"
)

//go:embed report.html.tmpl
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// view is the input of the template, which escapes every text. Only drawings and style sheets, made
// by this package, are inserted verbatim.
type view struct {
	Name, Status, StatusClass, Sentence string
	Failure                             string // why it has failed to converge
	Evaluations                         int
	Missing                             []string // files that do not exist
	CSS                                 template.CSS
	Headline, Results, Bits             []fact
	modelViews
	Modes           []string
	Milestones      []milestone
	Split, Graph    figure
	Config, Command string
	Environment     []fact
	Next            string // when the next evaluation comes; empty if none does
}

// figure is a drawing with the table behind it. The zero value is none.
type figure struct {
	Drawing template.HTML
	Note    string
	Table   PageTable
}

// modelViews show how the model came along.
type modelViews struct {
	Charts  []chartView
	Samples []textSample
}

// chartView is one chart with each x axis.
type chartView struct {
	ID, Title       string
	Iteration, Bits template.HTML
	Table           PageTable
}

// WriteReport reads dir, the folder of a run, and writes dir/report.html: one page with the
// settings, the results, the sent data, the data split, and the command to repeat the run. The page
// is self-contained, supports light and dark themes, phones and printing. It also writes report.md,
// the same report as Markdown with the images of folder plots.
//
// metrics.jsonl is required. config.yaml, summary.json and shards.json are optional; the page says
// which are missing. A damaged file is an error that names it. An existing page is then left
// unchanged.
func WriteReport(dir string) error {
	r, err := readRun(dir)
	if err != nil {
		return err
	}
	v := r.view()
	if err := publishPage(page, v, filepath.Join(dir, "report.html")); err != nil {
		return err
	}
	return publish(filepath.Join(dir, "report.md"), v.markdown())
}

func publishPage(t *template.Template, view any, path string) error {
	var b bytes.Buffer
	if err := t.Execute(&b, view); err != nil {
		return fmt.Errorf("web: render %s: %w", path, err)
	}
	return publish(path, b.Bytes())
}

func readRun(dir string) (*run, error) {
	r := &run{name: dir}
	if abs, err := filepath.Abs(dir); err == nil {
		r.name = filepath.Base(abs)
	}
	var err error
	if r.metrics, err = readMetrics(filepath.Join(dir, "metrics.jsonl")); err != nil {
		return nil, err
	}
	read := func(path string) ([]byte, error) { return bounded.File(path, maxFileSize) }
	return r, errors.Join(r.readFiles(dir, read)...)
}

// readFiles reads the files of folder dir that describe the run: those that exist go into r, the
// names of the others into r.missing. It goes on after an error.
func (r *run) readFiles(dir string, read func(path string) ([]byte, error)) (errs []error) {
	text := func(name string) (path string, text []byte) {
		path = filepath.Join(dir, name)
		text, err := read(path)
		if errors.Is(err, fs.ErrNotExist) {
			r.missing = append(r.missing, name)
		} else if err != nil {
			errs = append(errs, fmt.Errorf("web: read: %w", err))
		}
		return path, text
	}
	var err [4]error
	r.yaml, r.config, err[0] = parseConfig(text("config.yaml"))
	r.summary, err[1] = parseSummary(text("summary.json"))
	r.shards, err[2] = parseShards(text("shards.json"))
	r.samples, err[3] = readSamples(filepath.Join(dir, "samples.jsonl"), read)
	return append(errs, err[:]...)
}

// view computes all texts and drawings of the page.
func (r *run) view() *view {
	v := &view{
		Name: clean(r.name), Sentence: r.sentence(false), Evaluations: r.metrics.rows, Missing: r.missing,
		CSS:      template.CSS(paletteCSS() + stylesCSS(pageColour)),
		Headline: r.headline(), Results: r.results(), Bits: r.bits(), Milestones: r.milestones(),
		Config: clean(r.yaml), Command: r.summary.text("command"), Environment: r.environment(),
	}
	v.Status, v.StatusClass = r.status()
	v.Failure = r.summary.text(failureKey)
	v.Samples = lastSamples(r.samples)
	if at, ok := r.nextEvaluation(); ok {
		v.Next = grouped(at)
	}
	for _, m := range modes {
		v.Modes = append(v.Modes, m.name)
	}
	axes := xAxesOf(r.accounting())
	for _, c := range chartsOf(r.metrics) {
		v.Charts = append(v.Charts, chartView{c.id, c.title, inline(c.draw(r.metrics, &axes[0])),
			inline(c.draw(r.metrics, &axes[1])), c.table(r.metrics, axes)})
	}
	if r.shards == nil {
		return v
	}
	if d := r.shards.heatMap(); d != nil {
		v.Split = figure{inline(d), r.shards.splitNote(), r.shards.splitTable()}
	}
	if d := r.shards.graph(r.setting("graph")); d != nil {
		v.Graph = figure{inline(d), r.shards.graphNote(), r.shards.graphTable()}
	}
	return v
}

// inline returns a drawing as trusted HTML: its texts are escaped.
func inline(d *drawing) template.HTML { return template.HTML(d.svgInline()) }
