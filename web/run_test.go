package web

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/internal/rng"
)

// evaluations returns the rows of a metrics.jsonl with n evaluations: losses fall exponentially to
// a floor with some noise, accuracies rise, bits grow with the iteration. The first row has 0 bits.
func evaluations(n int) []map[string]any {
	s := rng.New(7, "web-test")
	var rows []map[string]any
	for r := range n {
		it := float64(r * 200)
		fall := math.Exp(-it / 3000)
		noise := 1 + 0.04*s.Norm()
		acc := 0.97 - 0.87*fall
		bits := it * 6.4 * 79510
		rows = append(rows, map[string]any{
			"iteration": it, "epoch": it / 400, "train_loss_worst": (0.12 + 2.3*fall) * noise, "train_loss_avg": 0.07 +
				2.2*fall,
			"grad_sq_worst": (0.002 + fall) * noise * noise, "grad_sq_avg": 0.0004 + 0.8*fall,
			"consensus": 40 * it / (it + 500) * (0.02 + fall), "consensus_max": 8 * it / (it + 500) * (0.02 +
				fall) * noise * noise,
			"test_loss_avg": 0.1 + 2.2*fall, "test_loss_mean": 0.12 + 2.2*fall,
			"test_acc_min": acc - 0.05*fall - 0.02, "test_acc_mean": acc - 0.01, "test_acc_max": math.Min(1,
				acc+0.01), "test_acc_avg": acc,
			"dual_sum": 1e-7 * it / 1e4, "dual_track": nil,
			"bits_total": bits, "bits_agent_max": bits / 8, "bits_packed": bits * 1.27, "bits_reference": bits * 2,
			"overhead_bits": it * 64, "wire_bytes": bits / 7.5,
			"grads_total": it * 10, "lr": 0.1, "eta": 0.001, "wall_s": it / 350,
		})
	}
	return rows
}

// line encodes one evaluation as a line of JSON.
func line(t testing.TB, row map[string]any) string {
	t.Helper()
	b, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

// jsonl encodes evaluations as a metrics file.
func jsonl(t testing.TB, rows []map[string]any) string {
	t.Helper()
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(line(t, r))
	}
	return b.String()
}

const testConfig = `# resolved configuration
data: mnist
model: mlp
algo: fspda-sa
agents: 10
graph: er10-published
edges: one-edge
mask: randk
density: 0.1
partition: {kind: dirichlet, alpha: 0.3}
batch: 64
iterations: 20000
alpha: 0.1
eta: 0.001
gamma: 0.5
beta: 0.5
momentum: 0
weight_decay: 0.0001
schedule: constant
seed: 1
device: cpu
`

const testSummary = `{"algo":"fspda-sa","agents":10,"iterations":20000,"status":"finished","wall_s":57.14,"iterations_per_s":350,
"test_acc_avg":0.9689,"test_acc_min":0.9488,"test_acc_mean":0.9589,"train_loss_avg":0.0728,"train_loss_worst":0.1229,
"grad_sq_worst":0.0033,"consensus":0.829,"dual_sum":2e-7,"bits_total":10177280000,"bits_packed":12925145600,
"bits_reference":20354560000,"wire_bytes":1356970666,"device":"cpu","seed":1,"version":"v0.1.0",
"dim":79510,"graph":"er10-published",
"edges":"one-edge","mask":"randk","density":0.1,"partition":"dirichlet(0.3)",
"command":"fspda train --algo fspda-sa --agents 10 --graph er10-published --seed 1","machine":"4 cores, x86-64"}`

// testShards returns a shards.json of n agents with Dirichlet shares of the classes on a random
// graph.
func testShards(t testing.TB, n, classes int) string {
	t.Helper()
	s := rng.New(3, "web-test-shards")
	share := make([]float64, n)
	sh := shards{Classes: classes, Agents: make([][]int, n)}
	for i := range sh.Agents {
		sh.Agents[i] = make([]int, classes)
	}
	for c := range classes {
		s.Dirichlet(share, 0.3)
		for i := range n {
			sh.Agents[i][c] = int(6000 * share[i])
		}
	}
	for i := range n {
		for j := range i {
			if j == i-1 || s.Float64() < 4/float64(n) {
				sh.Edges = append(sh.Edges, []int{j, i})
			}
		}
	}
	b, err := json.Marshal(sh)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// folder makes the folder of a run with the given files: names and contents alternate.
func folder(t testing.TB, files ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mnist-sa")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runs maps names to functions that make run folders, from a normal run to edge cases.
var runs = map[string]func(t testing.TB) string{
	"good": func(t testing.TB) string {
		return folder(t, "metrics.jsonl", jsonl(t, evaluations(101)), "config.yaml", testConfig, "summary.json",
			testSummary, "shards.json", testShards(t, 10, 10))
	},
	"diverged": func(t testing.TB) string {
		rows := evaluations(26)
		for _, r := range rows[20:] { // the run diverges; non-finite numbers are null
			set(r, nil, "train_loss_worst", "train_loss_avg", "grad_sq_worst", "grad_sq_avg", "consensus",
				"consensus_max")
		}
		summary := strings.Replace(testSummary, `"finished"`, `"diverged"`, 1)
		return folder(t, "metrics.jsonl", jsonl(t, rows), "config.yaml", testConfig, "summary.json", summary,
			"shards.json", testShards(t, 120, 400))
	},
	"bare": func(t testing.TB) string { return folder(t, "metrics.jsonl", jsonl(t, evaluations(20))) },
	"single": func(t testing.TB) string {
		return folder(t, "metrics.jsonl", jsonl(t, evaluations(1)), "shards.json", testShards(t, 1, 10))
	},
	"one": func(t testing.TB) string {
		return folder(t, "metrics.jsonl", jsonl(t, evaluations(51)[50:]), "shards.json", testShards(t, 3, 2))
	},
	"flat": func(t testing.TB) string {
		return folder(t, "metrics.jsonl", jsonl(t, constant(12, 0)), "shards.json", testShards(t, 40, 10))
	},
	"equal": func(t testing.TB) string { return folder(t, "metrics.jsonl", jsonl(t, constant(12, 0.25))) },
	"wide": func(t testing.TB) string {
		rows := evaluations(40)
		for i, r := range rows {
			r["consensus"], r["consensus_max"] = math.Pow(10, 8-float64(i)), math.Pow(10, 7.5-float64(i))
			r["grad_sq_worst"], r["grad_sq_avg"] = math.Pow(10, float64(15*(i-20))), 1e-300
		}
		return folder(t, "metrics.jsonl", jsonl(t, rows))
	},
	"empty": func(t testing.TB) string { return folder(t, "metrics.jsonl", "") },
	"nulls": func(t testing.TB) string {
		return folder(t, "metrics.jsonl",
			`{"iteration":0}`+"\n"+`{"iteration":10,"bits_total":5,"consensus":null}`+"\n")
	},
}

// set assigns a value to several keys of an evaluation.
func set(row map[string]any, v any, keys ...string) {
	for _, k := range keys {
		row[k] = v
	}
}

// constant returns n evaluations in which every key except iteration is v.
func constant(n int, v float64) []map[string]any {
	rows := evaluations(n)
	for _, r := range rows {
		for k := range r {
			if k != "iteration" {
				r[k] = v
			}
		}
	}
	return rows
}

// keep copies the output of a test to the folder $FSPDA_KEEP, for inspection.
func keep(t testing.TB, dir, name string) {
	t.Helper()
	to := os.Getenv("FSPDA_KEEP")
	if to == "" {
		return
	}
	if err := os.CopyFS(filepath.Join(to, name), os.DirFS(dir)); err != nil {
		t.Fatal(fmt.Errorf("copy the output: %w", err))
	}
}
