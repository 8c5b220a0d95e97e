//go:build !windows

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/train"
	"fspda/train/algo"
	"fspda/train/setting"
)

// registersKey says that a process of this test registers a key, which other tests must not see.
const registersKey = "FSPDA_TEST_REGISTERS_KEY"

// A key that another package registers is declared by one value: flag, file, help, completion,
// check, reference, stored configuration, fingerprint and the refusal where it has no effect follow
// from it, and its method reads it.
func TestRegisteredKey(t *testing.T) {
	if os.Getenv(registersKey) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRegisteredKey$")
		cmd.Env = append(os.Environ(), registersKey+"=1")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return
	}
	pullShare := setting.Key{Name: "pull_share", Topic: "method", Default: 0.25, Range: "(0, 1]",
		Help: "share of the way to a neighbour", Needs: []setting.Need{setting.Is("order", "cta")}, Since: "0.2.0"}
	var read []float64
	With(Key(pullShare), Method(train.Method{Name: "puller", Keys: []setting.Key{{Name: "order"}, pullShare},
		New: func(s algo.Settings) algo.Algorithm {
			read = append(read, s.Param("pull_share"))
			return algo.DSGD{Theta: s.Param("pull_share")}
		}}))()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	out, file := in("run"), in("run.yaml")
	if err := os.WriteFile(file, []byte("{algo: puller, pull_share: 0.5, iterations: 4, eval_points: 1, "+
		"data_train: 400, data_test: 100, hidden: 4, agents: 4, batch: 8, density: 1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"train --quiet -c FILE --out OUT", 0, ""},
		{"train --quiet --resume --out OUT --pull-share 0.3", 2, "pull_share (0.5 there, 0.3 here)"},
		{"train -c FILE --pull-share 2", 2, "config: pull_share 2: expected a number in (0, 1]: share of the way"},
		{"train -c FILE --order atc", 2, "pull_share 0.5: has no effect on this run: it needs order cta"},
		{"train --pull-share 0.5", 2, "pull_share 0.5: has no effect on this run: it needs algo puller"},
		{"train --pul-share 0.5", 2, "pull-share"},
		{"train --help method", 0, "--pull-share float"},
	} {
		args := strings.NewReplacer("FILE", file, "OUT", out).Replace(c.args)
		status, stdout, stderr := call(t, strings.Fields(args)...)
		if status != c.status || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s: status %d, want %d and %q\n%s%s", args, status, c.status, c.says, stdout, stderr)
		}
	}
	const row, stored = "| `pull_share` | `0.25` | share of the way to a neighbour |", "pull_share: 0.5\n"
	if !strings.Contains(reference(silentRoot()), row) {
		t.Errorf("the reference lacks %q", row)
	}
	text, err := os.ReadFile(filepath.Join(out, "config.yaml"))
	if err != nil || !strings.Contains(string(text), stored) {
		t.Errorf("config.yaml lacks %q: %v", stored, err)
	}
	if !slices.Contains(read, 0.5) {
		t.Errorf("the method read %v", read)
	}
	c := train.Default() // the key came later: at its default it is in no fingerprint
	before := c.Fingerprint()
	if err := c.Parse("run.yaml", []byte("pull_share: 0.25")); err != nil || c.Fingerprint() != before {
		t.Errorf("the default changes the fingerprint: %v", err)
	}
	if err := c.Parse("run.yaml", []byte("pull_share: 0.5")); err != nil || c.Fingerprint() == before {
		t.Errorf("the value does not change the fingerprint: %v", err)
	}
}
