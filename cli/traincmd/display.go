package traincmd

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/data"
	"fspda/device"
	"fspda/train"
)

// display shows a run to its user: its curves above a progress bar on a terminal, log lines
// elsewhere, and a table at the end.
type display struct {
	flags  *trainFlags
	setup  *train.Setup
	model  string
	device string
	stdout io.Writer
	log    *zap.Logger

	terminal *terminal // nil where the standard error is no terminal
	curves   curves
	forecast *train.Forecast        // time and memory of the run; nil: not known
	from     int                    // iteration at which the run begins, or is resumed
	meter    *command.ProgressMeter // guarded by mu, as text
	text     string
	mu       sync.Mutex

	iteration atomic.Int64 // iteration of agent 0
	quit      chan struct{}
	once      sync.Once
	wg        sync.WaitGroup
}

func newDisplay(f *trainFlags, s *train.Setup, model, device string, stdout, stderr io.Writer) *display {
	d := &display{flags: f, setup: s, model: model, device: device, stdout: stdout, quit: make(chan struct{}),
		meter: command.NewProgressMeter(s), log: newLogger(f, stderr)}
	if file, ok := stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) && !f.quiet && !f.json {
		d.terminal = newTerminal(file)
		// the bar shows the content of log lines of lower levels
		d.log = zap.New(zapcore.NewCore(newLineEncoder(), zapcore.AddSync(d.terminal), zapcore.WarnLevel))
	}
	return d
}

// newBar makes a progress bar, which disappears at the end.
func newBar(w io.Writer, iterations int) *progressbar.ProgressBar {
	return progressbar.NewOptions(iterations, progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("starting"),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false), progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
}

// newLogger logs plain lines or JSON lines, or errors only.
func newLogger(f *trainFlags, w io.Writer) *zap.Logger {
	level, enc := zapcore.InfoLevel, newLineEncoder()
	if f.quiet {
		level = zapcore.ErrorLevel
	}
	if f.json {
		enc = zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	}
	return zap.New(zapcore.NewCore(enc, zapcore.Lock(zapcore.AddSync(w)), level))
}

// begin logs a description of the run that is about to start, and starts the bar.
func (d *display) begin(folder string) {
	c := d.setup.Config
	d.log.Info("training", zap.Strings("what", d.what()), zap.Int("iterations", c.Iterations),
		zap.String("folder", folder), zap.Uint64("seed", c.Seed), zap.Int("threads",
			d.setup.Threads), zap.Int("threads_per_agent", setup.AgentThreads(c.Stored())))
	lines := d.what()
	if d.from > 0 {
		resumed := fmt.Sprintf("resumed at iteration %s of %s", command.Thousands(uint64(d.from)),
			command.Thousands(uint64(c.Iterations)))
		d.log.Info(resumed)
		lines = append(lines, resumed)
	}
	if d.forecast != nil {
		d.meter.Expect(d.forecast.Iterations, d.forecast.Total)
		d.log.Info("forecast: " + forecastLine(*d.forecast))
		lines = append(lines, forecastLine(*d.forecast))
	}
	if d.terminal == nil {
		return
	}
	d.iteration.CompareAndSwap(0, int64(d.from))
	fmt.Fprintf(d.terminal, "%s\n%s\n", strings.Join(lines, "\n"), folder)
	d.terminal.bar = newBar(d.terminal.w, c.Iterations)
	d.wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				d.terminal.move(d.iteration.Load(), d.progress())
			case <-d.quit:
				return
			}
		}
	})
}

// what returns a description of the run in a few lines.
func (d *display) what() []string {
	c := d.setup.Config
	lines := []string{
		fmt.Sprintf("%s, %s, d = %s", c.Algo, d.model, command.Thousands(uint64(d.setup.Dim))),
		fmt.Sprintf("%d agents, %s data%s, %s", c.Agents, c.Data, decoded(d.setup.Set), c.Partition),
		fmt.Sprintf("%s, %d threads, %d an agent", d.device, d.setup.Threads, setup.AgentThreads(c.Stored())),
	}
	if about := d.setup.Set.Describe(); about != "" {
		lines = append(lines, about)
	}
	if !d.setup.AllReduces() {
		lines = append(lines, fmt.Sprintf("graph %s, %s, %s %s of the coordinates", c.Graph, c.Edges, c.Mask,
			command.Percent(d.setup.Mask.Density())))
	}
	if parts := d.setup.Traits.Parts; len(parts) > 1 {
		lines = append(lines, fmt.Sprintf("%d parts by layers, the largest has %s of the coordinates", len(parts),
			command.Percent(float64(largest(parts))/float64(d.setup.Dim))))
	}
	if share := d.setup.OptimizerShare; share > 0 {
		lines = append(lines, fmt.Sprintf("%s, whose matrix products are %s of a gradient's", c.Optimizer,
			command.Percent(share)))
	}
	return lines
}

// largest is the number of coordinates of the largest part.
func largest(parts [][]device.Range) (most int) {
	for _, ranges := range parts {
		n := 0
		for _, r := range ranges {
			n += r.To - r.From
		}
		most = max(most, n)
	}
	return most
}

// decoded names the JPEG decoder of a data set that uses another than usual.
func decoded(set *data.Set) string {
	if set.Decoder() == data.GoJPEG {
		return " by image/jpeg"
	}
	return ""
}

// step moves the bar.
func (d *display) step(t int) { d.iteration.Store(int64(t)) }

// progress is the text before the bar: the latest evaluation, and the time left.
func (d *display) progress() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if left := d.meter.Left(int(d.iteration.Load())); left > 0 {
		return d.text + " " + command.Seconds(left) + " left"
	}
	return d.text
}

// latest describes an evaluation in a few words, without numbers that are not known yet.
func (d *display) latest(r train.Row) string {
	var words []string
	add := func(known train.Num, format string, args ...any) {
		if known == known {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(r.TrainLossAvg, "loss %.4f", float64(r.TrainLossAvg))
	if r.Perplexity == r.Perplexity {
		add(r.TestLossAvg, "val %.4f", float64(r.TestLossAvg))
	} else {
		add(r.TestAccAvg, "acc %.2f%%", 100*float64(r.TestAccAvg))
	}
	words = append(words, command.Bits(r.BitsTotal))
	if rate := d.meter.String(); rate != "" {
		words = append(words, rate)
	}
	return strings.Join(words, " ")
}

func (d *display) row(r train.Row) {
	d.mu.Lock()
	d.meter.Row(r)
	d.text = d.latest(r)
	d.mu.Unlock()
	if d.terminal != nil {
		d.curves.add(r)
		d.terminal.set(d.curves.lines(d.terminal.width()))
		return
	}
	if !d.flags.json {
		d.log.Info(d.line(r))
		return
	}
	fields := []zap.Field{zap.Int("iteration", r.Iteration)}
	for _, n := range []struct {
		key   string
		value float64
	}{{"epoch", float64(r.Epoch)}, {"train_loss", float64(r.TrainLossAvg)}, {"test_acc", float64(r.TestAccAvg)},
		{"test_acc_min", float64(r.TestAccMin)}, {"consensus", float64(r.Consensus)},
		{d.meter.Unit() + "_per_s", math.Round(d.meter.Rate())},
		{"wall_s", float64(r.WallS)}} {
		if v := command.Round(n.value); !math.IsNaN(v) && !math.IsInf(v, 0) { // JSON has no such numbers
			fields = append(fields, zap.Float64(n.key, v))
		}
	}
	d.log.Info("evaluation", append(fields, zap.Uint64("bits_total", r.BitsTotal))...)
}

// line writes an evaluation as one line, with aligned columns.
func (d *display) line(r train.Row) string {
	total := command.Thousands(uint64(d.setup.Config.Iterations))
	line := fmt.Sprintf("evaluation %*s of %s  epoch %6.2f  loss %-9s accuracy %6.2f %%  worst agent%s "+
		"%6.2f %%  consensus %-9s %11s  %s", len(total), command.Thousands(uint64(r.Iteration)), total,
		float64(r.Epoch), command.Number(r.TrainLossAvg), 100*float64(r.TestAccAvg), d.looked(),
		100*float64(r.TestAccMin), command.Number(r.Consensus), command.Bits(r.BitsTotal),
		command.Seconds(float64(r.WallS)))
	if p := r.Perplexity; p == p {
		line += fmt.Sprintf("  validation loss %.4f, perplexity %.3f", float64(r.TestLossAvg), float64(p))
	}
	if rate := d.meter.String(); rate != "" {
		line += "  " + rate
	}
	return line
}

// looked says how many agents an evaluation looks at, if it is not all.
func (d *display) looked() string {
	if k := d.setup.EvaluatedAgents(); k < d.setup.Graph.N {
		return fmt.Sprintf(" of %d looked at", k)
	}
	return ""
}

// close removes the bar; of a run that is not done also the curves, which would stay as they are.
// It may be called more than once.
func (d *display) close(done bool) {
	d.once.Do(func() {
		close(d.quit)
		d.wg.Wait()
		if d.terminal != nil {
			d.terminal.end(done)
		}
	})
}

// stopped logs how to resume a stopped run.
func (d *display) stopped(folder string, res *train.Result) {
	resume := "fspda train --out " + folder + " --resume"
	if !d.flags.json {
		d.log.Warn(fmt.Sprintf("stopped at iteration %s of %s; a checkpoint was written; %s continues",
			command.Thousands(uint64(res.Iteration)), command.Thousands(uint64(d.setup.Config.Iterations)), resume))
		return
	}
	d.log.Warn("stopped; a checkpoint was written", zap.Int("iteration", res.Iteration),
		zap.Int("of", d.setup.Config.Iterations), zap.String("resume", resume))
}
