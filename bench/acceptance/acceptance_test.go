package acceptance

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// newOptions returns options with an empty folder.
func newOptions(t *testing.T) *Options {
	return &Options{Program: "true", Device: "cpu", Out: t.TempDir(), Budget: time.Minute, Tiny: true, Version: "0",
		Progress: io.Discard, ReadChoices: func() ([]byte, error) { return nil, nil },
		AddChoices: func([]byte) error { return nil }}
}

func opened(t *testing.T, o *Options) *Results {
	t.Helper()
	r, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Failed, timed-out and successful parts each save their outcome.
func TestPartsAreApart(t *testing.T) {
	o := newOptions(t)
	r := opened(t, o)
	parts := []struct {
		Part
		status Status
		why    string
	}{
		{Part{Name: "a/fails", Limit: time.Minute, Run: func(_ context.Context, k *job) error {
			k.out.set("x", 1)
			return errors.New("no luck")
		}}, Failed, "no luck"},
		{Part{Name: "a/hangs", Limit: time.Minute, Run: func(ctx context.Context, k *job) error {
			k.out.set("x", 2)
			k.Program = "sleep"
			_, err := k.program(ctx, "60")
			return err
		}}, TimeOut, "it had 0s"},
		{Part{Name: "a/works", Limit: time.Minute, Run: func(_ context.Context, k *job) error {
			k.out.set("x", 3)
			k.out.set("nothing", math.NaN())
			return nil
		}}, Done, ""},
	}
	for i, p := range parts {
		limit := p.Limit
		if p.status == TimeOut {
			limit = 100 * time.Millisecond
		}
		out, err := r.play(t.Context(), p.Part, limit)
		if err != nil || out.Status != p.status || out.Reason != p.why || out.Values["x"] != float64(i+1) ||
			len(out.Values) != 1 {
			t.Errorf("%s: %+v, %v", p.Name, out, err)
		}
	}
	again := opened(t, o)
	for i, p := range parts {
		if out := again.outcome(p.Name); out == nil || out.Status != p.status || out.Values["x"] != float64(i+1) {
			t.Errorf("%s was not kept: %+v", p.Name, out)
		}
	}
	if again.Failed() != 1 {
		t.Errorf("%d parts failed, want 1", again.Failed())
	}
	if left, _ := filepath.Glob(filepath.Join(o.Out, ".part-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if text, err := os.ReadFile(filepath.Join(o.Out, tableFile)); err != nil || !strings.Contains(string(text),
		"| a/fails | failed |") {
		t.Errorf("%v\n%s", err, text)
	}
}

// Child processes end with their parent, even if they hold its output open.
func TestProcessesEnd(t *testing.T) {
	r := opened(t, newOptions(t))
	began := time.Now()
	out, err := r.play(t.Context(), Part{Name: "a/children", Limit: time.Minute,
		Run: func(ctx context.Context, k *job) error {
			k.Program = "sh"
			_, err := k.program(ctx, "-c", "trap '' INT; sleep 60 & wait; sleep 60")
			return err
		}}, 100*time.Millisecond)
	if err != nil || out.Status != TimeOut || time.Since(began) > politely+5*time.Second {
		t.Errorf("%+v, %v after %v", out, err, time.Since(began))
	}
}

// The error message of a program becomes the reason of the part.
func TestFailureSaysWhy(t *testing.T) {
	r := opened(t, newOptions(t))
	out, err := r.play(t.Context(), Part{Name: "a/part", Limit: time.Minute,
		Run: func(ctx context.Context, k *job) error {
			k.Program = "sh"
			_, err := k.program(ctx, "-c", "echo starting >&2; echo 'fspda: taking 3 GB: too\n       much' >&2; exit 1")
			return err
		}}, time.Minute)
	if err != nil || out.Status != Failed || !strings.HasSuffix(out.Reason, "exit status 1: taking 3 GB: too much") {
		t.Errorf("%+v, %v", out, err)
	}
}

// Checks of a self-test are counted as they are printed.
func TestChecks(t *testing.T) {
	k := &job{out: &Outcome{}}
	seen := k.readChecks("Fake GPU, fp32\n" +
		"contract/dot                             ok          0.1 s\n" +
		"networks/resnet50 differences            left out    0.0 s  a step as small as this is lost\n" +
		"kernels/a name that is longer than what a line has room for FAILED     12.5 s  far: 3\n    and more\n" +
		"training                                 ok          3.0 s  repeats, loss within 1.0e-06 of " +
		"1e-03\ncontract/ha")
	if want := (checks{4, 1, 1, "training"}); seen != want || len(k.out.Notes) != 1 ||
		k.out.Notes[0] != "kernels/a name that is longer than what a line has room for: far: 3" {
		t.Errorf("%+v, %q", seen, k.out.Notes)
	}
}

// Only unfinished parts are run, unless selected by name.
func TestChosen(t *testing.T) {
	o := newOptions(t)
	r := opened(t, o)
	all := o.Parts()
	for _, p := range all[1:] {
		r.newOutcome(p.Name).Status = Done
	}
	r.newOutcome(all[2].Name).Status = Failed
	if got := o.chosen(r); len(got) != 2 || got[0].Name != all[0].Name || got[1].Name != all[2].Name {
		t.Errorf("%d parts are left, want the one that never ran and the one that failed", len(got))
	}
	o.Only = "figure1, loader"
	if got := o.chosen(r); len(got) != 5 {
		t.Errorf("%d parts have the name", len(got))
	}
	if names := (&Options{Device: "cuda:0"}).names(); len(names) != 17+2*12 {
		t.Errorf("%d parts: %v", len(names), names)
	}
}

// Results of another program version, device or size are an error.
func TestStrangeFolder(t *testing.T) {
	o := newOptions(t)
	opened(t, o)
	for name, change := range map[string]func(o *Options){
		"version": func(o *Options) { o.Version = "1" },
		"device":  func(o *Options) { o.Device = "cuda:0" },
		"size":    func(o *Options) { o.Tiny = false },
	} {
		other := *o
		change(&other)
		if _, err := open(&other); err == nil || !strings.Contains(err.Error(), "has results of fspda 0 on cpu") {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(o.Out, resultsFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := open(o); err == nil || !strings.Contains(err.Error(), "no file of results") {
		t.Error(err)
	}
}

// Invalid options name the key.
func TestOptions(t *testing.T) {
	for key, change := range map[string]func(o *Options){
		"budget": func(o *Options) { o.Budget = 0 },
		"device": func(o *Options) { o.Device = "cuda:0,1" },
		"only":   func(o *Options) { o.Only = "nothing" },
	} {
		o := *newOptions(t)
		change(&o)
		if _, err := Run(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "config: "+key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// The verdict follows from the measurements, and names missing ones.
func TestLines(t *testing.T) {
	o := newOptions(t)
	r := opened(t, o)
	for _, l := range r.Lines() {
		if !strings.HasPrefix(l.Verdict, "could not run") || l.Measured != "–" {
			t.Errorf("nothing was run: %+v", l)
		}
	}
	set := func(part string, values map[string]float64) { r.newOutcome(part).Values = values }
	set("selftest/fp32", map[string]float64{"checks": 100, "failed": 0})
	set("selftest/fp16", map[string]float64{"checks": 100, "failed": 2})
	set("figure1/step-fp32", map[string]float64{"iteration_us": 34})
	set("figure1/million", map[string]float64{"seconds_of_million": 61, "iterations": 1e6})
	set("figure1/curve", map[string]float64{"far": 3e-6})
	set("loader/idle", map[string]float64{"idle": 0.021})
	set("training/repeat", map[string]float64{"runs": 5, "same": 4})
	set(gradient{"resnet18", "bf16", 2, 32}.name(), map[string]float64{"ours": 10, "eager_ratio": 1.1,
		"compiled_ratio": 1.1})
	r.newOutcome("memory/agents").Reason = "taking 3 GB"
	got := map[string]Line{}
	for _, l := range r.Lines() {
		got[l.What] = l
	}
	for what, want := range map[string]string{
		"self-test in fp32":                                        met,
		"self-test in fp16":                                        missed,
		"figure 1, an iteration of 10 agents × 256":                met,
		"figure 1, 10⁶ iterations":                                 missed,
		"figure 1, losses of 1,000 iterations from the CPU's":      met,
		"GPU idle under the real loader":                           missed,
		"trainings that repeat to the last bit":                    missed,
		"memory of 8 agents from the forecast":                     "could not run: taking 3 GB",
		"resnet18, gradients in fp16 and bf16 over PyTorch, eager": "met so far",
		"resnet18, the same over torch.compile":                    missed,
		"resnet18, the same, of the memory's roofline":             "could not run: it was not finished",
	} {
		if got[what].Verdict != want {
			t.Errorf("%q: %+v, want %s", what, got[what], want)
		}
	}
	text := r.Markdown()
	for _, want := range []string{"| bf16, batch 2, 32 px | 10.0 | – | – | – | 1.10 | 1.10 |", "## Parts"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// The headline comes first, and its limits add up to the time of a call.
func TestHeadlineFitsBudget(t *testing.T) {
	o := &Options{Device: "cuda:0"}
	headline, sum := o.headline(), time.Duration(0)
	for i, p := range headline {
		if name := o.Parts()[i].Name; name != p.Name {
			t.Errorf("part %d is %s, want %s of the headline", i, name, p.Name)
		}
		sum += p.Limit
	}
	if sum > DefaultBudget || len(headline) != 11 {
		t.Errorf("%d parts may take %v, want 11 within %v", len(headline), sum, DefaultBudget)
	}
	if seen := map[string]bool{}; true {
		for _, p := range o.Parts() {
			if seen[p.Name] {
				t.Errorf("%s is there twice", p.Name)
			}
			seen[p.Name] = true
		}
	}
	for i, p := range o.Parts() {
		if at := strings.Index(p.Name, "/tune-"); at >= 0 &&
			o.Parts()[i+1].Name != strings.Replace(p.Name, "/tune-", "/", 1) {
			t.Errorf("%s is followed by %s", p.Name, o.Parts()[i+1].Name)
		}
	}
	if first := opened(t, newOptions(t)).Lines()[0].What; !strings.Contains(first, "figure 1") {
		t.Errorf("the first line is %q, want one of the headline", first)
	}
}

// Choices are kept in the folder with the results of each part, also of one that ran out of time,
// and the next call takes them from there.
func TestChoicesAreKept(t *testing.T) {
	o := newOptions(t)
	var made, added []byte
	o.ReadChoices = func() ([]byte, error) { return made, nil }
	o.AddChoices = func(lines []byte) error { added = lines; return nil }
	r := opened(t, o)
	if len(added) > 0 {
		t.Errorf("an empty folder has choices: %q", added)
	}
	part := Part{Name: "a/tunes", Limit: time.Minute, Run: func(ctx context.Context, k *job) error {
		made = []byte("one\ntwo\n")
		<-ctx.Done()
		return ctx.Err()
	}}
	if out, err := r.play(t.Context(), part, 10*time.Millisecond); err != nil || out.Status != TimeOut {
		t.Fatalf("%+v, %v", out, err)
	}
	opened(t, o)
	if string(added) != "one\ntwo\n" {
		t.Errorf("took over %q", added)
	}
}

// A call that is stopped leaves what it has, and says which part was not finished.
func TestStoppedCallIsSaved(t *testing.T) {
	o := newOptions(t)
	r := opened(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := r.play(ctx, Part{Name: "a/part", Limit: time.Minute, Run: func(ctx context.Context, k *job) error {
		k.out.set("x", 7)
		cancel()
		return ctx.Err()
	}}, time.Minute)
	if out := opened(t, o).outcome("a/part"); !errors.Is(err, context.Canceled) || out == nil || out.Values["x"] != 7 ||
		out.Status != TimeOut {
		t.Errorf("%v, %+v", err, out)
	}
}

// On a device without bf16 and tf32 the parts in these precisions are skipped, without a process
// and for good; all others compute in the precisions that it has, and the table asks for no more.
func TestLackedPrecisions(t *testing.T) {
	o := newOptions(t)
	o.Device, o.Program = "cuda:0", filepath.Join(t.TempDir(), "program")
	script := "#!/bin/sh\ncase \"$*\" in *bf16*|*tf32*) echo 'fspda: want 8.0 or newer' >&2; exit 1;; esac\necho '{}'\n"
	if err := os.WriteFile(o.Program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	const why = "it has compute capability 7.0, want 8.0 or newer"
	o.Lacks = map[string]string{"bf16": why, "tf32": why}
	r := opened(t, o)
	skipped := 0
	for _, p := range o.Parts() {
		if p.Begin != nil {
			p.Begin(t.Context())
		}
		out, err := r.play(t.Context(), p, p.Limit)
		if err != nil {
			t.Fatal(err)
		}
		lacks := strings.Contains(p.Name, "bf16") || strings.Contains(p.Name, "tf32")
		if lacks != (out.Status == Skipped) || lacks != (out.Reason == why) ||
			!lacks && strings.Contains(out.Reason, "8.0 or newer") {
			t.Errorf("%s is %s: %s", p.Name, out.Status, out.Reason)
		}
		if lacks {
			skipped++
		}
		again := func(left Part) bool { return left.Name == p.Name }
		if out.Status == Skipped && slices.ContainsFunc(o.chosen(r), again) {
			t.Errorf("%s is skipped and would be run again", p.Name)
		}
	}
	if skipped < 6 {
		t.Errorf("%d parts were skipped", skipped)
	}
	for _, g := range o.shapes().gradients([]string{"fp16"}) {
		r.newOutcome(g.name()).Values = map[string]float64{"eager_ratio": 1.1}
	}
	verdicts := map[string]string{}
	for _, l := range r.Lines() {
		verdicts[l.What] = l.Verdict
	}
	for what, want := range map[string]string{"resnet18, gradients in fp16 over PyTorch, eager": met,
		"self-test in bf16": "could not run: " + why} {
		if verdicts[what] != want {
			t.Errorf("%s: %q, want %q", what, verdicts[what], want)
		}
	}
}
