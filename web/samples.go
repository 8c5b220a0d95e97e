package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// textSample is text that the mean model of a row wrote.
type textSample struct{ Iteration, Text string }

// shownSamples is how many samples a report shows: the first, one between, and the last.
const shownSamples = 3

// readSamples reads samples.jsonl. A truncated last line is ignored; the file need not exist.
func readSamples(path string, read func(path string) ([]byte, error)) ([]textSample, error) {
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("web: read: %w", err)
	}
	var all []textSample
	lines := bytes.SplitAfter(text, []byte("\n"))
	for n, line := range lines {
		var s struct {
			Iteration float64
			Text      string
		}
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("web: %s:%d: found %s, want a JSON object with iteration and text: %w", path, n+1,
				excerpt(line), err)
		}
		all = append(all, textSample{grouped(s.Iteration), clean(s.Text)})
	}
	return all, nil
}

// lastSamples returns the first sample, the one in the middle and the last.
func lastSamples(all []textSample) []textSample {
	if len(all) <= shownSamples {
		return all
	}
	return []textSample{all[0], all[len(all)/2], all[len(all)-1]}
}
