package train

import (
	"context"
	"time"

	"fspda/device"
	"fspda/internal/units"
	"fspda/train/evaluate"
	"fspda/train/memory"
)

// Forecast is the time and the memory that a run needs from an iteration to its end.
type Forecast struct {
	Iterations int               `json:"iterations"`        // iterations that are left
	Step       time.Duration     `json:"step_ns"`           // time of one iteration of all agents
	Row        time.Duration     `json:"row_ns"`            // mean time of one evaluation
	Total      time.Duration     `json:"total_ns"`          // time to the end
	ImagesPerS float64           `json:"images_per_s"`      // images a second; for text, tokens a second
	Unit       string            `json:"unit"`              // unit of ImagesPerS: images or tokens
	Bits       float64           `json:"bits"`              // expected bits in the requested accounting
	Memory     uint64            `json:"memory_bytes"`      // most memory of this process
	Devices    []memory.Forecast `json:"devices,omitempty"` // devices that have a memory of their own
	// Clients is the memory that other programs take which compute the model, as far as it is known.
	Clients uint64 `json:"client_memory_bytes,omitempty"`
}

// A calibration trains for shortTrial, or for longTrial if the run takes more than longRun.
const (
	shortTrial = 100 * time.Millisecond
	longTrial  = time.Second
	longRun    = time.Minute
)

// ForecastRun calibrates: it trains a few iterations on the real data and model, and times them and
// the parts of an evaluation. Nothing of it is kept. The run stands at iteration from; others are
// further devices for its agents.
func ForecastRun(
	ctx context.Context, s *Setup, dev device.Device, m Model, from int, others ...Replica) (Forecast, error) {
	on := Options{Device: dev, Model: m, Others: others}
	replicas := on.replicas()
	f := Forecast{Iterations: s.Config.Iterations - from, Bits: s.ExpectedBits() * float64(s.Config.Iterations-from),
		Memory: memory.Process(s, devicesOf(replicas)...)}
	var err error
	if f.Devices, err = memory.Devices(s, devicesOf(replicas)...); err != nil {
		return f, err
	}
	if f.Iterations == 0 {
		return f, nil
	}
	step, err := timeSteps(ctx, s, on, f.Iterations)
	if err != nil {
		return f, err
	}
	rows, err := evaluate.New(s, evaluatorsOf(replicas)).TimeRows(from)
	if err != nil {
		return f, err
	}
	if of, ok := m.(interface{ ClientMemory() uint64 }); ok {
		f.Clients = of.ClientMemory()
	}
	f.Step = step
	f.Total = units.Span(step.Seconds()*float64(f.Iterations) + rows)
	memory.Release() // the memory of the trials is not used any more
	f.Row = units.Span(rows / max(1, float64(s.EvalCount()-s.EvalsBefore(from))+1))
	f.Unit = "images"
	if s.Window > 0 {
		f.Unit = "tokens"
	}
	f.ImagesPerS = float64(s.Config.Agents*s.BatchSize()*max(1, s.Window)) / step.Seconds()
	return f, nil
}

// timeSteps trains two iterations, which make programs and fill caches, and then as many as there
// is time for.
func timeSteps(ctx context.Context, s *Setup, on Options, left int) (time.Duration, error) {
	k := min(2, left)
	took, err := trial(ctx, s, on, k)
	if err != nil || took > longTrial { // a step takes so long that making programs does not show
		return took / time.Duration(k), err
	}
	budget := shortTrial
	if took.Seconds()*float64(left/k) > longRun.Seconds() {
		budget = longTrial
	}
	tau := s.RoundLength() // number of iterations from one exchange of rounds to the next
	k = min(left, max(2, int(budget/(took/time.Duration(k)+1))))
	if k > tau {
		k -= k % tau
	}
	took, err = trial(ctx, s, on, k)
	return took / time.Duration(k), err
}

// trial trains k iterations from the start, without evaluations, on a copy of the setup.
func trial(ctx context.Context, s *Setup, on Options, k int) (time.Duration, error) {
	begin := time.Now()
	_, err := Run(ctx, s.WithoutEvaluations(k), on)
	return time.Since(begin), err
}

func evaluatorsOf(replicas []Replica) (all []evaluate.Worker) {
	for _, p := range replicas {
		all = append(all, evaluate.Worker{Device: p.Device, Model: p.Model})
	}
	return all
}
