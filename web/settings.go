package web

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/internal/bounded"
)

// settings holds the top-level keys of config.yaml or summary.json. A nil map has no keys.
type settings map[string]any

// parseConfig parses a config.yaml; name is used in errors.
func parseConfig(name string, b []byte) (text string, s settings, err error) {
	if len(b) == 0 {
		return "", nil, nil
	}
	if err := bounded.YAML(b); err != nil {
		return "", nil, fmt.Errorf("web: %s: %w", name, err)
	}
	if err := yaml.Unmarshal(b, &s); err != nil {
		return "", nil, fmt.Errorf("web: %s: want YAML with one setting per line: %w", name, err)
	}
	return string(b), s, nil
}

// parseSummary parses a summary.json; name is used in errors.
func parseSummary(name string, b []byte) (settings, error) {
	if b == nil {
		return nil, nil
	}
	var s settings
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("web: %s: found %s, want a JSON object: %w", name, excerpt(b), err)
	}
	for _, k := range summaryNumbers {
		if _, err := number(s, k); err != nil {
			return nil, fmt.Errorf("web: %s: %w", name, err)
		}
	}
	return s, nil
}

// summaryNumbers lists the keys of summary.json that must be numbers or null.
var summaryNumbers = []string{
	"agents", "iterations", "wall_s", "iterations_per_s", "test_acc_avg", "test_acc_min", "test_acc_mean",
	"train_loss_avg",
	"train_loss_worst", "grad_sq_worst", "consensus", "dual_sum", "bits_total", "bits_packed", "bits_reference",
	"wire_bytes", "dim", "agents_present",
}

// number returns the value of a numeric key, NaN if it is null or missing.
func (s settings) number(key string) float64 {
	switch v := s[key].(type) {
	case float64:
		return v
	case uint64: // YAML's type of whole numbers
		return float64(v)
	case int64:
		return float64(v)
	}
	return math.NaN()
}

// text returns the value of a key as one line of text: strings verbatim, lists and maps as JSON;
// empty if it is null or missing.
func (s settings) text(key string) string {
	switch v := s[key].(type) {
	case nil:
		return ""
	case string:
		return clean(strings.TrimSpace(v))
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return fmt.Sprintf("%.0f", v)
		}
		return fmt.Sprint(v)
	default:
		b, err := json.Marshal(v)
		if err != nil { // YAML has values that JSON lacks, such as .nan
			return clean(fmt.Sprint(v))
		}
		return clean(string(b))
	}
}

var accountings = []string{"shared-seed", "packed", "reference"}

// accounting returns the accounting of bits_total, from the first settings that name it. The
// default is shared-seed.
func accounting(from ...settings) string {
	if a := first("accounting", from...); slices.Contains(accountings, a) {
		return a
	}
	return accountings[0]
}

// first returns the text of key from the first settings that have it.
func first(key string, from ...settings) string {
	for _, s := range from {
		if t := s.text(key); t != "" {
			return t
		}
	}
	return ""
}
