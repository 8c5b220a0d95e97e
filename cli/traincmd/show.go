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
	"fspda/train"
)

// show is what a person sees of a run: its curves above a progress bar on a terminal, log lines
// elsewhere, and a table at the end.
type show struct {
	flags  trainFlags
	setup  *train.Setup
	model  string
	engine string // what it computes on
	stdout io.Writer
	log    *zap.Logger

	terminal *screen // nil where there is none
	curves   curves
	ahead    string    // what the run will take; empty: not known
	before   train.Row // the last one
	rows     int

	at   atomic.Int64 // iteration of agent 0
	quit chan struct{}
	once sync.Once
	wg   sync.WaitGroup
}

func newShow(f trainFlags, s *train.Setup, model string, stdout, stderr io.Writer) *show {
	sh := &show{flags: f, setup: s, model: model, stdout: stdout, quit: make(chan struct{}), log: newLogger(f, stderr)}
	if file, ok := stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) && !f.quiet && !f.json {
		sh.terminal = newScreen(file)
		// the bar tells the rest
		sh.log = zap.New(zapcore.NewCore(lineEncoder(), zapcore.AddSync(sh.terminal), zapcore.WarnLevel))
	}
	return sh
}

// newBar makes a bar with rate and time left, which takes itself away at the end.
func newBar(w io.Writer, iterations int) *progressbar.ProgressBar {
	return progressbar.NewOptions(iterations, progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("starting"),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("it"),
		progressbar.OptionSetPredictTime(true), progressbar.OptionSetElapsedTime(true), progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
}

// newLogger makes plain lines, JSON lines, or errors only.
func newLogger(f trainFlags, w io.Writer) *zap.Logger {
	level, enc := zapcore.InfoLevel, lineEncoder()
	if f.quiet {
		level = zapcore.ErrorLevel
	}
	if f.json {
		enc = zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	}
	return zap.New(zapcore.NewCore(enc, zapcore.Lock(zapcore.AddSync(w)), level))
}

func lineEncoder() zapcore.Encoder {
	c := zap.NewDevelopmentEncoderConfig()
	c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
	c.EncodeLevel = zapcore.LowercaseLevelEncoder
	c.ConsoleSeparator = " "
	return zapcore.NewConsoleEncoder(c)
}

// begin says what is about to run, and starts the bar.
func (s *show) begin(folder string) {
	c := s.setup.Config
	s.log.Info("training", zap.Strings("what", s.what()), zap.Int("iterations", c.Iterations),
		zap.String("folder", folder), zap.Uint64("seed", c.Seed), zap.Int("threads",
			s.setup.Threads), zap.Int("threads_per_agent", setup.AgentThreads(c)))
	if s.ahead != "" && s.terminal == nil {
		s.log.Info("forecast: " + s.ahead)
	}
	if s.terminal == nil {
		return
	}
	lines := s.what()
	if s.ahead != "" {
		lines = append(lines, s.ahead)
	}
	fmt.Fprintf(s.terminal, "%s\n%s\n", strings.Join(lines, "\n"), folder)
	s.terminal.bar = newBar(s.terminal.w, c.Iterations)
	s.wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.terminal.move(s.at.Load())
			case <-s.quit:
				return
			}
		}
	})
}

// what is the run in a few lines.
func (s *show) what() []string {
	c := s.setup.Config
	lines := []string{
		fmt.Sprintf("%s, %s, d = %s", c.Algo, s.model, command.Thousands(uint64(s.setup.Dim))),
		fmt.Sprintf("%d agents, %s data%s, %s", c.Agents, c.Data, decoded(s.setup.Set), c.Partition),
		fmt.Sprintf("%s, %d threads, %d an agent", s.engine, s.setup.Threads, setup.AgentThreads(c)),
	}
	if !s.setup.Collective {
		lines = append(lines, fmt.Sprintf("graph %s, %s, %s %s of the coordinates", c.Graph, c.Edges, c.Mask,
			command.Percent(s.setup.Mask.Density())))
	}
	return lines
}

// decoded says what decodes the pictures of a set, if anything does.
func decoded(set *data.Set) string {
	switch set.Decoder() {
	case data.Turbo:
		return " by libjpeg-turbo"
	case data.GoJPEG:
		return " by Go's JPEG decoder"
	}
	return ""
}

// step moves the bar.
func (s *show) step(t int) { s.at.Store(int64(t)) }

// row tells of an evaluation.
func (s *show) row(r train.Row) {
	images := s.images(r)
	if s.terminal != nil {
		text := fmt.Sprintf("loss %.4f acc %.2f%% %s", float64(r.TrainLossAvg), 100*float64(r.TestAccAvg),
			command.Bits(r.BitsTotal))
		if images > 0 {
			text += fmt.Sprintf(" %s images/s", command.Thousands(uint64(images)))
		}
		s.curves.add(r)
		s.terminal.set(s.curves.lines(s.terminal.width()), text)
		return
	}
	if !s.flags.json {
		s.log.Info(s.line(r, images))
		return
	}
	s.log.Info("evaluation", zap.Int("iteration", r.Iteration), zap.Float64("epoch", command.Round(float64(r.Epoch))),
		zap.Float64("train_loss", command.Round(float64(r.TrainLossAvg))),
		zap.Float64("test_acc", command.Round(float64(r.TestAccAvg))), zap.Float64("test_acc_min",
			command.Round(float64(r.TestAccMin))), zap.Float64("consensus", command.Round(float64(r.Consensus))),
		zap.String("bits", command.Bits(r.BitsTotal)), zap.Float64("images_per_s", math.Round(images)), zap.Float64("wall_s",
			command.Round(float64(r.WallS))))
}

// images is how many examples a second the agents trained on since the row before; 0 at the first.
func (s *show) images(r train.Row) float64 {
	was := s.before
	s.before = r
	s.rows++
	if took := float64(r.WallS - was.WallS); s.rows > 1 && took > 0 {
		return float64(r.Epoch-was.Epoch) * float64(s.setup.Set.Train.Len()) / took
	}
	return 0
}

// line is an evaluation in one line: columns that stand below each other.
func (s *show) line(r train.Row, images float64) string {
	total := command.Thousands(uint64(s.setup.Config.Iterations))
	line := fmt.Sprintf("evaluation %*s of %s  epoch %6.2f  loss %-9s accuracy %6.2f %%  worst agent %6.2f %%  consensus %-9s %11s  %s", len(total), command.Thousands(uint64(r.Iteration)), total,
		float64(r.Epoch), command.Number(r.TrainLossAvg), 100*float64(r.TestAccAvg), 100*float64(r.TestAccMin), command.Number(
			r.Consensus), command.Bits(r.BitsTotal), command.Seconds(float64(r.WallS)))
	if images > 0 {
		line += fmt.Sprintf("  %s images/s", command.Thousands(uint64(images)))
	}
	return line
}

// close takes the bar away. It may be called more than once.
func (s *show) close() {
	s.once.Do(func() {
		close(s.quit)
		s.wg.Wait()
		if s.terminal != nil {
			s.terminal.end()
		}
	})
}

// stopped says where a stopped run can be taken up.
func (s *show) stopped(folder string, res *train.Result) {
	s.log.Warn("stopped; a checkpoint is left", zap.Int("iteration", res.Iteration),
		zap.Int("of", s.setup.Config.Iterations), zap.String("resume", "fspda train --out "+folder+" --resume"))
}
