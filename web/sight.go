package web

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"time"
)

// Live is a run in this process, as the program that plays it lets a [Server] see and steer it.
type Live struct {
	Run        string // its folder, within that of the server
	Iterations int    // of the whole run
	Command    string // that began it
	// Look returns the run as it is. Exchanges are those after the first since; it may leave the
	// oldest out. It must not wait for the run.
	Look func(since uint64) Sight
	// Steer does what a button says: "pause", "resume", "checkpoint" or "stop". It must not wait
	// for the run.
	Steer func(action string) error
}

// Sight is a run at one moment.
type Sight struct {
	State     string // "running", "paused", "stopping" or "ended"
	Agents    []AgentSight
	Exchanges [][2]int // the latest, oldest first: who spoke with whom
	Exchanged uint64   // how many there were in all
	Memory    uint64   // bytes that the program holds
}

// AgentSight is one agent at one moment. NaN is what is not known.
type AgentSight struct {
	Iteration int
	Loss      float64 // of its latest batch
	Distance  float64 // squared, from the mean model
	Accuracy  float64 // on the test set
	Sent      uint64  // bits
}

// Times between frames: of everything but the agents, and of the agents, who are many.
const (
	frameEvery  = 100 * time.Millisecond
	agentsEvery = 500 * time.Millisecond
	mostSpoken  = 96 // exchanges in a frame; more would not be seen anyway
)

// camera makes frames of a live run: however many look on, the run is looked at ten times a second
// at most.
type camera struct {
	live *Live

	mu           sync.Mutex
	taken, asked time.Time // the last frame, and the last one with agents
	seen         uint64    // exchanges told of
	number       int       // of frames
	frame        []byte
	agents       []byte // the latest frame with agents
	agentsNumber int
}

// look returns the latest frame, its number, and the same of the latest with agents. The frames are
// not to be changed.
func (c *camera) look(now time.Time) (frame []byte, number int, agents []byte, agentsNumber int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.taken) >= frameEvery {
		c.shoot(now)
	}
	return c.frame, c.number, c.agents, c.agentsNumber
}

func (c *camera) shoot(now time.Time) {
	s := c.live.Look(c.seen)
	c.taken, c.seen = now, s.Exchanged
	c.number++
	c.frame = s.frame(c.live)
	if now.Sub(c.asked) >= agentsEvery {
		c.asked = now
		c.agentsNumber++
		c.agents = s.agentsFrame(c.live)
	}
}

// frame writes all but the agents as JSON.
func (s *Sight) frame(l *Live) []byte {
	var b bytes.Buffer
	b.WriteString(`{"run":` + quoted(l.Run))
	b.WriteString(`,"state":` + quoted(s.State))
	b.WriteString(`,"iteration":` + strconv.Itoa(s.iteration()))
	b.WriteString(`,"iterations":` + strconv.Itoa(l.Iterations))
	b.WriteString(`,"memory":` + strconv.FormatUint(s.Memory, 10))
	b.WriteString(`,"exchanged":` + strconv.FormatUint(s.Exchanged, 10))
	b.WriteString(`,"exchanges":[`)
	latest := s.Exchanges[max(0, len(s.Exchanges)-mostSpoken):]
	for k, e := range latest {
		if k > 0 {
			b.WriteByte(',')
		}
		b.WriteString("[" + strconv.Itoa(e[0]) + "," + strconv.Itoa(e[1]) + "]")
	}
	b.WriteString("]}")
	return b.Bytes()
}

// iteration is where the last agent is.
func (s *Sight) iteration() int {
	if len(s.Agents) == 0 {
		return 0
	}
	t := math.MaxInt
	for _, a := range s.Agents {
		t = min(t, a.Iteration)
	}
	return t
}

// agentsFrame writes the agents as JSON, a list for each quantity.
func (s *Sight) agentsFrame(l *Live) []byte {
	var b bytes.Buffer
	b.WriteString(`{"run":` + quoted(l.Run))
	for _, q := range []struct {
		name string
		of   func(a *AgentSight) float64
	}{
		{"iteration", func(a *AgentSight) float64 { return float64(a.Iteration) }},
		{"loss", func(a *AgentSight) float64 { return rounded(a.Loss, 5) }},
		{"distance", func(a *AgentSight) float64 { return rounded(a.Distance, 5) }},
		{"accuracy", func(a *AgentSight) float64 { return rounded(a.Accuracy, 5) }},
		{"sent", func(a *AgentSight) float64 { return float64(a.Sent) }},
	} {
		b.WriteString(`,"` + q.name + `":[`)
		for i := range s.Agents {
			if i > 0 {
				b.WriteByte(',')
			}
			writeNumber(&b, q.of(&s.Agents[i]))
		}
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return b.Bytes()
}

// quoted writes a text as JSON.
func quoted(s string) string {
	b, err := json.Marshal(clean(s))
	if err != nil {
		panic(err) // a text can always be written
	}
	return string(b)
}

// writeNumber writes v as JSON: null where it is not finite.
func writeNumber(b *bytes.Buffer, v float64) {
	if !finite(v) {
		b.WriteString("null")
		return
	}
	b.Write(strconv.AppendFloat(b.AvailableBuffer(), v, 'g', -1, 64))
}
