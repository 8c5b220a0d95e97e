//go:build linux && amd64 && !nocuda && !static

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/bench/acceptance"
	"fspda/cli/command"
	"fspda/internal/testing/fakecuda"
)

// cardResults reads the results of bench card.
func cardResults(t *testing.T, out string) (r acceptance.Results) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "card.json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// On a GPU without free memory every part fails on its own with a reason, and stops no other part.
func TestBenchCardOnBrokenGPU(t *testing.T) {
	b := newFakeMachine(t, fakecuda.Variant{})
	out := filepath.Join(b.work, "card")
	status, stdout, stderr := b.run(fakecuda.Machine{Fail: []string{"cuMemAlloc_v2:1:2+"}}, "bench", "card", "--tiny",
		"--python", "", "--only", "memory,resnet18/bf16", "--out", out)
	if status != command.ExitFailed || !strings.Contains(stderr, "2 parts failed") {
		t.Errorf("exit status %d\n%s%s", status, stdout, stderr)
	}
	r := cardResults(t, out)
	if len(r.Outcomes) != 2 || !strings.HasPrefix(r.Machine[1].Value, "Fake GPU") {
		t.Fatalf("%+v", r)
	}
	for _, o := range r.Outcomes {
		if o.Status != acceptance.Failed || !strings.Contains(o.Reason, "taking ") ||
			!strings.Contains(o.Reason, "of device memory") {
			t.Errorf("%+v", o)
		}
	}
	if !strings.Contains(stdout, "could not run: fspda train: exit status") {
		t.Errorf("the table does not say why:\n%s", stdout)
	}
}

// Whatever of the headline hangs, crashes or misses a library on a GPU, the others are measured,
// and its own lines say why they are not. TestRehearsal of bench/acceptance has every place.
func TestBenchCardRehearsal(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes minutes: set FSPDA_LONG=1")
	}
	const step, million, convolutions = "figure1/alone", "figure1/million", "resnet18/bf16-2-32"
	for what, c := range map[string]struct {
		fail    string // a fault of Machine
		without string // a library that is missing
		lost    string // the part that cannot be done
	}{
		"cooperative launches hang": {fail: fmt.Sprintf("cuLaunchCooperativeKernel:1:%d", fakecuda.Hangs),
			lost: "selftest/megakernel"},
		"cooperative launches crash": {fail: fmt.Sprintf("cuLaunchCooperativeKernel:3:%d", fakecuda.Crashes),
			lost: "selftest/megakernel"},
		"convolutions hang": {fail: fmt.Sprintf("cudnnBackendExecute:1:%d+", fakecuda.Hangs), lost: convolutions},
		"convolutions crash": {fail: fmt.Sprintf("cudnnBackendExecute:2:%d+", fakecuda.Crashes),
			lost: convolutions},
		"no cuDNN": {without: "libcudnn.so.9", lost: convolutions},
	} {
		t.Run(what, func(t *testing.T) {
			b := newFakeMachine(t, fakecuda.Variant{})
			if c.without != "" {
				library := filepath.Join(b.work, "libraries")
				if err := os.CopyFS(library, os.DirFS(b.library)); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(filepath.Join(library, c.without)); err != nil {
					t.Fatal(err)
				}
				b.library = library
			}
			m := fakecuda.Machine{Memory: 4 << 30}
			if c.fail != "" {
				m.Fail = []string{c.fail}
			}
			out := filepath.Join(b.work, "card")
			cmd, stdout, stderr := b.command(m, "bench", "card", "--tiny", "--python", "", "--only",
				"selftest/megakernel,"+step+","+convolutions+","+million, "--out", out, "--budget", "8m")
			_ = cmd.Run() // it fails where a part does; the report of a process that was killed is not complete
			r := cardResults(t, out)
			for _, o := range r.Outcomes {
				if (o.Part == c.lost) == (o.Status == acceptance.Done) {
					t.Errorf("%s is %s: %s", o.Part, o.Status, o.Reason)
				}
			}
			if len(r.Outcomes) != 4 {
				t.Errorf("%d parts, want 4\n%s%s", len(r.Outcomes), stdout, stderr)
			}
		})
	}
}

// All parts for a GPU run on fake libraries, including the share of the roofline and the memory
// that the driver counts.
func TestBenchCardOnFakeCUDA(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes a minute: set FSPDA_LONG=1")
	}
	b := newFakeMachine(t, fakecuda.Variant{})
	out := filepath.Join(b.work, "card")
	b.must(fakecuda.Machine{Memory: 4 << 30}, "bench", "card", "--tiny", "--python", os.Getenv("FSPDA_PEERS"), "--only",
		"memory,resnet18/bf16", "--out", out, "--budget", "5m")
	r := cardResults(t, out)
	for _, key := range []string{"forecast", "taken", "ours", "roofline", "copy"} {
		seen := 0.0
		for _, o := range r.Outcomes {
			seen += o.Values[key]
		}
		if seen <= 0 {
			t.Errorf("no %s: %+v, %+v", key, r.Outcomes[0], r.Outcomes[1])
		}
	}
}
