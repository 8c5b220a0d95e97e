package traincmd

import (
	"encoding/json"
	"os"
	"sync"
	"time"

	"fspda/dist/nats"
	"fspda/internal/rng"
)

// NetworkFaults are faults that a test injects into the network of an agent. They come from a JSON
// file, which is read again and again during the run.
type NetworkFaults struct {
	Lose   float64  `json:"lose"`   // share of the frames that are lost
	Double float64  `json:"double"` // share of the frames that arrive twice
	Late   float64  `json:"late"`   // share of the frames that arrive up to 50 ms later, after others
	Cut    [][2]int `json:"cut"`    // pairs of agents that receive nothing from each other
}

// faultsEvery is how often the file is read.
const faultsEvery = 50 * time.Millisecond

// faultsOf returns the fault injector of an agent from a file; nil without a file. A file that
// cannot be read injects no faults.
func faultsOf(path string, self int) nats.FaultInjector {
	if path == "" {
		return nil
	}
	var mu sync.Mutex
	var now NetworkFaults
	var read time.Time
	s := rng.New(uint64(os.Getpid()), "faults", uint64(self)) // another stream after every restart
	return func(to int) nats.FaultAction {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(read) > faultsEvery {
			read, now = time.Now(), NetworkFaults{}
			if text, err := os.ReadFile(path); err == nil {
				_ = json.Unmarshal(text, &now) // a file that is being written is read again soon
			}
		}
		return now.draw(&s, self, to)
	}
}

// draw returns what happens to the next frame from self to another agent.
func (f NetworkFaults) draw(s *rng.Stream, self, to int) nats.FaultAction {
	for _, c := range f.Cut {
		if c == [2]int{self, to} || c == [2]int{to, self} {
			return nats.FaultAction{}
		}
	}
	switch u := s.Float64(); {
	case u < f.Lose:
		return nats.FaultAction{}
	case u < f.Lose+f.Double:
		return nats.FaultAction{Copies: 2}
	case u < f.Lose+f.Double+f.Late:
		return nats.FaultAction{Copies: 1, Delay: time.Duration(s.Float64() * float64(50*time.Millisecond))}
	}
	return nats.FaultAction{Copies: 1}
}
