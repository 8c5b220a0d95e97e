package traincmd

import (
	"encoding/json"
	"os"
	"sync"
	"time"

	"fspda/dist/nats"
	"fspda/internal/rng"
)

// NetworkFaults is a file that says how bad the network of an agent is, for tests: it is read again and
// again while the run is on.
type NetworkFaults struct {
	Lose   float64  `json:"lose"`   // share of the frames that vanish
	Double float64  `json:"double"` // that arrive twice
	Late   float64  `json:"late"`   // that arrive up to 50 ms later, after others
	Cut    [][2]int `json:"cut"`    // pairs of agents who hear nothing of each other
}

// forecastEvery is how often the file is read.
const forecastEvery = 50 * time.Millisecond

// weatherOf makes the weather of an agent from a file; nil without one. A file that cannot be read
// is good weather.
func weatherOf(path string, self int) nats.FaultInjector {
	if path == "" {
		return nil
	}
	var mu sync.Mutex
	var now NetworkFaults
	var read time.Time
	s := rng.New(uint64(os.Getpid()), "weather", uint64(self)) // a new one with every life
	return func(to int) nats.FaultAction {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(read) > forecastEvery {
			read, now = time.Now(), NetworkFaults{}
			if text, err := os.ReadFile(path); err == nil {
				_ = json.Unmarshal(text, &now) // half a file is read again soon
			}
		}
		return now.fate(&s, self, to)
	}
}

func (f NetworkFaults) fate(s *rng.Stream, self, to int) nats.FaultAction {
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
