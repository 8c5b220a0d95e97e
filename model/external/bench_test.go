package external_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/data"
	"fspda/device"
	"fspda/model"
	"fspda/model/external"
)

// mostOverhead is the most that a call may take outside of the client's computation, for 25 million
// parameters.
const mostOverhead = 100 * time.Microsecond

// BenchmarkCall times a gradient of 25 million parameters that the client does not compute: the
// messages alone, in Python with NumPy.
func BenchmarkCall(b *testing.B) {
	if out, err := exec.Command("python3", "-c", "import numpy").CombinedOutput(); err != nil {
		b.Skipf("python3 has no NumPy: %v\n%s", err, out)
	}
	python, err := filepath.Abs("../../python")
	if err != nil {
		b.Fatal(err)
	}
	script, err := filepath.Abs("testdata/idle.py")
	if err != nil {
		b.Fatal(err)
	}
	p := external.New(external.Options{Command: fmt.Sprintf("PYTHONPATH='%s' exec python3 '%s'", python, script)})
	defer p.Close()
	set, err := data.Synthetic(data.SyntheticOptions{Train: 100, Test: 20, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	examples := external.Examples{Shape: set.Shape, Classes: set.Classes}
	d, err := p.Ask(examples)
	if err != nil {
		b.Fatal(err)
	}
	net, err := model.Open("external", model.Options{Shape: set.Shape, Classes: set.Classes, External: d.External})
	if err != nil {
		b.Fatal(err)
	}
	dev := cpu.New(cpu.Memory(external.Memory))
	m := external.NewEngine(net, p, d, examples, dev)
	x, g := dev.NewVector(net.Dim()), dev.NewVector(net.Dim())
	dev.Write(x, m.Init(1))
	var batch device.Batch
	if err := set.Train.Batch(&batch, 0, 32); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if loss, err := m.Grad(g, x, batch); err != nil || loss != 0.5 {
			b.Fatal(loss, err)
		}
		took = append(took, time.Since(begin))
	}
	if got := dev.Floats(g)[0]; got != 33 {
		b.Fatalf("the client wrote %v, want 33", got)
	}
	slices.Sort(took)
	median := took[len(took)/2]
	b.ReportMetric(float64(median.Nanoseconds()), "median-ns/op")
	if len(took) > 1000 && median > mostOverhead {
		b.Errorf("a call takes %v in the median, want at most %v", median, mostOverhead)
	}
}
