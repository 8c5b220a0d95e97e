package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"fspda/train"
)

// figure1 lists the flags of FSPDA-SA in figure 1 of the paper, on synthetic data of the same
// shape.
var figure1 = []string{"--algo", "fspda-sa", "--alpha", "0.0001", "--eta", "0.00001", "--gamma", "0.5", "--beta",
	"1", "--momentum", "0", "--density", "0.1", "--mask", "randk", "--edges", "one-edge", "--agents", "10", "--graph",
	"er10-published", "--partition", "sorted", "--batch", "256", "--model", "mlp", "--hidden", "100", "--activation",
	"sigmoid", "--weight-decay", "0.0001", "--data", "synthetic"}

// figure1 returns the flags of figure 1, of a smaller network and batch in a small call.
func (s shapes) figure1(more ...string) []string { return with(with(figure1, s.smaller...), more...) }

// with concatenates arguments.
func with(base []string, more ...string) []string {
	return append(append([]string{}, base...), more...)
}

// The parts that measure an iteration of figure 1 in float32: on a host that does nothing else, and
// in turns with PyTorch.
const (
	alonePart = "figure1/alone"
	stepPart  = "figure1/step-fp32"
)

// alone measures an iteration of figure 1 while nothing else computes on the host, then where the
// time of the GPU's launches goes. An iteration depends on how far the host is ahead.
func (o *Options) alone() Part {
	return Part{Name: alonePart, Limit: o.limit(20 * time.Second), Alone: true,
		Run: func(ctx context.Context, b *job) error {
			if _, err := b.figure1Step(ctx, "fp32"); err != nil {
				return err
			}
			b.out.Summary = fmt.Sprintf("%.1f µs an iteration", b.out.Values["iteration_us"])
			if err := b.save(); err != nil || slices.Contains(b.env, withoutMegakernel) { // then there are no phases
				return err
			}
			log := *b
			log.out = &Outcome{} // noting the times takes time
			log.env = append(slices.Clone(b.env), phasesVariable+filepath.Join(b.Out, "logs", "figure1-phases.txt"))
			if _, err := log.figure1Step(ctx, "fp32"); err != nil {
				b.out.note("without the times of phases: " + err.Error())
			}
			return nil
		}}
}

// phasesVariable has the program append where the time of launches goes to a file: see
// docs/performance.md.
const phasesVariable = "FSPDA_CUDA_PHASES="

// step measures an iteration of figure 1 here and in PyTorch.
func (o *Options) step(precision string) Part {
	return Part{Name: "figure1/step-" + precision, Limit: o.limit(40 * time.Second),
		Run: func(ctx context.Context, b *job) error {
			p, err := b.startPeer(ctx)
			if err != nil {
				return err
			}
			defer p.close()
			for range b.shapes().rounds {
				r, err := b.figure1Step(ctx, precision)
				if err != nil {
					return err
				}
				b.out.set("idle", r.Idle)
				for _, compiled := range b.shapes().modes(precision) {
					err := b.peers(ctx, p, compiled, 1, map[string]any{"kind": "figure1", "agents": 10, "batch": 256,
						"precision": precision})
					if err != nil {
						return err
					}
				}
			}
			b.out.Summary = joined(fmt.Sprintf("%.1f µs an iteration", b.out.Values["iteration_us"]), b.out.Summary)
			return nil
		}}
}

// stepReport is the output of bench step.
type stepReport struct {
	Iteration float64 `json:"iteration_ns"`
	Gradient  float64 `json:"gradient_ns"`
	Exchange  float64 `json:"exchange_ns"`
	Idle      float64 `json:"idle"`
}

// figure1Step measures an iteration of figure 1 and keeps the best measurement.
func (b *job) figure1Step(ctx context.Context, precision string) (r stepReport, err error) {
	args := b.shapes().figure1("--device", b.Device, "--precision", precision, "--time", b.shapes().turn, "--json")
	if err := b.report(ctx, "ours", &r, with([]string{"bench", "step"}, args...)...); err != nil {
		return r, err
	}
	b.out.best("ours", 1e9/r.Iteration)
	b.out.set("iteration_us", 1e6/b.out.Values["ours"])
	return r, nil
}

// launches measures an iteration of figure 1 with separate kernel launches or graphs instead of one
// cooperative launch.
func (o *Options) launches() Part {
	return Part{Name: "figure1/launches", Limit: o.limit(time.Minute), Run: func(ctx context.Context, b *job) error {
		b.env = append(b.env, withoutMegakernel)
		if _, err := b.figure1Step(ctx, "fp32"); err != nil {
			return err
		}
		b.out.Summary = fmt.Sprintf("%.1f µs an iteration without cooperative launches", b.out.Values["iteration_us"])
		return nil
	}}
}

// million runs figure 1 to its end, or a shorter run if that would take too long.
func (o *Options) million(s shapes) Part {
	return Part{Name: "figure1/million", Limit: o.limit(s.longest + 15*time.Second),
		Run: func(ctx context.Context, b *job) error {
			out, err := b.folder("million")
			if err != nil {
				return err
			}
			iterations := s.iterations
			if rate := b.rate; rate > 0 && float64(iterations)/rate > s.longest.Seconds() {
				iterations = min(iterations, max(100, int(rate*10))) // ten seconds suffice for the rate
			}
			wall, err := b.train(ctx, "run", out, s.figure1("--device", b.Device, "--metrics", "test",
				"--data-test", "100", "--iterations", strconv.Itoa(iterations), "--eval-points", "1"))
			if err != nil {
				return err
			}
			b.out.set("iterations", float64(iterations))
			b.out.set("seconds", wall)
			b.out.set("seconds_of_million", wall*1e6/float64(iterations))
			b.out.Summary = fmt.Sprintf("%d iterations in %.1f s", iterations, wall)
			return nil
		}}
}

// train runs a training in its own folder, stores its summary, and returns its seconds.
func (b *job) train(ctx context.Context, name, out string, args []string) (wall float64, err error) {
	_, err = b.program(ctx, with(with([]string{"train"}, args...), "--out", out, "--quiet", "--checkpoint-every",
		"0")...)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(out, "summary.json"))
	if err != nil {
		return 0, err
	}
	b.keep(name, text)
	var sum struct {
		Wall float64 `json:"wall_s"`
	}
	err = decode(text, &sum)
	return sum.Wall, err
}

// curve trains on the device and on the CPU, and compares the losses row by row.
func (o *Options) curve() Part {
	return Part{Name: "figure1/curve", Limit: o.limit(90 * time.Second),
		Run: func(ctx context.Context, b *job) error {
			var curves [2][]train.Row
			for i, device := range []string{b.Device, "cpu"} {
				out, err := b.folder("curve-" + strconv.Itoa(i))
				if err != nil {
					return err
				}
				args := b.shapes().figure1("--device", device, "--metrics", "test", "--data-test", "200",
					"--iterations", strconv.Itoa(b.shapes().curve), "--eval-points", "50")
				if _, err := b.train(ctx, [2]string{"device", "cpu"}[i], out, args); err != nil {
					return err
				}
				if curves[i], err = rowsOf(out); err != nil {
					return err
				}
			}
			far, at, err := maxDifference(curves[0], curves[1])
			if err != nil {
				return err
			}
			b.out.set("far", far)
			last := curves[0][len(curves[0])-1]
			b.out.Summary = fmt.Sprintf("the losses of %d rows differ by %.1e at most (iteration %d); the last is %.6g",
				len(curves[0]), far, at, float64(last.TrainLossAvg))
			return nil
		}}
}

// rowsOf reads the metrics of a run.
func rowsOf(folder string) ([]train.Row, error) {
	f, err := os.Open(filepath.Join(folder, "metrics.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var rows []train.Row
	for dec := json.NewDecoder(f); dec.More(); {
		var r train.Row
		if err := dec.Decode(&r); err != nil {
			return nil, fmt.Errorf("%s, row %d: %w", f.Name(), len(rows), err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// maxDifference returns the largest relative difference of the losses of two curves, and its row.
func maxDifference(a, b []train.Row) (far float64, at int, err error) {
	if len(a) != len(b) || len(a) < 2 {
		return 0, 0, fmt.Errorf("curves of %d and %d rows, want the same two or more", len(a), len(b))
	}
	for i := range a {
		for _, pair := range [][2]train.Num{{a[i].TrainLossAvg, b[i].TrainLossAvg},
			{a[i].TestLossAvg, b[i].TestLossAvg}} {
			x, y := float64(pair[0]), float64(pair[1])
			if math.IsNaN(x) && math.IsNaN(y) { // no batch was seen before the first row
				continue
			}
			if d := math.Abs(x-y) / math.Abs(y); !(d <= far) {
				far, at = d, a[i].Iteration
			}
		}
	}
	return far, at, nil
}
