package acceptance

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
