//go:build !windows

package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/train"
)

// Flags have the names that other programs give them, with a hint, and names may be in any case.
func TestAliasesAndCase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	status, _, stderr := call(t, "train", "--dataset", "Synthetic", "--data-train", "400", "--data_test", "100",
		"--hidden", "6", "--Nodes", "4", "--batch-size", "16", "--iterations", "4", "--eval-points", "1",
		"--topology", "Ring", "--algo", "FSPDA-Storm", "--model", "MLP", "--lr", "0.05",
		"--partition", "Dirichlet-Equal(0.5)", "--out", dir)
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
		"--dataset is called --data here\n", "--topology is called --graph here\n",
		"--batch-size is called --batch here\n"} {
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
		{"partition", "srted", "sorted"}, {"optimizer", "adam", "adamw"}, {"device", "cudaa", "cuda"},
		{"device", "gpu:1", "cuda:1"},
		{"mixing", "metroplis", "metropolis"}, {"compress", "tpok", "topk"},
		{"slowness", "stragler(3)", "straggler(f)"},
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

// Every command prints its help: what it does, how it is called and its flags, and no error of a
// template or a format.
func TestHelpOfEveryCommand(t *testing.T) {
	var visit func(c *cobra.Command, path ...string)
	visited := 0
	visit = func(c *cobra.Command, path ...string) {
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && sub.Name() != "completion" {
				visit(sub, append(slices.Clone(path), sub.Name())...)
			}
		}
		visited++
		status, text, stderr := call(t, append(path, "--help")...)
		if status != 0 || stderr != "" || !strings.Contains(text, "Usage:\n") ||
			!strings.Contains(text, strings.Join(append([]string{"fspda"}, path...), " ")) {
			t.Errorf("%v: exit status %d, %s\n%s", path, status, stderr, text)
		}
		for _, bad := range []string{"template:", "%!", "<no value>", "{{", "<nil>"} {
			if strings.Contains(text, bad) {
				t.Errorf("the help of %v contains %q:\n%s", path, bad, text)
			}
		}
	}
	visit(newRoot(io.Discard, io.Discard))
	if visited < 40 {
		t.Errorf("only %d commands", visited)
	}
	_, text, _ := call(t, "bench", "step", "--help")
	for _, want := range []string{"With --algo all", "--algo string", "--time duration", "All flags by topic"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the help of bench step:\n%s", want, text)
		}
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
		{[]string{"bench", "step", "--algo", "ch"}, "choco", "dsgd"},
		{[]string{"train", "--model", "resnet5"}, "resnet50",
			"mlp"}, {[]string{"docs", "tr"}, "training\t", "data\t"}, {[]string{"compare", ""}, "runs/first", "dsgd"},
		{[]string{"eval", ""}, "runs/sweep/second", "dsgd"}, {[]string{"plot", ""}, "runs/first", "dsgd"}} {
		status, stdout, _ := call(t, slices.Concat([]string{"__complete"}, c.args)...)
		lines := "\n" + stdout
		if status != 0 || !strings.Contains(lines, "\n"+c.has) || strings.Contains(lines, "\n"+c.lacks) {
			t.Errorf("%q: exit status %d\n%s", c.args, status, stdout)
		}
	}
}

// Messages about values of a wrong kind speak of numbers, texts and lists, and end with the status
// of bad input.
func TestPlainWords(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f.yaml")
	for _, c := range []struct {
		text string
		args []string
		want string
	}{
		{"alpha: big", []string{"train", "-c", file}, "alpha big: expected a number"},
		{"agents: ten", []string{"train", "-c", file}, "f.yaml: agents ten: expected a whole number"},
		{"hidden: -3", []string{"train", "-c", file}, "f.yaml: hidden: \"-3\" is not a list of positive widths"},
		{"", []string{"train", "--density", "10%"}, "--density 10%: expected a number: write 0.1"},
		{"", []string{"train", "--iterations", "1e5"}, "--iterations 1e5: expected a whole number: write 100000"},
		{"alpha: [1, 2]", []string{"train", "-c", file}, "alpha [1, 2]: expected a number"},
		{"agents: [1, 2]", []string{"train", "-c", file}, "agents [1, 2]: expected a whole number"},
		{"agents: 99999999999999999999", []string{"train", "-c", file}, "expected a whole number"},
		{"bias: 3", []string{"train", "-c", file}, "bias 3: expected true or false"},
		{"seed: -1", []string{"train", "-c", file}, "seed -1: expected a whole number of at least 0"},
		{"algo: {a: b}", []string{"train", "-c", file}, "algo {a: b}: expected a name or a text"},
		{"grid: {alpha: [[1]]}", []string{"sweep", "-c", file}, "alpha [1]: expected a number"},
		{"grid: {alpha: [1]}\nsamples: x", []string{"sweep", "-c", file}, "found a text, expected a whole number"},
		{"default: {latency_ms: x}", []string{"train", "--links", file}, "line 1: latency_ms x: found a text, " +
			"expected a number"},
		{"default: {latency_ms: [1]}", []string{"train", "--links", file}, "found a list, expected a number"},
		{"", []string{"train", "--alpha", "big"}, "--alpha big: expected a number"},
		{"", []string{"train", "--agents", "1.5"}, "--agents 1.5: expected a whole number"},
		{"", []string{"train", "--seed", "-1"}, "--seed -1: expected a whole number of at least 0"},
		{"", []string{"train", "--bn-batches", "99999999999999999999"}, "expected a smaller number"},
		{"", []string{"train", "--bias", "false"}, "write --bias=false"},
		{"", []string{"train", "--bias=3"}, "--bias 3: expected true or false"},
		{"", []string{"train", "-c", ""}, "--config is empty: give it a value"},
		{"", []string{"train", "--out", ""}, "--out is empty: give it a value"},
		{"", []string{"compare", dir, "--out", ""}, "--out is empty: give it a value"},
		{"", []string{"train", "--out", file}, "choose a folder with --out that can be made"},
		{"", []string{"train", "--hidden", ""}, "--hidden : \"\" is not a list of positive widths"},
		{"seed: 010", []string{"train", "-c", file}, "f.yaml: line 1 has the number 010"},
		{"", []string{"train", "--hidden", "a"}, "--hidden a: \"a\" is not a list of positive widths"},
		{"", []string{"train", "--help=all"}, "write --help all"},
		{"", []string{"runs", "--older", "x"}, "--older x: expected a duration, such as 30s"},
		{"", []string{"data", "info", "/nope"}, "name a folder, an archive"},
		{"", []string{"data", "check", "/nope"}, "fspda data prepare"},
		{"", []string{"data", "prepare", "/nope", "--out", dir}, "/nope"},
		{"", []string{"completion", "bsh"}, "did you mean bash?"},
		{"", []string{"train", "--data", "mnist"}, "config: data mnist: no folder given: fspda data mnist fetches it"},
		{"", []string{"train", "--data", "cifar10"}, "given: fspda data cifar10 fetches it"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := call(t, c.args...)
		if status != command.ExitBadInput || !strings.Contains(stderr, c.want) || goWords.MatchString(stderr) {
			t.Errorf("%s %q: exit status %d, %s", c.text, c.args, status, stderr)
		}
	}
	// Runs of a figure that lack the same data say so once.
	if _, _, stderr := call(t, "figure", "1", "--data-dir", dir, "--out", filepath.Join(dir, "f")); strings.Count(
		stderr, "fspda data mnist") != 1 {
		t.Error(stderr)
	}
}

// goWords matches names of Go's types and functions.
var goWords = regexp.MustCompile(`unmarshal|Go struct|interface|strconv|uint64|float64|\[\]|time: `)

// The same of the files of a run that were changed by hand.
func TestPlainWordsOfRunFolders(t *testing.T) {
	t.Chdir(t.TempDir()) // compare writes to runs/
	dir := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := call(t, quick("--quiet", "--out", dir)...); status != 0 {
		t.Fatal(stderr)
	}
	for _, name := range []string{"summary.json", "metrics.jsonl", "checkpoints/iter-000000040/manifest.json",
		"config.yaml"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{`{"iteration": "x", "iterations": "x", "format": "x"}`, `[1]`} {
			if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"plot", dir}, {"compare", dir, dir}, {"export", dir},
				{"runs", "--dir", filepath.Dir(dir)}} {
				if _, _, stderr := call(t, args...); goWords.MatchString(stderr) {
					t.Errorf("%s in %s: %q: %s", text, name, args, stderr)
				}
			}
		}
		if err := os.WriteFile(path, was, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
