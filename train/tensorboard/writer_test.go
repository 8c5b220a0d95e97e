package tensorboard

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events reads an event file.
func events(t testing.TB, path string) []event {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	payloads, err := records(b)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var all []event
	for _, p := range payloads {
		all = append(all, parse(t, p))
	}
	return all
}

func create(t testing.TB, dir string) *Writer {
	t.Helper()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func check(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWriter(t *testing.T) {
	w := create(t, filepath.Join(t.TempDir(), "a", "b"))
	check(t, w.Scalar("loss", 0, 100.5, 2.25), w.Scalar("loss", 10, 101, math.Inf(1)), w.Flush())
	want := []event{
		{wall: 100.5, version: fileVersion},
		{wall: 100.5, tag: "loss", value: 2.25, scalar: true},
		{wall: 101, step: 10, tag: "loss", value: float32(math.Inf(1)), scalar: true},
	}
	compare(t, events(t, w.Path()), want) // flushed data can be read during the run
	check(t, w.Scalar("acc", 10, 101, 0.5), w.Close())
	compare(t, events(t, w.Path()), append(want, event{wall: 101, step: 10, tag: "acc", value: 0.5, scalar: true}))
}

func compare(t *testing.T, got, want []event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d: %+v", len(got), len(want), got)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("event %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	first := create(t, dir)
	check(t, first.Scalar("x", 5, 1, 1), first.Close())
	before := events(t, first.Path())
	again := create(t, dir)
	check(t, again.Restart(3, 9), again.Scalar("x", 4, 10, 2), again.Close())
	if filepath.Base(first.Path()) != "events.out.tfevents.000000.fspda" ||
		filepath.Base(again.Path()) != "events.out.tfevents.000001.fspda" {
		t.Errorf("files %s and %s", first.Path(), again.Path())
	}
	compare(t, events(t, first.Path()), before)
	compare(t, events(t, again.Path()), []event{{wall: 9, version: fileVersion}, {wall: 9, step: 3, restart: true},
		{wall: 10, step: 4, tag: "x", value: 2, scalar: true}})
}

// Foreign files and gaps in the numbers never lead to an existing name, and nothing is overwritten.
func TestCreateNumbers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"events.out.tfevents.1700000000.host", "events.out.tfevents.000041.fspda",
		"events.out.tfevents.99.fspda", "metrics.jsonl"} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o666))
	}
	w := create(t, dir)
	check(t, w.Close())
	if base := filepath.Base(w.Path()); base != fileName(42) {
		t.Errorf("file %s, want %s", base, fileName(42))
	}
	// closed without an event: still a valid file
	compare(t, events(t, w.Path()), []event{{version: fileVersion}})
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	check(t, os.WriteFile(file, nil, 0o666))
	if _, err := Create(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("folder is a file: %v", err)
	}
	w := create(t, dir)
	for _, tag := range []string{"", "\xff"} {
		if err := w.Scalar(tag, 1, 0, 0); err == nil || !strings.Contains(err.Error(), "want non-empty UTF-8") {
			t.Errorf("tag %q: %v", tag, err)
		}
	}
	check(t, w.Scalar("fine after a bad tag", 1, 0, 0), w.Close())
	for name, err := range map[string]error{"scalar": w.Scalar("x", 1, 0, 0), "restart": w.Restart(1, 0),
		"flush": w.Flush(), "close": w.Close()} {
		if err == nil || !strings.Contains(err.Error(), w.Path()) {
			t.Errorf("%s after close: %v, want the path", name, err)
		}
	}
	if got := events(t, w.Path()); len(got) != 2 {
		t.Errorf("%d events, want 2", len(got))
	}
}

// An I/O error is returned by all later calls.
func TestDiskFails(t *testing.T) {
	w := create(t, t.TempDir())
	check(t, w.file.Close()) // as if the file system went away
	check(t, w.Scalar("x", 1, 0, 0))
	first := w.Flush()
	if first == nil || !errors.Is(w.Scalar("x", 2, 0, 0), first) ||
		!errors.Is(w.Flush(), first) || !errors.Is(w.Close(), first) {
		t.Errorf("error %v, then others", first)
	}
	w = create(t, t.TempDir())
	check(t, w.file.Close())
	for i := 0; i < 10000; i++ { // until the buffer runs over
		if err := w.Scalar("x", int64(i), 0, 0); err != nil {
			return
		}
	}
	t.Error("10000 events without an error")
}

func TestScalarAllocates(t *testing.T) {
	w := create(t, t.TempDir())
	defer w.Close()
	if n := testing.AllocsPerRun(1000, func() { check(t, w.Scalar("loss/worst", 1234, 5, 0.5)) }); n != 0 {
		t.Errorf("%g allocations a call, want none", n)
	}
}
