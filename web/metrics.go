package web

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"

	"fspda/internal/bounded"
	"fspda/train/metric"
)

// metrics holds metrics.jsonl as columns: column[k][r] is the value of key k at evaluation r, NaN
// if it is null or missing. Every known key has a column. Invariant: column["iteration"] increases
// strictly.
type metrics struct {
	rows   int
	column map[string][]float64
}

// metricKeys lists the known keys. Others are ignored.
var metricKeys = metric.Columns()

// maxLine is the maximum length of a line of metrics.jsonl in bytes. Real lines have under a
// thousand.
const maxLine = 1 << 20

func readMetrics(path string) (*metrics, error) {
	f, err := bounded.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("web: read metrics: no file %s: this is not the folder of a run, or the run has not "+
			"evaluated yet", path)
	}
	if err != nil {
		return nil, fmt.Errorf("web: read metrics: %w", err)
	}
	defer f.Close()
	return parseMetrics(path, f)
}

// parseMetrics parses a metrics file; name is used in errors.
func parseMetrics(name string, r io.Reader) (*metrics, error) {
	m := &metrics{column: make(map[string][]float64, len(metricKeys))}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := m.add(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("web: %s:%d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("web: %s:%d: %w", name, n+1, err)
	}
	return m, nil
}

// add appends one line. Earlier rows of the same or a later iteration are removed: the run was
// resumed from a checkpoint before them.
func (m *metrics) add(line []byte) error {
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		return fmt.Errorf("found %s, want a JSON object: %w: if the last line was cut short, remove it", excerpt(line),
			err)
	}
	row := make(map[string]float64, len(metricKeys))
	for _, k := range metricKeys {
		v, err := number(fields, k)
		if err != nil {
			return err
		}
		row[k] = v
	}
	it := row["iteration"]
	if math.IsNaN(it) || it < 0 {
		return fmt.Errorf("iteration is %v, want a number of at least 0", fields["iteration"])
	}
	for m.rows > 0 && m.column["iteration"][m.rows-1] >= it {
		m.rows--
	}
	for k, v := range row {
		m.column[k] = append(m.column[k][:m.rows], v)
	}
	m.rows++
	return nil
}

// number returns fields[key], NaN if it is null or missing.
func number(fields map[string]any, key string) (float64, error) {
	switch v := fields[key].(type) {
	case nil:
		return math.NaN(), nil
	case float64:
		return v, nil
	default:
		return 0, fmt.Errorf("%s is %v, want a number or null", key, v)
	}
}

// excerpt quotes the start of a damaged text.
func excerpt(b []byte) string {
	const limit = 40
	if len(b) > limit {
		return fmt.Sprintf("%q...", b[:limit])
	}
	return fmt.Sprintf("%q", b)
}

// last returns the value of key at the last evaluation, NaN if there is none.
func (m *metrics) last(key string) float64 {
	c := m.column[key]
	if len(c) == 0 {
		return math.NaN()
	}
	return c[len(c)-1]
}

// best returns the largest value of key, NaN if there is none.
func (m *metrics) best(key string) float64 {
	best := math.NaN()
	for _, v := range m.column[key] {
		if !(v <= best) && !math.IsNaN(v) {
			best = v
		}
	}
	return best
}

// reach returns the first row with key ≥ level, or -1.
func (m *metrics) reach(key string, level float64) int {
	return slices.IndexFunc(m.column[key], func(v float64) bool { return v >= level })
}
