package cuda

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fspda/cuda/megakernel"
	"fspda/internal/testing/fakegpu"
)

// A device appends where the time of its launches went, when it is closed: phases in which each
// kernel is named, with times that fit each other.
func TestProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "phases")
	t.Setenv(megakernel.ProfileVariable, path)
	for range 2 {
		d, _ := openFake(t, fakegpu.Options{}, false)
		for seed := range uint64(10) {
			history(d, seed)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if n := strings.Count(text, "phases of the megakernel on "); n != 2 {
		t.Fatalf("the file has %d tables, want 2:\n%s", n, text)
	}
	row := regexp.MustCompile(`(?m)^ *` + strings.Repeat(`([0-9.]+) +`, 6) + `((?:\w+ [0-9.]+× [0-9.]+ ?)+)$`)
	rows, adds := row.FindAllStringSubmatch(text, -1), strings.Contains(text, " add_diffs ")
	for _, r := range rows {
		var v [6]float64
		for i := range v {
			if v[i], err = strconv.ParseFloat(r[1+i], 64); err != nil {
				t.Fatal(err)
			}
		}
		if v[0] <= 0 || v[1] < v[2] || v[2] < v[4]-0.01 || v[4] < 0 || v[5] < 0 || v[5] > v[2] ||
			v[3] < v[1]-v[2]-0.02 || v[3] > v[1]-v[2]+0.02 {
			t.Errorf("the times of a phase do not fit each other: %s", r[0])
		}
	}
	if len(rows) < 4 || !adds {
		t.Errorf("%d phases, add_diffs among them: %v; want some of it:\n%s", len(rows), adds, text)
	}
}
