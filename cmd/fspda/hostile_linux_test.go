package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHostileClientsCostNoIteration measures what bad clients cost a run, in processor time an iteration: blocks with them and without take turns within one
// run, each block with them is set against its two neighbours without, and the median of these ratios counts. Processor time and not time, since the
// clients are on the same machine and take its processors from any neighbour; turns and the median, since other load comes and goes.
func TestHostileClientsCostNoIteration(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes a minute of a quiet machine: set FSPDA_LONG=1")
	}
	const turns, block = 12, 2 * time.Second
	tr := beginTraining(t, 2_000_000, "--eval-points", "40000")
	tr.pace(t, 3*time.Second) // what is large or slow only at the start
	without := []float64{tr.pace(t, block)}
	var with, ratios []float64
	connections := 0
	for range turns {
		opened, leave := crowd(tr.host, 1000, make(chan struct{}))
		time.Sleep(300 * time.Millisecond)
		with = append(with, tr.pace(t, block))
		connections += opened()
		leave()
		without = append(without, tr.pace(t, block))
	}
	for k, w := range with {
		ratios = append(ratios, w/((without[k]+without[k+1])/2)-1)
	}
	noise := make([]float64, 0, turns)
	for k := range turns - 1 { // the same of blocks without
		noise = append(noise, without[k+1]/((without[k]+without[k+2])/2)-1)
	}
	slices.Sort(ratios)
	slices.Sort(noise)
	quartiles := func(v []float64) [3]float64 {
		return [3]float64{100 * v[len(v)/4], 100 * v[len(v)/2], 100 * v[3*len(v)/4]}
	}
	t.Logf("%d connections; an iteration takes %.2f %% more processor time (quartiles; without clients %.2f %%)", connections, quartiles(ratios), quartiles(noise))
	if connections < 10_000 {
		t.Errorf("only %d connections were opened", connections)
	}
	if m := ratios[len(ratios)/2]; m > 0.02 {
		t.Errorf("clients cost %.4f of an iteration's processor time, want at most 0.02", m)
	}
}

// pace is the processor time of the run between two rows of its metrics that lie at least so far apart, for each row, in seconds.
func (tr *trainee) pace(t *testing.T, least time.Duration) float64 {
	t.Helper()
	begin := time.Now()
	rows, processor := tr.nextRow(t)
	for {
		now, spent := tr.nextRow(t)
		if time.Since(begin) >= least {
			return (spent - processor).Seconds() / float64(now-rows)
		}
	}
}

// nextRow waits for another row and returns how many there are, and the processor time that was spent by then.
func (tr *trainee) nextRow(t *testing.T) (rows int, processor time.Duration) {
	t.Helper()
	path := filepath.Join(tr.dir, "metrics.jsonl")
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	was := size()
	for end := time.Now().Add(time.Minute); size() == was; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no row in a minute\n%s", &tr.log)
		}
	}
	var clock unix.Timespec
	if err := unix.ClockGettime(int32(^tr.cmd.Process.Pid<<3|2), &clock); err != nil { // the processor clock of another process
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n")), time.Duration(clock.Nano())
}
