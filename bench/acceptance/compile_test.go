package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// PyTorch compiles the networks of the headline while the self-test runs, in both precisions, and
// not while parts run that are alone. A network that it cannot compile is noted.
func TestPeerCompilesBesideOtherParts(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+strings.ReplaceAll(text, "DIR", dir)), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	o := newOptions(t)
	o.Tiny, o.Device, o.Only, o.Budget = false, "cuda:0",
		megakernelPart+",selftest/fp32,"+compilePart, time.Minute
	o.Python = script("python", `echo '{"torch": "2", "device": "a GPU", "cudnn": 9}'
while read -r line; do
  echo "$line" >>DIR/requests
  case $line in *'"fp16"'*) echo '{"error": "no compiler"}' ;; *) echo '{"ns": 5}' ;; esac
done
`)
	// the self-test passes once all three networks have been asked for, the part before if none was
	o.Program = script("program", `case "$*" in *kernels/megakernel*)
  [ ! -f DIR/requests ] || exit 1
  echo 'kernels/megakernel  ok 1.0 s  all'; exit ;;
esac
for i in $(seq 200); do
  [ "$(cat DIR/requests 2>/dev/null | wc -l)" -lt 3 ] || { echo 'training  ok 1.0 s  all'; exit; }
  sleep 0.05
done
exit 1
`)
	r, err := Run(t.Context(), *o)
	if err != nil {
		t.Fatal(err)
	}
	if out := r.outcome(megakernelPart); out.Status != Done || out.Values["failed"] != 0 {
		t.Errorf("beside a part that is alone something was compiled: %+v", out)
	}
	if out := r.outcome("selftest/fp32"); out.Status != Done || out.Values["failed"] != 0 {
		t.Errorf("before the part of the compilation nothing was compiled: %+v", out)
	}
	out := r.outcome(compilePart)
	if out.Status != Done || !strings.HasPrefix(out.Summary, "PyTorch compiled 2 networks") ||
		len(out.Notes) != 1 || out.Notes[0] != "the network in fp16: no compiler" {
		t.Errorf("%+v", out)
	}
	asked, err := os.ReadFile(filepath.Join(dir, "requests"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"batch":128,"compiled":true,"kind":"network","model":"resnet50","precision":"bf16"`,
		`"batch":128,"compiled":true,"kind":"network","model":"resnet50","precision":"fp16"`,
		`"compiled":true,"heads":12,"kind":"language"`} {
		if !strings.Contains(string(asked), want) {
			t.Errorf("no %s was asked for in\n%s", want, asked)
		}
	}
}
