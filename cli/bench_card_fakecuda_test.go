//go:build linux && amd64 && !nocuda && !static

package cli

import (
	"encoding/json"
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
