//go:build !windows

package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/cli/command"
)

// refusal is a command line that is refused, with files that it reads and words of its error.
type refusal struct {
	args  string // separated by spaces
	file  string // text of in.yaml
	words string
}

// refused runs command lines in an empty folder. Each must end with the status for bad input before
// it writes results.
func refused(t *testing.T, all []refusal) {
	t.Helper()
	for _, r := range all {
		t.Chdir(t.TempDir())
		if err := os.WriteFile("in.yaml", []byte(r.file), 0o644); err != nil {
			t.Fatal(err)
		}
		status, stdout, stderr := call(t, strings.Fields(r.args)...)
		if status != command.ExitBadInput || !strings.Contains(stderr, r.words) {
			t.Errorf("%s: exit status %d, want 2 and %q\n%s%s", r.args, status, r.words, stdout, stderr)
		}
		if _, err := os.Stat(command.RunsDir); err == nil {
			t.Errorf("%s: has written results", r.args)
		}
	}
}

// small is a configuration of runs that take little time, should they be made.
const small = "{data_train: 300, data_test: 50, hidden: 4, agents: 4, batch: 8, iterations: 20, eval_points: 2}\n"

// Searches and figures refuse metrics that their runs cannot have, before they train.
func TestMetricsThatRunsLack(t *testing.T) {
	grid := "base: " + strings.Replace(small, "{", "{algo: dsgd, ", 1) + "grid: {alpha: [0.1, 0.3]}\nmetric: "
	panel := "common: " + small + "runs: [{name: a, config: {algo: dsgd}}]\npanels: [{metric: "
	refused(t, []refusal{
		{"sweep -c in.yaml", grid + "perplexity", "need data that is text"},
		{"sweep -c in.yaml", grid + "virtual_time", "need virtual time, which links give"},
		{"sweep -c in.yaml", grid + "dual_sum", "need an algorithm with duals"},
		{"sweep -c in.yaml", "base: " + small + "grid: {alpha: [0.1]}\nsamples: many",
			"found a text, expected a whole number: expected samples: 5"},
		{"tune -c in.yaml", "base: " + small + "methods: [{set: {algo: dsgd}, grid: {alpha: [0.1, 0.3]}}]\n" +
			"metric: loss_scale", "need precision fp16"},
		{"figure -c in.yaml", panel + "bits_per_byte, x: bits}]", "need data that is text"},
		{"figure -c in.yaml", panel + "consensus, x: virtual_time}]", "need virtual time"},
	})
}

// Flags that have no effect on what a command does with its other arguments are refused.
func TestFlagsWithoutEffect(t *testing.T) {
	grid := "base: " + small + "grid: {alpha: [0.1, 0.3]}\n"
	own := "common: " + small + "runs: [{name: a, config: {algo: dsgd}}]\n"
	queue := "tasks: [{name: a, command: figure 9}]"
	all := []refusal{
		{"theory list --seeds 3", "", "--seeds has no effect on theory list: leave it out"},
		{"theory iterations all", "", "all and list stand alone"},
		{"replay list --scale 0.1", "", "--scale has no effect on replay list"},
		{"replay base-graph --jobs 2", "", "--jobs has no effect on replay base-graph"},
		{"figure list --only sa", "", "--only has no effect on figure list"},
		{"figure 9 --no-time", "", "figure list only"},
		{"figure -c in.yaml --raw", own, "--raw has no effect"},
		{"sweep -c in.yaml --raw", grid, "--raw has no effect"},
		{"sweep -c in.yaml --raw --seeds 1", grid, "--raw has no effect"},
		{"queue in.yaml --list --retry", queue, "--retry has no effect on queue --list"},
		{"docs training --json", "", "--json prints the list of pages only"},
		{"docs training --listen 127.0.0.1:0", "", "--listen serves all pages"},
		{"bench scale --agents 5 --counts 2", "", "--agents has no effect on bench scale: --counts sets it"},
		{"bench scale --iterations 5 --counts 2", "", "--iterations has no effect on bench scale: --steps sets it"},
	}
	for _, flag := range strings.Split("--data mnist,--data-dir nosuch,--seed 3,--eval-points 4,--accounting packed,"+
		"--seeds 3,--jobs 2,--raw", ",") {
		all = append(all, refusal{"figure 9 " + flag, "", "has no effect on a figure that draws step sizes"})
	}
	refused(t, all)
}

// Step sizes are printed as JSON too.
func TestStepSizesAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	var curves []struct {
		Run string
		LR  []float64
	}
	status, stdout, stderr := call(t, "figure", "9", "--json", "--quiet")
	if err := json.Unmarshal([]byte(stdout), &curves); status != 0 || err != nil || len(curves) == 0 ||
		len(curves[0].LR) < 100 {
		t.Errorf("exit status %d, %v: %.200s\n%s", status, err, stdout, stderr)
	}
}

// A queue checks the commands of all tasks before it starts the first.
func TestQueueChecksTasks(t *testing.T) {
	own := "base: " + small + "runs: [{name: a, set: {algo: dsgd}}]\n"
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("alpha: -2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var all []refusal
	for command, words := range map[string]string{
		"train --bogus":                  "unknown flag: --bogus",
		"train --alpha abc":              "--alpha abc: expected a number",
		"train -c nosuch.yaml":           "nosuch.yaml",
		"train -c runs/other/config.yml": "no such file",
		"train --help":                   "--help trains nothing",
		"train --dry-run":                "--dry-run trains nothing",
		"theory list":                    "list trains nothing",
		"figure":                         "expected list, or the number or name of one figure",
		"train --alpha -1":               "alpha -1",
		"train -c bad.yaml":              "alpha -2",
		"sweep -c bad.yaml":              "bad.yaml",
		"tune -c bad.yaml":               "bad.yaml",
		"figure -c bad.yaml":             "bad.yaml",
		"figure 1 --set nosuch=1":        "nosuch",
		"figure 5 --set alpha=-1":        "alpha -1",
		"theory nosuch":                  "nosuch",
	} {
		all = append(all, refusal{"queue in.yaml --list", "tasks:\n- {name: good, priority: 1, command: figure 9}\n" +
			"- {name: bad, command: " + strings.Replace(command, "bad.yaml", bad, 1) + "}\n", words})
	}
	list := filepath.Join(t.TempDir(), "list.yaml")
	if err := os.WriteFile(list, []byte("files: [a.yaml]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	all = append(all, refusal{"experiment in.yaml", "files: [" + list + "]", "the file lists others: list these here"},
		refusal{"experiment in.yaml", "files: [nosuch.yaml]", "nosuch.yaml"},
		refusal{"experiment in.yaml --scale 0.1", "files: [nosuch.yaml]", "has no effect on a file that lists others"},
		refusal{"experiment in.yaml --cores 2", own, "--cores has an effect on a file that lists others only"},
		refusal{"experiment in.yaml --scale 0.1", "runs: [{grid: {alpha: [1, 2]}}]", "in.yaml has no --scale"},
		refusal{"experiment nosuch", "", "no file of this name either"},
		refusal{"experiment relysgd", "", "did you mean relaysgd?"})
	all = append(all, refusal{"queue in.yaml", "tasks: [{name: a.json, command: figure 9}]",
		"a file that the queue writes"})
	refused(t, all)
	t.Chdir(t.TempDir())
	text := "folder: q\ntasks:\n- {name: a, command: train --help}\n" + // finished before the queue checked it
		"- {name: b, command: train -c q/a/config.yaml}\n- {name: c, command: train, cores: 99}\n"
	record := `{"command": ["train", "--help"], "status": "finished"}`
	if err := errors.Join(os.WriteFile("in.yaml", []byte(text), 0o644), os.Mkdir("q", 0o755),
		os.WriteFile("q/a.json", []byte(record), 0o644)); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, "queue", "in.yaml", "--list"); status != 0 {
		t.Errorf("exit status %d\n%s", status, stderr)
	}
}

// Help is refused about commands and topics that do not exist, and given about those that do.
func TestHelpTopics(t *testing.T) {
	refused(t, []refusal{
		{"help nosuch", "", `unknown command "nosuch"`},
		{"help trian", "", "did you mean train?"},
		{"help bench nosuch", "", `unknown command "bench nosuch"`},
		{"help train exchang", "", "did you mean --help exchange?"},
		{"train --help nonsense", "", `no help topic "nonsense": the topics are `},
		{"train --help exchange all", "", "no help topic"},
		{"bench nosuch --help", "", `unknown command "bench nosuch"`},
	})
	for _, line := range []string{"help", "help train", "help help", "help bench step", "help train exchange",
		"train --help exchange", "figure 1 --help", "runs dsgd --help"} {
		status, stdout, stderr := call(t, strings.Fields(line)...)
		if status != 0 || !strings.Contains(stdout, "Usage:") {
			t.Errorf("%s: exit status %d\n%s%s", line, status, stdout, stderr)
		}
	}
	_, long, _ := call(t, "help", "train", "exchange")
	if _, want, _ := call(t, "train", "--help", "exchange"); long != want {
		t.Errorf("help train exchange differs from train --help exchange:\n%s", long)
	}
}

// The error of a damaged text names one package.
func TestTextErrorNamesOnePackage(t *testing.T) {
	refused(t, []refusal{{"train --data text --data-dir in.yaml", "\xff\xfe\x00", "config: data text: "}})
	_, _, stderr := call(t, "train", "--data", "text", "--data-dir", "in.yaml") // in the folder that refused left
	if strings.Contains(stderr, " text: text: ") || !strings.Contains(stderr, "in.yaml") {
		t.Error(stderr)
	}
}

// Methods of rounds refuse settings that they cannot meet.
func TestRoundsRefuse(t *testing.T) {
	refused(t, []refusal{
		{"train -c in.yaml --algo local-sgd --param moment_rounds=1", small, "which optimizer sgd does not keep"},
		{"train -c in.yaml --algo diloco --optimizer nesterov --param square_rounds=2", small,
			"params.square_rounds 2: averages exp_avg and exp_avg_sq"},
		{"train -c in.yaml --algo des-loc --optimizer sgd", small, "adamw"},
		{"train -c in.yaml --algo diloco --param quantize=int9", small, "expected none, int2, int3"},
		{"train -c in.yaml --algo diloco --param quantize=int3,collective=two-step", small,
			"use gather, or quantize int4"},
		{"train -c in.yaml --algo diloco --param outer=eager,quantize=int4", small,
			"plain changes of the round before"},
		{"train -c in.yaml --algo diloco --param block=64", small, "it needs quantize int2 to int8 or fp8"},
		{"train -c in.yaml --algo diloco --param quantize=int4 --wire fp16", small, "wire fp32"},
		{"train -c in.yaml --algo muloco --param quantize=int4,moment_rounds=1", small,
			"not the averages of the optimizer"},
		{"train -c in.yaml --algo streaming-diloco --local-steps 2 --param delay=2", small, "below local_steps"},
		{"train -c in.yaml --algo streaming-diloco --mask randk", small, "one part of the model after the other"},
		{"train -c in.yaml --algo streaming-diloco --density 0.1 --param parts=strided", small, "makes 10 parts"},
		{"train -c in.yaml --algo streaming-diloco --local-steps 4 --param quantize=int4,delay=1 --wire bf16", small,
			"wire"},
		{"train -c in.yaml --algo sparseloco --param k=4096", small, "algo diloco with outer_momentum 0"},
		{"train -c in.yaml --algo sparseloco --density 0.1", small, "density"},
		{"train -c in.yaml --algo sparseloco --compress topk", small, "compress"},
		{"train -c in.yaml --algo choco --compress chunk-topk(8,2,4)", small, "is no contraction here"},
		{"train -c in.yaml --algo dsgd --param moment_rounds=1", small, "algo local-sgd, des-loc, diloco or muloco"},
	})
}
