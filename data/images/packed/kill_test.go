//go:build !windows

package packed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fspda/data/images"
	"fspda/internal/rng"
)

// TestMain lets the test binary run a preparation that can be killed. It writes a byte per image.
func TestMain(m *testing.M) {
	if from := os.Getenv("FSPDA_TEST_PREPARE"); from != "" {
		s, err := images.Open(from, images.Options{})
		if err == nil {
			o := small(Raw)
			o.Progress = func(int, int) { os.Stdout.WriteString(".") }
			_, err = Prepare(context.Background(), s, os.Getenv("FSPDA_TEST_OUT"), o)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A preparation that is repeatedly killed at random moments gives the same bytes as an
// uninterrupted one.
func TestPrepareSurvivesKill(t *testing.T) {
	kills := 5
	if os.Getenv("FSPDA_LONG") == "1" {
		kills = 50
	}
	path := folder(t, 60, true)
	want := content(t, prepare(t, source(t, path), small(Raw)))
	dice := rng.New(1, "prepare-kill")
	for done := 0; done < kills; {
		dir := filepath.Join(t.TempDir(), "packed")
		for done < kills && killed(t, path, dir, dice.IntN(40), time.Duration(dice.IntN(3000))*time.Microsecond) {
			done++
		}
		if killed(t, path, dir, 1000, 0) {
			t.Fatal("a preparation of 64 pictures went on after 1000")
		}
		same(t, fmt.Sprintf("after %d kills", done), content(t, dir), want)
		if err := Check(t.Context(), dir, nil); err != nil {
			t.Error(err)
		}
	}
}

// killed runs a preparation and kills it some time after a few images, or reports that it finished
// first.
func killed(t *testing.T, from, to string, pictures int, after time.Duration) bool {
	t.Helper()
	var errs strings.Builder
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FSPDA_TEST_PREPARE="+from, "FSPDA_TEST_OUT="+to)
	cmd.Stderr = &errs
	dots, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, dots, int64(pictures)); err == nil {
		time.Sleep(after)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, dots); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return !cmd.ProcessState.Success()
}
