package web

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"time"

	"fspda/internal/units"
)

// LiveRun is a run in this process that a [Server] can show and control.
type LiveRun struct {
	Run        string // the run's folder, relative to the server's
	Iterations int    // iterations of the whole run
	Command    string // that started it
	// Status returns the current state. Its exchanges are those after the first since; the oldest
	// may be missing. Status must not wait for the run.
	Status func(since uint64) RunStatus
	// Ended reports whether the run has ended. Unlike Status it may be called by several goroutines.
	Ended func() bool
	// Control carries out "pause", "resume", "checkpoint" or "stop". It must not wait for the run.
	Control func(action string) error
}

// RunStatus is the state of a run at one moment.
type RunStatus struct {
	State     string // "running", "paused", "stopping" or "ended"
	Agents    []AgentStatus
	Exchanges [][2]int // pairs of agents that exchanged messages, oldest first
	Exchanged uint64   // total number of exchanges
	Memory    uint64   // bytes that the program holds
}

// AgentStatus is the state of one agent at one moment. Unknown numbers are NaN.
type AgentStatus struct {
	Iteration int
	Loss      float64 // loss of its latest batch
	Distance  float64 // squared, from the mean model
	Accuracy  float64 // accuracy on the test set
	Sent      uint64  // bits
}

// Intervals between frames, and between those with agents, which are large.
const (
	frameInterval     = 100 * time.Millisecond
	agentsInterval    = 500 * time.Millisecond
	maxFrameExchanges = 96
)

// snapshotter encodes frames of a live run. All clients share them, so the run is queried at most
// ten times a second, however many clients there are.
type snapshotter struct {
	live *LiveRun

	mu                    sync.Mutex
	frameTime, agentsTime time.Time // times of the latest frame and of the latest one with agents
	exchanged             uint64    // exchanges up to the latest frame
	frameNumber           int
	frame                 []byte
	agents                []byte // the latest frame with agents
	agentsNumber          int
}

// latest returns the latest frame and the latest with agents, with their numbers. Callers must not
// change them.
func (c *snapshotter) latest(now time.Time) (frame []byte, number int, agents []byte, agentsNumber int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.frameTime) >= frameInterval {
		c.refresh(now)
	}
	return c.frame, c.frameNumber, c.agents, c.agentsNumber
}

// refresh queries the run and encodes new frames.
func (c *snapshotter) refresh(now time.Time) {
	s := c.live.Status(c.exchanged)
	c.frameTime, c.exchanged = now, s.Exchanged
	c.frameNumber++
	c.frame = s.frame(c.live)
	if now.Sub(c.agentsTime) >= agentsInterval {
		c.agentsTime = now
		c.agentsNumber++
		c.agents = s.agentsFrame(c.live)
	}
}

// frame encodes everything but the agents as JSON.
func (s *RunStatus) frame(l *LiveRun) []byte {
	return encoded(map[string]any{"run": clean(l.Run), "state": s.State, "iteration": s.iteration(),
		"iterations": l.Iterations, "memory": s.Memory, "exchanged": s.Exchanged,
		"exchanges": append([][2]int{}, s.Exchanges[max(0, len(s.Exchanges)-maxFrameExchanges):]...)})
}

// iteration is the least iteration of all agents.
func (s *RunStatus) iteration() int {
	if len(s.Agents) == 0 {
		return 0
	}
	t := math.MaxInt
	for _, a := range s.Agents {
		t = min(t, a.Iteration)
	}
	return t
}

// agentsFrame encodes the agents as JSON, one list for each quantity.
func (s *RunStatus) agentsFrame(l *LiveRun) []byte {
	columns := map[string][]*float64{}
	for _, a := range s.Agents {
		for name, v := range map[string]float64{"iteration": float64(a.Iteration), "loss": units.Round(a.Loss, 5),
			"distance": units.Round(a.Distance, 5), "accuracy": units.Round(a.Accuracy, 5), "sent": float64(a.Sent)} {
			columns[name] = append(columns[name], pointer(v))
		}
	}
	frame := map[string]any{"run": clean(l.Run)}
	for name, column := range columns {
		frame[name] = column
	}
	return encoded(frame)
}

// encoded returns v as JSON. JSON can express all values of v.
func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// writeNumber writes v as JSON: null where it is not finite.
func writeNumber(b *bytes.Buffer, v float64) {
	if !finite(v) {
		b.WriteString("null")
		return
	}
	b.Write(strconv.AppendFloat(b.AvailableBuffer(), v, 'g', -1, 64))
}
