package theory

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"
)

// version numbers the studies: measurements of another version are not used.
const version = 1

// Measurement is the ordinate of a point with one seed.
type Measurement struct {
	Version int      `json:"version"`
	Study   string   `json:"study"`
	Series  string   `json:"series"`
	X       float64  `json:"x"`
	Seed    uint64   `json:"seed"`
	Y       *float64 `json:"y"` // null: infinite
	Seconds float64  `json:"seconds"`
}

// key identifies the measured point and seed.
func (m Measurement) key() string {
	return fmt.Sprint(m.Version, m.Study, "/", m.Series, "/", m.X, "/", m.Seed)
}

// value returns the ordinate.
func (m Measurement) value() float64 {
	if m.Y == nil {
		return math.Inf(1)
	}
	return *m.Y
}

// Fitted is a series with its measurements.
type Fitted struct {
	Series
	Slope   Slope
	Seeds   int
	X       []float64
	Y       [][]float64 // values by seed, then by point
	Seconds float64     // time of the measurements, together
}

// Measure measures a study with seeds 1 to n, jobs points at a time. It appends each measurement to
// a file, a JSON object a line, and takes earlier measurements from it. tell, if not nil, is called
// after each.
func (s Study) Measure(ctx context.Context, path string, n, jobs int, tell func(Measurement)) ([]Fitted, error) {
	known, err := readMeasurements(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	free := make(chan struct{}, max(1, jobs))
	for seed := uint64(1); seed <= uint64(n); seed++ {
		for _, series := range s.Series {
			for _, p := range series.Points {
				m := Measurement{Version: version, Study: s.Name, Series: series.Name, X: p.X, Seed: seed}
				mu.Lock()
				_, done := known[m.key()]
				mu.Unlock()
				if done || within.Err() != nil {
					continue
				}
				free <- struct{}{}
				wg.Go(func() {
					defer func() { <-free }()
					err := m.take(within, p)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						known[m.key()], err = m, json.NewEncoder(file).Encode(m)
					}
					if err != nil {
						cancel(err)
					} else if tell != nil {
						tell(m)
					}
				})
			}
		}
	}
	wg.Wait()
	if within.Err() != nil {
		return nil, context.Cause(within)
	}
	return s.fit(known, n), nil
}

func (m *Measurement) take(ctx context.Context, p Point) error {
	begin := time.Now()
	y, err := p.Measure(ctx, m.Seed)
	m.Seconds = time.Since(begin).Seconds()
	if !math.IsInf(y, 0) && !math.IsNaN(y) {
		m.Y = &y
	}
	return err
}

func (s Study) fit(known map[string]Measurement, n int) (all []Fitted) {
	for _, series := range s.Series {
		f := Fitted{Series: series, Seeds: n}
		for seed := uint64(1); seed <= uint64(n); seed++ {
			var y []float64
			for _, p := range series.Points {
				m := known[Measurement{Version: version, Study: s.Name, Series: series.Name, X: p.X, Seed: seed}.key()]
				y, f.Seconds = append(y, m.value()), f.Seconds+m.Seconds
				if seed == 1 {
					f.X = append(f.X, p.X)
				}
			}
			f.Y = append(f.Y, y)
		}
		f.Slope = FitSlope(f.X, f.Y)
		all = append(all, f)
	}
	return all
}

// readMeasurements reads a file of measurements. An incomplete last line, of a process that was
// killed, is left out.
func readMeasurements(path string) (map[string]Measurement, error) {
	known := map[string]Measurement{}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var m Measurement
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			known[m.key()] = m
		}
	}
	return known, lines.Err()
}
