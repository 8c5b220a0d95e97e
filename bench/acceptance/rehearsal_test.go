package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stagedProgram stands for fspda on a GPU that reaches every target. Call number FAULT_AT does
// FAULT instead, and so does every call whose arguments match FAULT_IN.
const stagedProgram = `#!/bin/sh
calls=0
[ ! -f DIR/calls ] || read -r calls <DIR/calls
calls=$((calls + 1))
echo $calls >DIR/calls
if [ "$calls" = "FAULT_AT" ]; then FAULT; fi
case "$*" in FAULT_IN) FAULT ;; esac
case "$*" in
*kernels/megakernel*) echo 'kernels/megakernel  ok 1.0 s  all' ;;
selftest*) printf 'contract/dot  ok 0.1 s\ntraining  ok 0.1 s\n' ;;
*"bench step"*) echo '{"iteration_ns": 34000, "gradient_ns": 1, "exchange_ns": 1, "idle": 0}' ;;
*"--model gpt2"*) echo '{"tokens_s": 500000, "roofline": 0.7, "copy_gb_s": 4000}' ;;
*"bench network"*) echo '{"images_s": 9000, "roofline": 0.7, "copy_gb_s": 4000}' ;;
train*)
  while [ "$1" != --out ]; do shift; done
  echo '{"wall_s": 30}' >"$2/summary.json" ;;
esac
`

// stagedPython stands for a Python with a PyTorch that is slower than fspda. Every process does
// FAULT instead of its answer number FAULT_AT.
const stagedPython = `#!/bin/sh
echo '{"torch": "2", "device": "a GPU", "cudnn": 9}'
answers=0
while read -r line; do
  answers=$((answers + 1))
  if [ "$answers" -ge "FAULT_AT" ]; then FAULT; fi
  case $line in
  *figure1*) echo '{"ns": 90000}' ;;
  *language*) echo '{"ns": 40000000}' ;;
  *) echo '{"ns": 20000000}' ;;
  esac
done
`

// fault is what goes wrong in a rehearsal.
type fault struct {
	name   string
	at     int      // number of the call, or of PyTorch's answer, from 1; 0: none
	in     string   // pattern of the arguments of calls
	does   string   // shell commands
	python bool     // it is PyTorch that fails
	lost   []string // lines that need not be measured
}

// The lines of the headline, by the beginning of their names.
var (
	gridLine     = []string{"kernels in a cooperative launch"}
	selftestLine = []string{"self-test in fp32"}
	stepLine     = []string{"figure 1, an iteration"}
	millionLine  = []string{"figure 1, 10⁶ iterations"}
	resnetLines  = []string{"resnet50, "}
	gptLines     = []string{"GPT-2, ", "the same over torch.compile"}
	peerLines    = []string{"resnet50, gradients", "resnet50, the same over torch.compile",
		"the same over torch.compile"}
	allLines = slices.Concat(gridLine, selftestLine, stepLine, millionLine, resnetLines, gptLines)
)

// callsOfHeadline has, for each call of the program in the headline, the lines that it measures. A
// call that chooses convolutions measures none.
// Figure 1 is measured twice.
var callsOfHeadline = [][]string{gridLine, nil, nil, selftestLine, nil, nil, nil, resnetLines, resnetLines, gptLines,
	gptLines, nil, resnetLines, resnetLines, millionLine}

// The rehearsal of a call on a machine that is lent for minutes: whatever hangs, crashes, or is
// missing, every other line of the headline is measured, and the line that is not says why.
func TestRehearsal(t *testing.T) {
	const hang, crash = "exec sleep 60", "kill -SEGV $$"
	faults := []fault{
		{name: "nothing"},
		{name: "a hang of figure 1", in: "*\"bench step\"*", does: hang, lost: stepLine},
		{name: "a missing cuDNN", in: "*resnet50*", lost: resnetLines,
			does: "echo 'fspda: libraries of CUDA 13 are missing: cuDNN' >&2; exit 1"},
		{name: "a missing PyTorch", at: 1, does: "exit 1", python: true, lost: peerLines},
		{name: "a crash of PyTorch", at: 2, does: crash, python: true, lost: peerLines},
		{name: "a hang of PyTorch", at: 1, does: hang, python: true, lost: peerLines},
	}
	for i, lines := range callsOfHeadline {
		name := fmt.Sprintf(" of call %d", i+1)
		faults = append(faults, fault{name: "a hang" + name, at: i + 1, does: hang, lost: lines})
		if i == 0 || !slices.Equal(lines, callsOfHeadline[i-1]) { // the first call of a part
			faults = append(faults, fault{name: "a crash" + name, at: i + 1, does: crash, lost: lines})
		}
	}
	var all sync.WaitGroup // subtests would wait for each other, and a hang costs nothing but time
	for _, f := range faults {
		all.Go(func() { rehearse(t, f) })
	}
	all.Wait()
}

// rehearse runs the headline with a fault.
func rehearse(t *testing.T, f fault) {
	o := newOptions(t)
	o.Tiny, o.Device, o.Budget, o.most = false, "cuda:0", DefaultBudget, 4*time.Second
	o.Program = stage(t, stagedProgram, f, !f.python)
	o.Python = stage(t, stagedPython, f, f.python)
	var names []string
	for _, p := range o.headline() {
		names = append(names, p.Name)
	}
	o.Only = strings.Join(names, ",")
	r, err := Run(t.Context(), *o)
	if err == nil {
		r, err = open(o) // the files
	}
	if err != nil {
		t.Errorf("with %s: %v", f.name, err)
		return
	}
	seen := 0
	for _, l := range r.Lines() {
		if !begins(l.What, allLines) {
			continue
		}
		seen++
		// two of the eight gradients of the large network are of the headline: they are met so far
		why, none := strings.CutPrefix(l.Verdict, "could not run: ")
		switch {
		case strings.HasPrefix(l.Verdict, met):
		case !begins(l.What, f.lost):
			t.Errorf("with %s: %+v, want a measurement", f.name, l)
		case !none || why == "" || strings.Contains(why, "not yet been run"):
			t.Errorf("with %s: %+v, want a measurement, or the reason why there is none", f.name, l)
		}
	}
	if seen != 9 {
		t.Errorf("%d lines of the headline, want 9", seen)
	}
}

// stage writes a script, with the fault if it is the one that fails, and returns its path.
func stage(t *testing.T, script string, f fault, fails bool) string {
	at, in, does := 0, "nothing", ":"
	if fails && f.does != "" {
		at, does = f.at, f.does
		if f.in != "" {
			in = f.in
		}
	}
	if at == 0 {
		at = 1000 // never
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "script")
	script = strings.NewReplacer("DIR", dir, "FAULT_AT", strconv.Itoa(at), "FAULT_IN", in, "FAULT",
		does).Replace(script)
	// A process that starts meanwhile would inherit the open file, and starting the script would fail.
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(script), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Error(err)
	}
	return path
}

// begins reports whether a name begins with one of some texts.
func begins(name string, with []string) bool {
	return slices.ContainsFunc(with, func(text string) bool { return strings.HasPrefix(name, text) })
}
