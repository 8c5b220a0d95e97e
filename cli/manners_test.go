//go:build !windows

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/train"
)

// Flags have the names that other programs give them, with a hint, and names may be in any case.
func TestAliasesAndCase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	status, _, stderr := call(t, "train", "--dataset", "Synthetic", "--data-train", "400", "--data_test", "100",
		"--hidden", "6", "--nodes", "4", "--batch-size", "16", "--iterations", "4", "--eval-points", "1", "--topology", "Ring",
		"--algo", "FSPDA-Storm", "--model", "MLP", "--lr", "0.05", "--partition", "Dirichlet-Equal(0.5)", "--out", dir)
	if status != 0 {
		t.Fatal(stderr)
	}
	c, err := train.ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.Data != "synthetic" || c.Agents != 4 || c.Batch != 16 || c.Graph != "ring" || c.Algo != "fspda-storm" ||
		c.Model != "mlp" || c.Alpha != 0.05 || c.Partition != "dirichlet-equal(0.5)" {
		t.Errorf("%+v", c)
	}
	for _, hint := range []string{"--lr is called --alpha here\n", "--nodes is called --agents here\n",
		"--dataset is called --data here\n", "--topology is called --graph here\n", "--batch-size is called --batch here\n"} {
		if !strings.Contains(stderr, hint) {
			t.Errorf("no hint %q in\n%s", hint, stderr)
		}
	}
	// Without a run: values that are refused show which key was set.
	for alias, want := range map[string]string{"--workers": "agents 0", "--world-size": "agents 0",
		"--world_size": "agents 0", "--learning-rate": "alpha 0"} {
		if status, _, stderr := call(t, quick(alias, "0", "--quiet")...); status != command.ExitBadInput ||
			!strings.Contains(stderr, want) || strings.Contains(stderr, "called") {
			t.Errorf("%s: exit status %d, %s", alias, status, stderr)
		}
	}
	file := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(file, []byte("lr: 0.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, quick("-c", file)...); status != command.ExitBadInput ||
		!strings.Contains(stderr, `key "lr" does not exist: it is called "alpha" here`) {
		t.Errorf("exit status %d, %s", status, stderr)
	}
}

// A misspelled value names the most similar one.
func TestValuesAreSuggested(t *testing.T) {
	for _, c := range [][]string{{"algo", "fspda-strom", "fspda-storm"}, {"algo", "storm", "fspda-storm"},
		{"data", "mnits", "mnist"}, {"model", "resnet5", "resnet50"}, {"graph", "rign", "ring"},
		{"graph", "exponental", "exponential"}, {"edges", "one-egde", "one-edge"}, {"mask", "randkk", "randk"},
		{"partition", "srted", "sorted"}, {"optimizer", "adam", "adamw"}, {"device", "cudaa", "cuda"}, {"device", "gpu:1", "cuda:1"},
		{"mixing", "metroplis", "metropolis"}, {"compress", "tpok", "topk"}, {"slowness", "stragler(3)", "straggler(f)"},
		{"compute_time", "lognromal(1)", "lognormal(sigma)"}} {
		args := quick("--"+setup.FlagName(c[0]), c[1], "--dry-run")
		switch c[0] {
		case "mixing", "compress":
			args = append(args, "--algo", "choco")
		case "slowness", "compute_time":
			args = append(args, "--algo", "fspda-async")
		}
		if status, _, stderr := call(t, args...); status != command.ExitBadInput || !strings.Contains(stderr,
			"did you mean "+c[2]+"?") {
			t.Errorf("%s: exit status %d, %s", c, status, stderr)
		}
	}
}

// The help of train explains the ten commonest flags, and lists the others by topic; a topic, or
// all, explains more.
func TestHelpByTopic(t *testing.T) {
	_, short, _ := call(t, "train", "--help")
	flags := short[strings.Index(short, "Flags:"):]
	if n := strings.Count(flags, "\n      --"); n != 10 || !strings.HasPrefix(flags, "Flags:\n      --algo") {
		t.Errorf("%d flags are explained:\n%s", n, flags)
	}
	_, all, _ := call(t, "train", "--help", "all")
	last := 0
	for _, topic := range []string{"Data", "Network", "Method", "Exchange", "Run", "Output"} {
		at := strings.Index(all, "\n"+topic+":\n")
		if at < last || !strings.Contains(short, "\n  "+strings.ToLower(topic)+" ") {
			t.Errorf("topic %s is missing, or out of order", topic)
		}
		last = at
	}
	for _, key := range append(train.Keys(), "out", "quiet", "json", "resume", "dry-run", "web", "config") {
		if name := "--" + setup.FlagName(key) + " "; !strings.Contains(all, name) || !strings.Contains(
			strings.ReplaceAll(short, "\n", " "), name) {
			t.Errorf("no flag %s", name)
		}
	}
	_, exchange, _ := call(t, "train", "--help", "exchange")
	if !strings.Contains(exchange, "--density float") || strings.Contains(exchange, "--hidden widths") {
		t.Error(exchange)
	}
	_, agent, _ := call(t, "agent", "--help")
	if !strings.Contains(agent, "Of this command:") || !strings.Contains(agent, "--rank int") {
		t.Error(agent)
	}
}

// The shell completes algorithms, graphs, data sets, pages and run folders.
func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, run := range []string{"runs/first", "runs/sweep/second"} {
		if err := os.MkdirAll(run, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(run, "config.yaml"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args  []string
		has   string
		lacks string
	}{{[]string{"train", "--algo", "ds"}, "dsgd", "sgp"}, {[]string{"train", "--graph", "E"}, "er(p)", "ring"},
		{[]string{"train", "--data", ""}, "mnist", "ring"}, {[]string{"train", "--edges", ""}, "matching", "ring"},
		{[]string{"bench", "step", "--algo", "ch"}, "choco", "dsgd"}, {[]string{"train", "--model", "resnet5"}, "resnet50",
			"mlp"}, {[]string{"docs", "tr"}, "training\t", "data\t"}, {[]string{"compare", ""}, "runs/first", "dsgd"},
		{[]string{"eval", ""}, "runs/sweep/second", "dsgd"}, {[]string{"plot", ""}, "runs/first", "dsgd"}} {
		status, stdout, _ := call(t, slices.Concat([]string{"__complete"}, c.args)...)
		lines := "\n" + stdout
		if status != 0 || !strings.Contains(lines, "\n"+c.has) || strings.Contains(lines, "\n"+c.lacks) {
			t.Errorf("%q: exit status %d\n%s", c.args, status, stdout)
		}
	}
}
