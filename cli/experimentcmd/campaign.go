package experimentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/data"
	"fspda/device"
	"fspda/internal/cgroup"
	"fspda/train"
)

// opener resolves the configurations of many runs, and opens each device and each data set once.
type opener struct {
	devs setup.DeviceCache
	mu   sync.Mutex
	sets map[setKey]*data.Set
}

// setKey holds the values on which a data set depends.
type setKey struct {
	name    string
	options data.OpenOptions
}

func newOpener() *opener { return &opener{sets: map[setKey]*data.Set{}} }

// open resolves a configuration.
func (o *opener) open(c train.Config) (*train.Setup, train.Model, device.Device, error) {
	if err := c.Check(); err != nil {
		return nil, nil, nil, err
	}
	set, err := o.set(c)
	if err != nil {
		return nil, nil, nil, err
	}
	dev, err := o.devs.Get(c)
	if err != nil {
		return nil, nil, nil, err
	}
	s, m, err := setup.Resolve(c, set, dev)
	if err != nil {
		return nil, nil, nil, err
	}
	return s, m, dev.Device, nil
}

func (o *opener) set(c train.Config) (*data.Set, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := setKey{c.Data, setup.DataOptions(c)}
	key.options.Workers = 0 // changes no example
	if s, ok := o.sets[key]; ok {
		return s, nil
	}
	s, err := setup.OpenData(c)
	if err == nil {
		o.sets[key] = s
	}
	return s, err
}

// runCampaign trains all runs of a campaign by run, and shows a line for each.
func runCampaign(ctx context.Context, c *bench.Campaign,
	run func(context.Context, *bench.Campaign) ([]*bench.Outcome, error), quiet bool,
	stderr io.Writer) ([]*bench.Outcome, error) {

	c.Threads = cmp.Or(c.Threads, cgroup.Processors())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.Threads))
	c.Version, c.Report = command.Version(), true
	show := func(bench.Event) {}
	if !quiet {
		show = newStatusLines(stderr, c.Jobs).on
	}
	partial := &partialTable{folder: c.Folder}
	c.OnEvent = func(e bench.Event) {
		show(e)
		partial.add(e.Outcome)
	}
	outcomes, err := run(ctx, c)
	if err == nil {
		err = partial.err
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(stderr, "stopped; the same command resumes the runs in %s\n", c.Folder)
		return outcomes, command.ErrStopped
	}
	return outcomes, err
}

// partialTable writes the table of the runs that have ended, whenever one more has.
type partialTable struct {
	folder string
	made   []*bench.Outcome
	err    error
}

func (p *partialTable) add(o *bench.Outcome) {
	if o == nil || p.err != nil {
		return
	}
	if i := slices.IndexFunc(p.made, func(m *bench.Outcome) bool { return m.Folder == o.Folder }); i >= 0 {
		p.made[i] = o // it had been stopped at an earlier stage of a search
	} else {
		p.made = append(p.made, o)
	}
	p.err = writeTable(p.folder, tableOf(p.made[0].Job.Config.Accounting, p.made))
}

// statusLines shows the progress of the runs of a campaign: on a terminal by a line for each run
// that is updated, elsewhere by a line at each tenth.
type statusLines struct {
	w     io.Writer
	live  bool
	jobs  []bench.Job
	width int
	state []runState
	shown int       // lines on the terminal that are updated
	drawn time.Time // time of the last update

	warned []string // the warnings that were printed: many runs may have the same
}

type runState struct {
	running  bool
	at       int
	total    int                    // iterations of the run
	meter    *command.ProgressMeter // nil: not begun
	row      train.Row
	reported int       // tenths that were printed
	said     time.Time // time of the latest line before the first tenth
}

func newStatusLines(w io.Writer, jobs []bench.Job) *statusLines {
	b := &statusLines{w: w, jobs: jobs, state: make([]runState, len(jobs))}
	if file, ok := w.(*os.File); ok {
		b.live = term.IsTerminal(int(file.Fd()))
	}
	for _, j := range jobs {
		b.width = max(b.width, len(j.Name))
	}
	return b
}

func (b *statusLines) on(e bench.Event) {
	s, job := &b.state[e.Job], b.jobs[e.Job]
	switch e.Kind {
	case bench.AlreadyDone:
		b.say(fmt.Sprintf("%-*s  already done  %s", b.width, job.Name, b.numbers(e.Row)))
		return
	case bench.LeftOut:
		b.say(fmt.Sprintf("%-*s  is the same run as %s", b.width, job.Name, b.jobs[e.Same].Name))
		return
	case bench.Ended:
		s.running, s.meter = false, nil
		b.say(fmt.Sprintf("%-*s  %s in %s   %s", b.width, job.Name, e.Outcome.Status, command.Seconds(e.Outcome.WallS),
			b.numbers(e.Row)))
		return
	case bench.Started:
		s.running, s.at, s.reported, s.row, s.said = true, 0, 0, train.Row{}, time.Now()
		s.total = e.Setup.Config.Iterations // the job may give epochs in place of iterations
		if !b.live {
			fmt.Fprintln(b.w, b.beginning(e))
		}
		for _, text := range e.Setup.Warnings {
			if !slices.Contains(b.warned, text) {
				b.warned = append(b.warned, text)
				b.say(fmt.Sprintf("%-*s  warning: %s", b.width, job.Name, text))
			}
		}
	case bench.Evaluated:
		s.follow(e)
	}
	s.at = max(s.at, e.Iteration)
	if b.live {
		if time.Since(b.drawn) > 200*time.Millisecond {
			b.redraw()
		}
		return
	}
	at := s.at
	if job.Config.EvalPoints >= 10 { // the numbers of a line belong to its share
		at = s.row.Iteration
	}
	tenths := 0
	if s.total > 0 {
		tenths = 10 * at / s.total
	}
	early := tenths == 0 && time.Since(s.said) > earlyLines
	if early {
		at = s.at
	}
	if s.running && (tenths > s.reported && tenths < 10 || early) {
		s.reported, s.said = tenths, time.Now()
		fmt.Fprintln(b.w, b.line(e.Job, at))
	}
}

// earlyLines is the time between the lines of a run before its first tenth.
const earlyLines = time.Minute

// beginning describes the work that lies before a run that starts or goes on.
func (b *statusLines) beginning(e bench.Event) string {
	verb, c := "begins", e.Setup.Config
	if e.Iteration > 0 {
		verb = fmt.Sprintf("goes on at %d", e.Iteration)
	}
	text := fmt.Sprintf("%-*s  %s: %d iterations, %d evaluations", b.width, b.jobs[e.Job].Name, verb, c.Iterations,
		e.Setup.EvalCount()+1)
	if c.EvalTest > 0 {
		text += fmt.Sprintf(" of %d test examples", c.EvalTest)
	}
	return text + ", about " + command.Bytes(e.Memory) + " of memory"
}

// say prints a line above those that are updated.
func (b *statusLines) say(line string) {
	b.clear()
	fmt.Fprintln(b.w, line)
	b.redraw()
}

func (b *statusLines) clear() {
	for ; b.shown > 0; b.shown-- {
		fmt.Fprint(b.w, "\x1b[1A\x1b[2K")
	}
}

func (b *statusLines) redraw() {
	if !b.live {
		return
	}
	b.clear()
	b.drawn = time.Now()
	for i := range b.state {
		if b.state[i].running {
			fmt.Fprintln(b.w, b.line(i, b.state[i].at))
			b.shown++
		}
	}
}

// follow takes an evaluation. A run that begins anew, or goes on, has a meter of its own.
func (s *runState) follow(e bench.Event) {
	if s.meter == nil {
		s.meter = command.NewProgressMeter(e.Setup)
	}
	s.row = e.Row
	s.meter.Row(e.Row)
}

// line writes the progress of a run at an iteration: share, rate, time left, and its latest
// evaluation.
func (b *statusLines) line(i, at int) string {
	s := b.state[i]
	done := min(1, float64(at)/float64(s.total))
	const cells = 16
	full := int(done * cells)
	text := fmt.Sprintf("%-*s  %s%s %3.0f %%", b.width, b.jobs[i].Name, strings.Repeat("━", full),
		strings.Repeat("┄", cells-full), 100*done)
	if s.meter != nil && s.meter.String() != "" {
		text += "  " + s.meter.String()
		if left := s.meter.Left(s.at); left > 0 {
			text += ", " + command.Seconds(left) + " left"
		}
	}
	return text + "   " + b.numbers(s.row)
}

func (b *statusLines) numbers(r train.Row) string {
	if r.Iteration == 0 {
		return ""
	}
	return fmt.Sprintf("loss %s, accuracy %.2f %% (worst agent %.2f %%), %s", command.Number(r.TrainLossWorst),
		100*float64(r.TestAccAvg), 100*float64(r.TestAccMin), command.Bits(r.BitsTotal))
}

// writeTable writes the numbers of runs as table.md, table.csv and table.tex.
func writeTable(folder string, t *bench.Table) error {
	var md, csv, tex strings.Builder
	if err := errors.Join(t.WriteMarkdown(&md), t.WriteCSV(&csv), t.WriteLaTeX(&tex)); err != nil {
		return err
	}
	return errors.Join(command.WriteFile(filepath.Join(folder, "table.md"), md.String()),
		command.WriteFile(filepath.Join(folder, "table.csv"), csv.String()),
		command.WriteFile(filepath.Join(folder, "table.tex"), tex.String()))
}

func bitsColumn(accounting string) string { return "bits_" + strings.ReplaceAll(accounting, "-", "_") }

func setKeys(c *train.Config, pairs []string) error {
	var errs []error
	for _, p := range pairs {
		line, err := bench.KeyValue(p)
		if err == nil {
			err = c.Parse("--set", []byte(line))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
