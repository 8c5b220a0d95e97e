package runfolder

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"fspda/train/metric"
)

// A changed byte of a row's text is noticed, also where the line is still JSON. Rows of earlier
// versions, without a checksum, are read.
func TestChangedRowIsNoticed(t *testing.T) {
	var row metric.Row
	row.Iteration, row.TestAccAvg = 70, 0.75
	line, err := rowLine(row)
	if err != nil {
		t.Fatal(err)
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	if got, err := readRow(line); err != nil || got != row {
		t.Fatalf("%+v, %v", got, err)
	}
	old, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readRow(old); err != nil || got != row {
		t.Errorf("a row without a checksum: %+v, %v", got, err)
	}
	for at := range line[:len(line)-checksumLength] {
		bad := bytes.Clone(line)
		bad[at] ^= 1
		if got, err := readRow(bad); err == nil {
			t.Fatalf("byte %d was changed, and the row is read as %+v", at, got)
		}
	}
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	bad := bytes.Replace(line, []byte("0.75"), []byte("0.95"), 1)
	text := append(append(append(bytes.Clone(line), '\n'), bad...), "\n{}\n"...)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if rows, err := ReadMetrics(path, 1000); err == nil {
		t.Errorf("a row that was changed is read: %v", rows)
	}
}
