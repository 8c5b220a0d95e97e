package acceptance

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// If fused kernels fail their self-test, crash in it, or do not end, all later parts run without
// fused kernels and say so, also in a later call.
func TestFaultyFusedKernelsAreLeftOut(t *testing.T) {
	const line = "fused/resnet50                           "
	for what, c := range map[string]struct {
		script  string
		status  Status
		without string
		summary string
	}{
		"all pass": {"echo '" + line + "ok 1.0 s  44 kinds'", Done, "",
			"0 of 2 checks (0 do not apply) failed; bf16: 44 kinds"},
		"one differs": {"echo '" + line + "FAILED 1.0 s  it differs'; exit 1", Done, "0", "2 of 2 checks"},
		"it crashes":  {"echo 'fspda: cuda: an illegal memory access' >&2; exit 1", Failed, "0", ""},
		"it hangs":    {"exec sleep 60", TimeOut, "0", ""},
		"none apply":  {"echo '" + line + "left out 0.0 s  none'", Done, "", "2 do not apply"},
	} {
		o := newOptions(t)
		o.Tiny, o.Device, o.Program = false, "cuda:0", filepath.Join(t.TempDir(), "program")
		script := "#!/bin/sh\nif [ \"$1\" = selftest ]; then " + c.script +
			"; else echo \"is $FSPDA_CUDA_FUSED.\"; fi\n"
		if err := os.WriteFile(o.Program, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		limit := time.Minute
		if c.status == TimeOut {
			limit = 200 * time.Millisecond
		}
		out, err := opened(t, o).play(t.Context(), o.fused(), limit)
		if err != nil || out.Status != c.status || !strings.Contains(out.Summary, c.summary) {
			t.Errorf("%s: %+v, %v", what, out, err)
		}
		seen := ""
		part := Part{Name: "a/part", Limit: time.Minute, Run: func(ctx context.Context, k *job) error {
			text, err := k.program(ctx, "bench")
			seen = string(text)
			return err
		}}
		after, err := opened(t, o).play(t.Context(), part, time.Minute)
		if err != nil || seen != "is "+c.without+".\n" || (len(after.Notes) > 0) != (c.without != "") {
			t.Errorf("%s: the next part has %q, %+v, %v", what, seen, after, err)
		}
	}
}

// Where cooperative launches fail their self-test, or end with the message that names their
// variable, or reach their time limit, all later parts run without them: a time-out may be a hang.
func TestFaultyMegakernelIsLeftOut(t *testing.T) {
	const line = "kernels/megakernel                       "
	for what, c := range map[string]struct{ script, without string }{
		"passes":            {"echo '" + line + "ok 1.0 s'", ""},
		"fails":             {"echo '" + line + "FAILED 1.0 s  it differs'; exit 1", "1"},
		"cannot be opened":  {"echo 'fspda: a launch has not ended: set FSPDA_CUDA_LAUNCHES=1' >&2; exit 1", "1"},
		"has no GPU":        {"echo 'fspda: the driver finds no GPU' >&2; exit 1", ""},
		"hangs":             {"echo 'cuda:0, fp32'; exec sleep 60", "1"},
		"compiles too long": {"exec sleep 60", "1"},
	} {
		o := newOptions(t)
		o.Tiny, o.Device, o.Program = false, "cuda:0", filepath.Join(t.TempDir(), "program")
		script := "#!/bin/sh\nif [ \"$1\" = selftest ]; then " + c.script +
			"; else echo \"is $FSPDA_CUDA_LAUNCHES.\"; fi\n"
		if err := os.WriteFile(o.Program, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		limit := time.Minute
		if strings.HasSuffix(c.script, "sleep 60") {
			limit = time.Second
		}
		if _, err := opened(t, o).play(t.Context(), o.megakernel(), limit); err != nil {
			t.Fatal(err)
		}
		seen := ""
		_, err := opened(t, o).play(t.Context(), Part{Name: "a/part", Limit: time.Minute,
			Run: func(ctx context.Context, k *job) error {
				text, err := k.program(ctx, "bench")
				seen = string(text)
				return err
			}}, time.Minute)
		if err != nil || seen != "is "+c.without+".\n" {
			t.Errorf("%s: the next part has %q, %v", what, seen, err)
		}
	}
}

// Where a check of a self-test ends the work of its process on the GPU, another one makes the
// checks that are left, and a note names the kernel.
func TestSelftestGoesOn(t *testing.T) {
	o := newOptions(t)
	o.Tiny, o.Program = false, filepath.Join(t.TempDir(), "program")
	const script = `#!/bin/sh
case "$*" in
*"--after b") echo "c   ok  0.1 s" ;;
*"--only b") echo "b   FAILED  0.1 s  launching gemm with $CUDA_LAUNCH_BLOCKING"; exit 1 ;;
*) printf 'a   ok  0.1 s\nb   FAILED  0.1 s  an illegal access\n'
  echo 'fspda: selftest: the GPU does nothing any more after the check b: 1 checks are left, with --after "b"' >&2
  exit 1 ;;
esac
`
	if err := os.WriteFile(o.Program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := opened(t, o).play(t.Context(), o.selftest("fp32", time.Minute), time.Minute)
	notes := strings.Join(out.Notes, "; ")
	if err != nil || out.Status != Done || out.Values["checks"] != 3 || out.Values["failed"] != 1 ||
		!strings.Contains(notes, "b: an illegal access") || !strings.Contains(notes, "launching gemm with 1") {
		t.Errorf("%+v, %v", out, err)
	}
}

// What is known of fused kernels is in the summary: how often they are faster, and which failed.
func TestFusedChoicesAreSummarized(t *testing.T) {
	k := &job{out: &Outcome{}}
	k.summarizeChoices([]byte(`{"for":"graphs too: 1×1","choice":{"algo":1,"ms":0.1}}
{"for":"fused conv of f16","choice":{"fused":true,"ms":0.1,"beside_ms":0.2}}
{"for":"both gradients: fused conv","choice":{"ms":0.1,"beside_ms":0.2}}
{"for":"fused conv of bf16","choice":{"why":"the results differ"}}
`))
	const want = "4 choices of convolutions are known; fused kernels are faster in 1 of 3, by 2.00 × there"
	const note = "conv of bf16: not fused: the results differ"
	if k.out.Summary != want || len(k.out.Notes) != 1 || !strings.Contains(k.out.Notes[0], note) {
		t.Errorf("%q, %q", k.out.Summary, k.out.Notes)
	}
}
