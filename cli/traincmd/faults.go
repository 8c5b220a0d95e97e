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
	Break float64  `json:"break"` // share of the writes and reads at which a connection breaks
	Late  float64  `json:"late"`  // share of those that take up to 50 ms longer
	Cut   [][2]int `json:"cut"`   // pairs of agents that cannot reach each other
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

// draw returns what happens to the next bytes between self and another agent.
func (f NetworkFaults) draw(s *rng.Stream, self, to int) nats.FaultAction {
	for _, c := range f.Cut {
		if c == [2]int{self, to} || c == [2]int{to, self} {
			return nats.FaultAction{Break: true}
		}
	}
	switch u := s.Float64(); {
	case u < f.Break:
		return nats.FaultAction{Break: true}
	case u < f.Break+f.Late:
		return nats.FaultAction{Delay: time.Duration(s.Float64() * float64(50*time.Millisecond))}
	}
	return nats.FaultAction{}
}
