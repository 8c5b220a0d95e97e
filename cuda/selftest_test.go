package cuda

import (
	"context"
	"os"
	"strings"
	"testing"

	"fspda/cuda/driver"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/selftest"
)

// fakeTarget is a fake GPU as a target of fspda selftest.
func fakeTarget(t *testing.T) selftest.Target {
	d, m := openFake(t, fakegpu.Options{}, false)
	bare := d.Raw()
	return selftest.Target{Device: d, Precision: "fp32", Kernels: bare, Free: bare.FreeMemory, Small: true,
		Again: func() (device.Device, func() error, error) {
			p := backendOn(m)
			again, err := open(p)
			if err != nil {
				return nil, nil, err
			}
			return again, again.Close, nil
		}}
}

// fspda selftest passes on a fake GPU. The contract has tests of its own.
func TestSelftest(t *testing.T) {
	only := "kernels/megakernel," +
		"kernels/images,kernels/casts,masks,convolutions,networks/mlp,networks/gpt,networks/llama,algorithms,memory"
	if os.Getenv("FSPDA_LONG") != "" {
		only = "kernels,masks,convolutions,networks,algorithms,memory"
	}
	which := selftest.Selection{Only: only}
	r, err := fakeTarget(t).Run(context.Background(), which, func(r selftest.Result) { t.Log(r) })
	if err != nil || r.Failed > 0 || len(r.Results) < 20 {
		t.Errorf("%d of %d checks failed, %v", r.Failed, len(r.Results), err)
	}
	for _, c := range r.Results {
		if c.Verdict != "ok" {
			t.Error(c)
		}
	}
}

// A device that computes wrongly, or leaks memory, does not pass.
func TestSelftestNotices(t *testing.T) {
	target := fakeTarget(t)
	target.Device = wrongDevice{target.Device}
	free := 1 << 30
	target.Free = func() (int, error) { free -= 1 << 28; return free, nil }
	r, err := target.Run(context.Background(), selftest.Selection{Only: "algorithms/dsgd,networks/mlp by,memory"},
		func(selftest.Result) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Results {
		if c.Verdict != "FAILED" || c.Saw == "" {
			t.Errorf("not noticed: %v", c)
		}
	}
	if text := r.Results[0].String(); !strings.HasPrefix(text, r.Results[0].Name) || r.Failed != len(r.Results) {
		t.Errorf("%d failed, %q", r.Failed, text)
	}
}

// After a loss of the GPU no further check is made; those that are left can be made by another
// process.
func TestSelftestStopsAfterLoss(t *testing.T) {
	d, m := openFake(t, fakegpu.Options{}, false)
	target := selftest.Target{Device: d, Precision: "fp32", Kernels: d.Raw(), Small: true, Err: d.Err}
	which := selftest.Selection{Only: "contract/gather,contract/dot,algorithms/dsgd,algorithms/fspda-sa"}
	var seen []string
	r, err := target.Run(context.Background(), which, func(r selftest.Result) {
		seen = append(seen, r.Name)
		if len(seen) == 1 {
			m.Lose(driver.IllegalAddress)
		}
	})
	if err != nil || r.Failed != 1 || len(seen) != 2 || r.Left == 0 || !strings.HasPrefix(r.Results[1].Saw, "cuda: ") {
		t.Fatalf("%v, %+v, %v", err, r, seen)
	}
	which.After = seen[1]
	again, err := fakeTarget(t).Run(context.Background(), which, func(selftest.Result) {})
	if err != nil || again.Failed > 0 || len(again.Results) != r.Left || again.Results[0].Name == seen[1] {
		t.Errorf("%v, %+v after %+v", err, again, r)
	}
}

// wrongDevice is a device whose vectors grow when they are written.
type wrongDevice struct{ device.Device }

func (d wrongDevice) Write(dst device.Vector, src []float32) {
	more := make([]float32, len(src))
	for i, v := range src {
		more[i] = 1.01 * v
	}
	d.Device.Write(dst, more)
}
