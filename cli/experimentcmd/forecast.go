package experimentcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/train"
)

const (
	// askFrom is the forecast from which on the user is asked, on a terminal.
	askFrom = time.Hour
	// sureBelow is the forecast by the first run below which the other runs are not measured.
	sureBelow = time.Minute
)

// forecast says how long the runs of a campaign will take before the first of them starts, and asks
// if that is above an hour.
type forecast struct {
	open   *opener
	yes    bool
	stdin  io.Reader
	stderr io.Writer
	asked  bool
}

// before is the function of that name of a campaign.
func (f *forecast) before(ctx context.Context, runs []bench.Unfinished) error {
	if f.asked || len(runs) == 0 {
		return nil
	}
	f.asked = true
	took, err := f.measure(ctx, runs)
	if err != nil {
		return err
	}
	fmt.Fprintf(f.stderr, "about %s for %d runs on this machine\n", command.Seconds(took.Seconds()), len(runs))
	if took < askFrom || f.yes {
		return nil
	}
	file, ok := f.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil // nobody can answer
	}
	return f.ask(file)
}

func (f *forecast) ask(from io.Reader) error {
	fmt.Fprint(f.stderr, "start (y/n)? ")
	answer, err := bufio.NewReader(from).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
		return nil
	}
	fmt.Fprintln(f.stderr, "nothing was started; --scale shortens the runs, and --yes does not ask")
	return command.ErrStopped
}

// measure times a few iterations and the parts of an evaluation of each kind of run.
func (f *forecast) measure(ctx context.Context, runs []bench.Unfinished) (total time.Duration, err error) {
	known := map[string]train.Forecast{}
	iterations := 0
	for _, r := range runs {
		iterations += r.Config.Iterations
	}
	for _, r := range runs {
		c := r.Config
		kind := fmt.Sprint(c.Algo, c.Optimizer, c.Model, c.Hidden, c.Data, c.DataDir, c.Batch, c.Agents, c.Sampling,
			c.LocalSteps)
		got, ok := known[kind]
		if !ok {
			s, m, dev, err := f.open.open(c)
			if err != nil {
				return 0, err
			}
			if got, err = train.ForecastRun(ctx, s, dev, m, 0); err != nil {
				return 0, err
			}
			known[kind] = got
			rate := float64(got.Total) / float64(max(1, c.Iterations))
			if all := time.Duration(rate * float64(iterations)); len(known) == 1 && all < sureBelow {
				return all, nil
			}
		}
		left := float64(c.Iterations-r.From) / float64(max(1, c.Iterations))
		total += time.Duration(left * (got.Step.Seconds()*float64(c.Iterations) +
			got.Row.Seconds()*float64(c.EvalPoints+1)) *
			float64(time.Second))
	}
	return total, nil
}
