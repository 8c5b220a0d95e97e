// Package ownparts tests that an optimizer and a compressor of a user's program are one file and
// one row each: the command has them in its help, checks, runs, checkpoints and counts of bits. It
// is a package of its own because what it registers would be in the tables that other tests
// compare.
package ownparts

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/cli"
	"fspda/dist"
)

// command runs the program and returns its status and everything that it printed.
func command(args ...string) (status int, text string) {
	var out bytes.Buffer
	status = cli.Run(context.Background(), args, &out, &out)
	return status, out.String()
}

// small are the flags of a run of a few seconds.
var small = []string{"--data-train", "200", "--data-test", "50", "--hidden", "none", "--agents", "4", "--graph", "ring",
	"--batch", "8", "--alpha", "0.001", "--threads", "1", "--quiet"}

// TestHelp looks for both in the help of the flags.
func TestHelp(t *testing.T) {
	_, text := command("train", "--help", "all")
	text = strings.Join(strings.Fields(text), " ")
	for _, want := range []string{"nesterov, adamw, muon or signum",
		"decoupled with adamw, muon, schedule-free-adamw, demo and signum",
		"signum: keep (a number in [0, 1), default 0.9): decay rate of the momentum", "identity, truncate(2)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the help of train does not say %q", want)
		}
	}
}

// TestChecks gives settings that the rows do not admit.
func TestChecks(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--optimizer signum --param keep=1", "params.keep 1: expected a number in [0, 1): decay rate of the momentum"},
		{"--optimizer adamw --param keep=0.5", "it needs optimizer signum"},
		{"--optimizer signum --beta2 0.9", "does not use beta1, beta2 and eps"},
		{"--optimizer signum --momentum 0.5", "signum has no such factor: use optimizer heavy-ball or nesterov"},
		{"--optimizer signum --layer-lr fc1=2", "signum divides a gradient by its own size"},
		{"--optimizer sigmum", "did you mean signum?"},
		{"--algo fspda-storm --optimizer signum", "fspda-storm is stated for sgd"},
		{"--algo choco --compress truncate(4)", `"4" is not a number of bytes: it takes 2 or 3`},
		{"--algo choco --compress truncate", "the argument is missing; write truncate(n)"},
		{"--algo choco --compress truncate(2) --mask block", "sends something of every coordinate"},
		{"--algo choco --compress truncate(2) --norms flat", "it needs compress qsgd(s), qsgd-scaled(s) or sign"},
		{"--algo choco --compress truncate(2) --reference-bits published",
			"the released program has no compress truncate"},
		{"--algo swarm --compress truncate(2)", "only a lattice can"},
	} {
		args := append(append([]string{"train"}, small...), "--iterations", "4", "--dry-run")
		if status, text := command(append(args, strings.Fields(c.flags)...)...); status != 2 ||
			!strings.Contains(strings.Join(strings.Fields(text), " "), c.want) {
			t.Errorf("%s: status %d, want 2 and %q:\n%s", c.flags, status, c.want, text)
		}
	}
}

// TestRunsAndResumes compares a run with one that was ended at its half and continued.
func TestRunsAndResumes(t *testing.T) {
	for name, flags := range map[string][]string{
		"optimizer":  {"--optimizer", "signum", "--param", "keep=0.5"},
		"corrected":  {"--algo", "d2", "--optimizer", "signum", "--placement", "corrected"},
		"compressor": {"--algo", "choco", "--compress", "truncate(2)", "--optimizer", "signum"},
		"broadcasts": {"--algo", "choco", "--compress", "truncate(3)", "--edges", "broadcast(0.5)"},
	} {
		t.Run(name, func(t *testing.T) {
			whole, halves := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "halves")
			run := func(folder, iterations, points string) {
				args := append(append([]string{"train"}, small...), flags...)
				args = append(args, "--iterations", iterations, "--eval-points", points, "--out", folder)
				if folder == halves && iterations == "40" {
					args = []string{"train", "--resume", "--iterations", "40", "--out", folder, "--quiet"}
				}
				if status, text := command(args...); status != 0 {
					t.Fatalf("%v: status %d\n%s", args, status, text)
				}
			}
			run(whole, "40", "4")
			run(halves, "20", "2")
			run(halves, "40", "4")
			a, b := columns(t, whole), columns(t, halves)
			for _, column := range []string{"iteration", "train_loss_avg", "consensus", "bits_total"} {
				if a[column] == "" || a[column] != b[column] {
					t.Errorf("%s is %q, and %q in the run that was continued", column, a[column], b[column])
				}
			}
			if name == "compressor" { // 4 edges, both ways, 7,850 numbers of 16 bits, 40 iterations
				if want := "40192000"; a["bits_total"] != want {
					t.Errorf("bits_total is %s, want %s", a["bits_total"], want)
				}
			}
		})
	}
}

// TestEncodes compares the numbers that a codec writes and reads, and their bits, with those that
// it compresses to.
func TestEncodes(t *testing.T) {
	for _, spec := range []string{"truncate(2)", "truncate(3)"} {
		c, err := dist.ParseCompressor(spec, dist.CompressorOptions{Sizes: []int{5}})
		if err != nil {
			t.Fatal(err)
		}
		var p dist.Payload
		if err := c.Compress(&p, []float32{0, -1.7, 3.14159, 1e-20, -65504}, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		var l dist.Ledger
		l.Send(c.Sent(p))
		b, err := c.Encode(nil, p, dist.SharedSeed, false)
		if err != nil || 8*len(b) != int(l.SharedSeed) {
			t.Errorf("%s: %d bytes, %d bits counted, %v", spec, len(b), l.SharedSeed, err)
		}
		back := dist.Payload{Dim: p.Dim}
		err = c.Decode(&back, b, dist.SharedSeed, false)
		if err != nil || !slices.Equal(back.Vectors[0], p.Vectors[0]) {
			t.Errorf("%s: %v arrived as %v, %v", spec, p.Vectors, back.Vectors, err)
		}
	}
}

// columns returns the last row of a run.
func columns(t *testing.T, folder string) map[string]string {
	text, err := os.ReadFile(filepath.Join(folder, "metrics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	values := map[string]string{}
	last := strings.Split(lines[len(lines)-1], ",")
	for k, name := range strings.Split(lines[0], ",") {
		values[name] = last[k]
	}
	return values
}
