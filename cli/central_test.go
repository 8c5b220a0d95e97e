//go:build !windows

package cli

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Central training of n agents is training of one agent with n times the batch: one clipping and
// one optimizer on the mean gradient. Here a batch is all data, so that both see the same examples;
// the models differ by the order of sums. FSPDA_LONG=1 trains each pair of optimizer and form, else
// a quarter.
func TestCentralIsOneAgent(t *testing.T) {
	dir := t.TempDir()
	for i, optimizer := range []string{"sgd", "heavy-ball", "nesterov", "adamw"} {
		for name, more := range map[string][]string{
			"plain": {"--partition", "sorted"}, "clip": {"--partition", "sorted", "--clip-norm", "0.4"},
			"samples":          {"--partition", "dirichlet(0.3)", "--objective", "samples"},
			"samples and clip": {"--partition", "dirichlet(0.3)", "--objective", "samples", "--clip-norm", "0.4"},
			"accumulate":       {"--partition", "sorted", "--accumulate", "3"},
			"coupled":          {"--partition", "sorted", "--clip-norm", "0.4", "--decay-form", "coupled"},
		} {
			if os.Getenv("FSPDA_LONG") == "" && (3*i+len(name))%4 > 0 {
				continue
			}
			t.Run(optimizer+" "+name, func(t *testing.T) {
				args := append([]string{"--optimizer", optimizer, "--weight-decay", "0.02"}, more...)
				switch optimizer {
				case "adamw":
					args = append(args, "--alpha", "0.01", "--eps", "1e-4")
				case "sgd":
					args = append(args, "--alpha", "0.3")
				default:
					args = append(args, "--alpha", "0.05")
				}
				many := central(t, filepath.Join(dir, t.Name()), append(args, "--agents", "5")...)
				one := central(t, filepath.Join(dir, t.Name()+"1"), append(withoutSplit(args), "--agents", "1")...)
				if len(many) != len(one) || len(one) != 5 {
					t.Fatalf("%d and %d rows", len(many), len(one))
				}
				for k, loss := range many {
					if math.Abs(loss-one[k]) > 1e-5*math.Abs(one[k]) {
						t.Errorf("row %d: loss %.9g, of one agent %.9g", k, loss, one[k])
					}
				}
				if many[0]-many[4] < 0.05 {
					t.Errorf("the loss went from %v to %v alone", many[0], many[4])
				}
			})
		}
	}
}

// withoutSplit removes the flags that a run with a single agent refuses.
func withoutSplit(args []string) (rest []string) {
	for k := 0; k < len(args); k += 2 {
		if args[k] != "--partition" && args[k] != "--objective" {
			rest = append(rest, args[k:k+2]...)
		}
	}
	return rest
}

// central trains with sgd, and returns the losses of the mean model.
func central(t *testing.T, out string, args ...string) (losses []float64) {
	t.Helper()
	args = append([]string{"train", "--algo", "sgd", "--sampling", "full", "--data-train", "400", "--data-test", "100",
		"--hidden", "6", "--iterations", "40", "--eval-points", "4", "--metrics", "full", "--quiet", "--threads", "2",
		"--out", out}, args...)
	if status, _, stderr := call(t, args...); status != 0 {
		t.Fatalf("%q: status %d\n%s", args, status, stderr)
	}
	text, err := os.ReadFile(filepath.Join(out, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var row struct {
			Loss float64 `json:"train_loss_avg"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		losses = append(losses, row.Loss)
	}
	return losses
}
