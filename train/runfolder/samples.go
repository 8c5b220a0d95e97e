package runfolder

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fspda/internal/bounded"
)

// samplesFile holds the Samples of a run, one a line.
const samplesFile = "samples.jsonl"

// maxSamples bounds the size of a samplesFile that is read.
const maxSamples = 1 << 28

// Sample is text that the mean model of a row wrote.
type Sample struct {
	Iteration int    `json:"iteration"`
	Text      string `json:"text"`
}

// AppendSample adds a sample to samples.jsonl.
func (f *Folder) AppendSample(s Sample) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(f.Path, samplesFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return f.metricsError(err)
	}
	_, err = file.Write(append(line, '\n'))
	return f.metricsError(errors.Join(err, file.Close()))
}

// readSamples reads the samples of a run folder; none if it has no such file. It ignores a truncated
// last line, and also returns the samples before a damaged one.
func readSamples(run string) (all []Sample, err error) {
	path := filepath.Join(run, samplesFile)
	text, err := bounded.File(path, maxSamples)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<24)
	var broken error
	for n := 1; lines.Scan(); n++ {
		if broken != nil {
			return all, broken
		}
		var s Sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			broken = fmt.Errorf("runfolder: %s, line %d is not a sample: %w", path, n, err)
			continue
		}
		all = append(all, s)
	}
	return all, lines.Err()
}

// trimSamples drops the samples from iteration first on, which the run will repeat.
func (f *Folder) trimSamples(first int) error {
	all, err := readSamples(f.Path)
	if f.Damage = err; len(all) == 0 && err == nil {
		return nil
	}
	var kept bytes.Buffer
	for _, s := range all {
		if s.Iteration >= first {
			continue
		}
		line, err := json.Marshal(s)
		if err != nil {
			return err
		}
		kept.Write(append(line, '\n'))
	}
	return replaceText(f.Disk, filepath.Join(f.Path, samplesFile), kept.Bytes())
}
