//go:build !windows

package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fspda/train"
)

// TensorBoard reads the grouped curves and the hyperparameters of a run; MLflow and W&B take its
// metrics without loss. FSPDA_PEERS names a Python that has all three; make peers makes one.
func TestTrackers(t *testing.T) {
	python := os.Getenv("FSPDA_PEERS")
	if python == "" {
		t.Skip("set FSPDA_PEERS to a Python with tensorboard, mlflow and wandb, such as that of make peers")
	}
	if out, err := exec.Command(python, "-c", "import tensorboard, mlflow, wandb").CombinedOutput(); err != nil {
		t.Skipf("the Python of FSPDA_PEERS has no tensorboard, mlflow or wandb: install them\n%s", out)
	}
	dir := t.TempDir()
	run, store := filepath.Join(dir, "run"), filepath.Join(dir, "store")
	if status, _, stderr := call(t, quick("--out", run, "--quiet")...); status != 0 {
		t.Fatal(stderr)
	}
	peer := func(args ...string) []byte {
		cmd := exec.Command(python, args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, &stderr)
		}
		return out
	}
	script := filepath.Join("..", "deploy", "trackers.py")
	peer(script, "mlflow", run, "--to", store)
	peer(script, "wandb", run, "--to", dir)
	found, err := filepath.Glob(filepath.Join(dir, "wandb", "offline-run-*", "*.wandb"))
	if err != nil || len(found) != 1 {
		t.Errorf("W&B wrote %v, %v", found, err)
	}
	var got struct {
		Scalars, MLflow map[string][][2]float64
		HParams         map[string]any
		Params          map[string]string
	}
	if err := json.Unmarshal(peer(filepath.Join("..", "bench", "peers", "trackers.py"), run, store), &got); err != nil {
		t.Fatal(err)
	}
	rows, err := train.ReadMetrics(filepath.Join(run, "metrics.jsonl"), math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		at, loss := float64(r.Iteration), float64(r.TrainLossAvg)
		if p := got.Scalars["train/loss"][i]; p[0] != at || p[1] != float64(float32(loss)) {
			t.Errorf("TensorBoard has %v, want %v at %v", p, loss, at)
		}
		if p := got.Scalars["bits/total_Gbit"][i]; p[1] != float64(float32(float64(r.BitsTotal)/1e9)) {
			t.Errorf("TensorBoard has %v Gbit, want %d bit", p, r.BitsTotal)
		}
		if p := got.MLflow["train_loss_avg"][i]; p[0] != at || p[1] != loss {
			t.Errorf("MLflow has %v, want %v at %v", p, loss, at)
		}
	}
	if got.HParams["algo"] != "fspda-sa" || got.HParams["alpha"] != 0.3 || got.Params["algo"] != "fspda-sa" {
		t.Errorf("hyperparameters %v and %v", got.HParams, got.Params)
	}
}
