package measure

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"fspda/device"
	"fspda/train"
)

// AgentsOptions configures [Agents].
type AgentsOptions struct {
	Counts []int // numbers of agents, ascending
	Steps  int   // approximate number of steps of all agents together
	// Open prepares a run with the given numbers of agents and iterations.
	Open func(agents, iterations int) (AgentsRun, error)
	// Progress is called after each run, if it is not nil.
	Progress func(AgentsRow)
}

// AgentsRun is a run of many agents in this process.
type AgentsRun struct {
	Setup    *train.Setup
	Device   device.Device
	Model    train.Model
	Forecast uint64 // bytes
	Close    func()
}

// AgentsReport is the memory and the time of agents in one process, by their number.
type AgentsReport struct {
	What string      `json:"what"`
	Dim  int         `json:"dim"`
	Rows []AgentsRow `json:"rows"`
}

// AgentsRow is the result of one number of agents.
type AgentsRow struct {
	Agents     int     `json:"agents"`
	Iterations int     `json:"iterations"`
	Steps      int     `json:"steps"`        // gradients of all agents together, between the evaluations
	Micros     float64 `json:"step_us"`      // time of a step, of all cores together
	Peak       uint64  `json:"peak_bytes"`   // largest memory of this process so far
	Forecast   uint64  `json:"forecast"`     // bytes
	Evaluation float64 `json:"evaluation_s"` // the last one, of all agents
}

// Agents measures runs of more and more agents, each with an evaluation at its start and at its
// end. Peak memory is measured for the process, and thus belongs to the latest run, since earlier
// runs had fewer agents.
func Agents(ctx context.Context, o AgentsOptions) (r AgentsReport, err error) {
	for _, n := range o.Counts {
		run, err := o.Open(n, max(2, o.Steps/n))
		if err != nil {
			return r, fmt.Errorf("measure: prepare %d agents: %w", n, err)
		}
		row, err := run.measure(ctx)
		run.Close()
		debug.FreeOSMemory() // freed before the next run
		if err != nil {
			return r, fmt.Errorf("measure: measure %d agents: %w", n, err)
		}
		r.What, r.Dim = run.Setup.Config.Algo+" on the graph "+run.Setup.Config.Graph, run.Setup.Dim
		r.Rows = append(r.Rows, row)
		if o.Progress != nil {
			o.Progress(row)
		}
	}
	return r, nil
}

// measure runs it. Steps are timed from the third one of each agent, on average, to the last. A
// step is a gradient: asynchronous agents also pass iterations without one, more of them in a long
// run.
func (a AgentsRun) measure(ctx context.Context) (row AgentsRow, err error) {
	c := a.Setup.Config
	live := train.NewLiveState(c.Agents)
	var rows []time.Time
	done := make(chan struct{})
	var res *train.Result
	go func() {
		defer close(done)
		res, err = train.Run(ctx, a.Setup, train.Options{Device: a.Device, Model: a.Model, Live: live,
			OnRow: func(train.Row) { rows = append(rows, time.Now()) }})
	}()
	began, ended, steps, first := time.Time{}, time.Time{}, 0, 0
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(10 * time.Millisecond):
			total := live.Gradients()
			switch {
			case total < c.Agents*min(3, c.Iterations/2): // all their vectors are touched first
			case began.IsZero():
				began, ended, first, steps = time.Now(), time.Now(), total, total
			case total > steps:
				ended, steps = time.Now(), total
			}
		}
	}
	if err != nil {
		return row, err
	}
	row = AgentsRow{Agents: c.Agents, Iterations: res.Iteration, Steps: steps - first, Peak: peakMemory(),
		Forecast: a.Forecast}
	if !began.IsZero() { // else the run was too short to be timed
		row.Evaluation = rows[len(rows)-1].Sub(ended).Seconds()
		row.Micros = float64(ended.Sub(began).Microseconds()) / float64(max(1, row.Steps))
	}
	return row, nil
}

// peakMemory returns the largest number of bytes that this process has had in memory, or the bytes
// that the runtime has taken from the system where that number is not known.
func peakMemory() uint64 {
	if f, err := os.Open("/proc/self/status"); err == nil {
		defer f.Close()
		for sc := bufio.NewScanner(f); sc.Scan(); {
			if rest, ok := strings.CutPrefix(sc.Text(), "VmHWM:"); ok {
				kb, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
				if err == nil {
					return kb << 10
				}
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}

func (r AgentsReport) String() string {
	text := fmt.Sprintf("agents in one process: %s, %d parameters; a step is a gradient with what follows from it, "+
		"on all cores together\n\n%8s %11s %9s %9s %12s %14s %9s %13s\n", r.What, r.Dim, "agents", "iterations",
		"steps", "µs/step", "peak MB", "MB/agent more", "forecast", "evaluation s")
	for k, row := range r.Rows {
		more := "" // than in the row before
		if k > 0 {
			before := r.Rows[k-1]
			more = fmt.Sprintf("%.3f", (float64(row.Peak)-float64(before.Peak))/1e6/float64(row.Agents-before.Agents))
		}
		text += fmt.Sprintf("%8d %11d %9d %9.1f %12.0f %14s %9.0f %13.2f\n", row.Agents, row.Iterations, row.Steps,
			row.Micros, float64(row.Peak)/1e6, more, float64(row.Forecast)/1e6, row.Evaluation)
	}
	return text
}
