//go:build !windows

package packed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fspda/data/images"
	"fspda/internal/rng"
)

// TestMain lets the test binary be a preparation of its own, which can be killed.
func TestMain(m *testing.M) {
	if from := os.Getenv("FSPDA_TEST_PREPARE"); from != "" {
		s, err := images.Open(from, images.Options{})
		if err == nil {
			_, err = Prepare(context.Background(), s, os.Getenv("FSPDA_TEST_OUT"), small(Raw))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A preparation that is killed at random moments, again and again, ends with the bytes of one that was not, and no file that stands
// in its place was ever unreadable.
func TestPrepareSurvivesKill(t *testing.T) {
	kills := 4
	if os.Getenv("FSPDA_LONG") == "1" {
		kills = 50
	}
	path := folder(t, 60, true)
	start := time.Now()
	want := content(t, prepare(t, source(t, path), small(Raw)))
	long := 2 * time.Since(start) // with the start of a process
	dice := rng.New(1, "prepare-kill")
	for done := 0; done < kills; {
		dir := filepath.Join(t.TempDir(), "packed")
		for done < kills {
			after := time.Duration(dice.Float64() * float64(long))
			if !killed(t, path, dir, after) {
				break
			}
			done++
		}
		for killed(t, path, dir, time.Minute) {
			t.Fatal("a preparation took more than a minute")
		}
		same(t, fmt.Sprintf("after %d kills", done), content(t, dir), want)
		if err := Check(t.Context(), dir, nil); err != nil {
			t.Error(err)
		}
		long = long*9/10 + time.Millisecond // where most preparations end before the kill, kill sooner
	}
}

// killed runs a preparation for a while and kills it, or reports that it came to its end before.
func killed(t *testing.T, from, to string, after time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0]) // ends it with SIGKILL
	cmd.Env = append(os.Environ(), "FSPDA_TEST_PREPARE="+from, "FSPDA_TEST_OUT="+to)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}
