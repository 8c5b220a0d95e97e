package model

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"fspda/device"
)

var update = flag.Bool("update", false, "rewrite the golden files of this package from what is computed now")

// The printed plan of the MNIST network. A change here changes what every device runs: check the
// diff.
func TestPlanOfTheMNISTNetwork(t *testing.T) {
	for _, kind := range []Kind{Train, Score} {
		path := filepath.Join("testdata", "golden", "mlp-784-100-10-"+kind.String()+".txt")
		got := mustPlan(t, mnist(t), 256, kind).String()
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("the plan is\n%s\nwant, by %s,\n%s", got, path, want)
		}
	}
}

// Operands have the lengths that Dims require, and lie inside their spaces.
func TestCallsAreWellFormed(t *testing.T) {
	for _, net := range nets(t) {
		for _, kind := range []Kind{Train, Score} {
			c := mustPlan(t, net, 7, kind).Code()
			if c.Name != net.Name() || c.Batch != 7 || c.Features != 5 || c.Dim != net.Dim() ||
				c.Gradient != (kind == Train) {
				t.Errorf("%s: %s, batch %d of %d features, %d parameters, gradient %v", net.Name(), c.Name, c.Batch,
					c.Features, c.Dim, c.Gradient)
			}
			lengths := map[device.Space]int{device.Params: c.Dim, device.Grads: c.Dim, device.Arena: c.Arena,
				device.Input: 7 * 5, device.Labels: 7}
			for i, call := range c.Calls {
				for _, r := range append(append([]device.Ref(nil), call.In...), call.Out...) {
					if r.Len < 1 || r.Off < 0 || r.Off+r.Len > lengths[r.Space] {
						t.Errorf("%s: call %d has the operand %v in a space of %d", net.Name(), i, r, lengths[r.Space])
					}
				}
				if call.Name == "" {
					t.Errorf("%s: call %d, %s, has no name", net.Name(), i, call.Kernel)
				}
			}
		}
	}
}

func TestFLOPs(t *testing.T) {
	const forward, backward = 2 * 256 * (784*100 + 100*10), 2 * 256 * (784*100 + 2*100*10)
	if got := mustPlan(t, mnist(t), 256, Train).Code().FLOPs; got != forward+backward {
		t.Errorf("training takes %v FLOP, want %v", got, forward+backward)
	}
	if got := mustPlan(t, mnist(t), 256, Score).Code().FLOPs; got != forward {
		t.Errorf("scoring takes %v FLOP, want %v", got, forward)
	}
}

func BenchmarkPlan(b *testing.B) {
	net := mnist(b)
	for b.Loop() {
		mustPlan(b, net, 256, Train)
	}
}
