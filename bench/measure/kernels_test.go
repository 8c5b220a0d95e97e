package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/device"
	"fspda/device/devicetest"
	"fspda/train"
)

func kernelsOptions(filter string) KernelsOptions {
	dev := cpu.New()
	return KernelsOptions{
		Device: dev, Kernels: device.Kernels(), Call: cpu.Call, Peak: cpu.Peak, Batch: 1, Filter: filter,
		Each: time.Microsecond,
		Gemm: cpu.Gemm, Bandwidth: cpu.Traffic,
		Floats: func(n int) []float32 { return dev.NewVector(n).(*cpu.Vector).Data },
	}
}

// Only the selected kernel is measured, share = rate / limit, and the group is its work over its
// time.
func TestKernels(t *testing.T) {
	r, err := Kernels(context.Background(), kernelsOptions("sgemm/256×10×100"))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 1 || r.Rows[0].FLOPs != 2*256*10*100 || r.Rows[0].Unit != "GFLOP/s" {
		t.Fatalf("%+v", r)
	}
	row := r.Rows[0]
	if row.Rate <= 0 || row.Limit <= 0 || math.Abs(row.Share-row.Rate/row.Limit) > 1e-12 || row.Limit > r.PeakGFLOPs {
		t.Errorf("%+v, peak %v", row, r.PeakGFLOPs)
	}
	if g := r.Groups; len(g) != 1 || math.Abs(g[0].Rate/row.Rate-1) > 1e-9 || math.Abs(g[0].Limit/row.Limit-1) > 1e-9 {
		t.Errorf("group %+v of row %+v", g, row)
	}
	if r.ResNet50 != nil {
		t.Error("a single product was summed as a network")
	}
}

// Orthogonalizations are compared with the product of which they have the most.
func TestKernelsOfMuon(t *testing.T) {
	r, err := Kernels(context.Background(), kernelsOptions("orthogonalize 1 of 64×576"))
	if err != nil {
		t.Fatal(err)
	}
	const operations = 5 * (3*64*64*576 + 64*64*64)
	if len(r.Rows) != 1 || r.Rows[0].FLOPs != operations || r.Rows[0].Share <= 0 || r.PeakGFLOPs != 0 {
		t.Fatalf("%+v", r)
	}
}

// Jobs bound by memory are compared with a copy; mask draws have no limit.
func TestKernelsOfMemory(t *testing.T) {
	r, err := Kernels(context.Background(), kernelsOptions("d=79510"))
	if err != nil {
		t.Fatal(err)
	}
	units := map[string]int{}
	for _, row := range r.Rows {
		units[row.Unit]++
		if masks := row.Group == "masks"; row.Time <= 0 || row.Rate <= 0 || masks != (row.Limit == 0) {
			t.Errorf("%+v", row)
		}
		side := strings.Contains(row.Name, "combine") || strings.Contains(row.Name, "dot") ||
			strings.HasPrefix(row.Name, "add-diff to 2, d") || strings.HasPrefix(row.Name, "adamw")
		if side != (row.Bandwidth > 0) || side && math.Abs(row.BandwidthShare-row.Rate/row.Bandwidth) > 1e-12 {
			t.Errorf("want a bandwidth bound: %t; row %+v", side, row)
		}
	}
	if units["GB/s"] != 6+3+9 || units["ns"] != 9 {
		t.Errorf("rows by unit: %v", units)
	}
	text := r.String()
	for _, want := range []string{"combine of 6", "exchange at 0.1 %", "stratified", "all, by work", " ns\n",
		" GB/s\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// lengthsOf returns the operand lengths of image kernels as documented in device/kernel.go.
func lengthsOf(c *device.Call) (in, out []int) {
	d := c.Dims
	switch c.Kernel {
	case device.Conv, device.ConvGradX, device.ConvGradW:
		p, q := (d[1]+2*d[8]-d[5])/d[7]+1, (d[2]+2*d[8]-d[6])/d[7]+1
		x, w, y := d[0]*d[1]*d[2]*d[3], d[4]*d[5]*d[6]*d[3], d[0]*p*q*d[4]
		return map[device.Kernel][]int{device.Conv: {x, w}, device.ConvGradX: {y, w},
				device.ConvGradW: {x, y}}[c.Kernel],
			map[device.Kernel][]int{device.Conv: {y}, device.ConvGradX: {x}, device.ConvGradW: {w}}[c.Kernel]
	case device.MaxPool, device.MaxPoolGrad:
		p, q := (d[1]+2*d[6]-d[4])/d[5]+1, (d[2]+2*d[6]-d[4])/d[5]+1
		x, y := d[0]*d[1]*d[2]*d[3], d[0]*p*q*d[3]
		if c.Kernel == device.MaxPool {
			return []int{x}, []int{y, y}
		}
		return []int{y, y}, []int{x}
	case device.AvgPool:
		return []int{d[0] * d[1] * d[2]}, []int{d[0] * d[2]}
	case device.AvgPoolGrad:
		return []int{d[0] * d[2]}, []int{d[0] * d[1] * d[2]}
	}
	n, k := d[0]*d[1], d[1]
	switch c.Kernel {
	case device.BatchNorm, device.BatchNormReLU:
		return []int{n, k, k}, []int{n, k, k}
	case device.BatchNormAddReLU:
		return []int{n, k, k, n}, []int{n, k, k}
	case device.BatchNormGrad:
		return []int{n, n, k, k, k}, []int{n, k, k}
	case device.BatchNormReLUGrad:
		return []int{n, n, n, k, k, k}, []int{n, k, k}
	case device.BatchNormAddReLUGrad:
		return []int{n, n, n, k, k, k}, []int{n, n, k, k}
	case device.Normalize, device.NormalizeReLU:
		return []int{n, k, k, k, k}, []int{n}
	case device.NormalizeAddReLU:
		return []int{n, k, k, k, k, n}, []int{n}
	}
	return nil, nil
}

var imageKernels = []device.Kernel{device.Conv, device.ConvGradX, device.ConvGradW, device.BatchNorm,
	device.BatchNormReLU, device.BatchNormAddReLU,
	device.BatchNormGrad, device.BatchNormReLUGrad, device.BatchNormAddReLUGrad, device.Normalize, device.NormalizeReLU,
	device.NormalizeAddReLU, device.MaxPool, device.MaxPoolGrad, device.AvgPool, device.AvgPoolGrad}

// Every image kernel is called with operands of the documented lengths, variances are positive, and
// ResNet-50 is summed.
func TestKernelsOfImages(t *testing.T) {
	seen := map[device.Kernel]int{}
	for _, group := range []string{"conv", "norm", "pool"} {
		o := kernelsOptions(group + "/")
		o.Kernels = imageKernels
		o.Peak = func(time.Duration) float64 { return 100 }
		o.Call = func(c *device.Call, in, out [][]float32) error { return checkCall(c, in, out, seen) }
		r, err := Kernels(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Skipped) > 0 || len(r.Rows) == 0 || r.ResNet50 != nil {
			t.Errorf("%s: %d rows, skipped %v, network %v", group, len(r.Rows), r.Skipped, r.ResNet50)
		}
	}
	for _, k := range imageKernels {
		if seen[k] == 0 {
			t.Errorf("%s is not measured", k)
		}
	}
}

func checkCall(c *device.Call, in, out [][]float32, seen map[device.Kernel]int) error {
	seen[c.Kernel]++
	lengths := func(v [][]float32) (n []int) {
		for _, x := range v {
			n = append(n, len(x))
		}
		return n
	}
	wantIn, wantOut := lengthsOf(c)
	if gotIn, gotOut := lengths(in), lengths(out); !slices.Equal(gotIn, wantIn) || !slices.Equal(gotOut, wantOut) {
		return fmt.Errorf("%s of %v has inputs %v and outputs %v, want %v and %v", c.Kernel, c.Dims, gotIn, gotOut,
			wantIn, wantOut)
	}
	variance := -1
	switch {
	case strings.HasPrefix(string(c.Kernel), "normalize"):
		variance = 4
	case strings.HasPrefix(string(c.Kernel), "batch-norm") && strings.HasSuffix(string(c.Kernel), "-grad"):
		variance = len(in) - 1
	}
	if variance >= 0 && slices.Min(in[variance]) <= 0 {
		return fmt.Errorf("%s has a variance of %v", c.Kernel, slices.Min(in[variance]))
	}
	return nil
}

// The 53 convolutions and the 53 batch norms of ResNet-50 match: equal numbers for each output
// size, forward and backward, except for the first convolution.
func TestNormsFollowConvolutions(t *testing.T) {
	out, normed := map[[2]int]int{}, map[[2]int]int{}
	for _, s := range devicetest.ResNet50(1) {
		p, _ := s.Out()
		out[[2]int{p, s.K}] += s.Count
	}
	kinds, total := map[string]int{}, 0
	for _, n := range norms {
		normed[[2]int{n.side, n.columns}] += n.count
		kinds[n.kind] += n.count
		total += n.count
	}
	if fmt.Sprint(out) != fmt.Sprint(normed) || total != 53 {
		t.Errorf("%d norms %v, convolutions %v", total, normed, out)
	}
	if kinds["-add-relu"] != 16 || kinds[""] != 4 || kinds["-relu"] != 33 {
		t.Errorf("norms by kind %v", kinds)
	}
}

// The sum of a network weights its rows by their counts, and is omitted if a row is missing.
func TestNetworkSum(t *testing.T) {
	jobs := slices.Concat(convJobs(2), normJobs(2))
	r := KernelsReport{Batch: 2}
	var forward, backward time.Duration
	for i, j := range jobs {
		row := j.KernelRow
		row.finish(time.Duration(1000+i), 50)
		r.Rows = append(r.Rows, row)
		if j.Backward {
			backward += time.Duration(j.Count) * row.Time
		} else {
			forward += time.Duration(j.Count) * row.Time
		}
	}
	part := KernelsReport{Batch: 2, Rows: slices.Clone(r.Rows[1:])}
	if part.sum(jobs); part.ResNet50 != nil {
		t.Error("a network without its first layer was summed")
	}
	r.sum(jobs)
	n := r.ResNet50
	if n == nil || n.Forward != forward || n.Backward != backward {
		t.Fatalf("%+v, want %v and %v", n, forward, backward)
	}
	if want := 2 / (forward + backward).Seconds(); math.Abs(n.Images/want-1) > 1e-9 {
		t.Errorf("%v images/s, want %v", n.Images, want)
	}
	// 4.09 billion products an image forward, and backward twice less the first layer's data
	// gradient.
	if flops := n.Rate * float64(forward+backward); math.Abs(flops/(2*2*(3*4.089e9-0.118e9))-1) > 0.001 {
		t.Errorf("%.4g operations", flops)
	}
	if text := r.String(); !strings.Contains(text, "ResNet-50 conv+BN, batch 2: forward") {
		t.Errorf("%s", text)
	}
}

// The jobs run with the device's kernels on their operands; large ones are skipped here.
func TestJobsRun(t *testing.T) {
	o := kernelsOptions("")
	m := &meter{o: o, operands: &pool{floats: o.Floats}, copies: &pool{floats: o.Floats}, vectors: newVectors(o.Device)}
	ran := 0
	for _, j := range o.jobs() {
		if len(o.missing(j.needs)) > 0 || j.Bytes > 4e6 || j.FLOPs > 1e8 || j.Items > 1e4 {
			continue
		}
		m.operands.reset()
		m.vectors.reset()
		run, err := j.make(m)
		if err == nil {
			err = run()
		}
		if err != nil {
			t.Errorf("%s/%s: %v", j.Group, j.Name, err)
		}
		ran++
	}
	if ran < 50 {
		t.Errorf("only %d jobs ran", ran)
	}
}

// Names are unique, as scripts look rows up by them.
func TestJobNames(t *testing.T) {
	seen := map[string]bool{}
	for _, j := range kernelsOptions("").jobs() {
		name := j.Group + "/" + j.Name
		if seen[name] || !slices.Contains(Groups(), j.Group) {
			t.Errorf("%s occurs twice or has an unknown group", name)
		}
		seen[name] = true
	}
}

func TestKernelsRefusals(t *testing.T) {
	for _, edit := range []func(*KernelsOptions){
		func(o *KernelsOptions) { o.Filter = "gemmm" },
		func(o *KernelsOptions) { o.Each = 0 },
		func(o *KernelsOptions) { o.Batch = 0 },
	} {
		o := kernelsOptions("sgemm")
		edit(&o)
		var ce *train.ConfigError
		if _, err := Kernels(context.Background(), o); !errors.As(err, &ce) {
			t.Errorf("%+v: %v", o.Filter, err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Kernels(ctx, kernelsOptions("sgemm")); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	o := kernelsOptions("elementwise/scale 25600")
	o.Call = func(*device.Call, [][]float32, [][]float32) error { return errors.New("broken") }
	if _, err := Kernels(context.Background(), o); err == nil || !strings.Contains(err.Error(), "scale 25600") {
		t.Errorf("a kernel that fails: %v", err)
	}
}

// Kernels that the device lacks are reported and skipped.
func TestKernelsSkip(t *testing.T) {
	o := kernelsOptions("NN and more,sgemm/linear 256×10×100,linear-grad-x 256×10×100,sgemm/256×10×100")
	o.Kernels = []device.Kernel{device.Linear}
	r, err := Kernels(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(r.Skipped, device.LinearGradX) || slices.Contains(r.Skipped, device.Linear) ||
		len(r.Rows) != 2 {
		t.Errorf("%d rows, skipped %v", len(r.Rows), r.Skipped)
	}
	if text := r.String(); !strings.Contains(text, "skipped") {
		t.Errorf("%s", text)
	}
}
