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
		part := Part{"a/part", time.Minute, func(ctx context.Context, k *job) error {
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
