package dist

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Tensor sizes of the published networks.
var mlpSizes = []int{78400, 100, 1000, 10}

// resNet50Sizes lists the 161 tensors of ResNet-50: each convolution with the scale and shift of
// its batch norm, and the final layer.
func resNet50Sizes() (sizes []int) {
	conv := func(out, in, side int) { sizes = append(sizes, out*in*side*side, out, out) }
	conv(64, 3, 7)
	in := 64
	for stage, blocks := range []int{3, 4, 6, 3} {
		width := 64 << stage
		for b := range blocks {
			conv(width, in, 1)
			conv(width, width, 3)
			conv(4*width, width, 1)
			if b == 0 { // the shortcut branch
				conv(4*width, in, 1)
			}
			in = 4 * width
		}
	}
	return append(sizes, 1000*in, 1000)
}

func sum(sizes []int) (d int) {
	for _, m := range sizes {
		d += m
	}
	return d
}

func mustMask(t testing.TB, spec string, density float64, sizes []int) Mask {
	t.Helper()
	m, err := ParseMask(spec, density, sizes, 11)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var masks = []string{"randk", "randk-per-layer", "bernoulli", "stratified", "block", "all"}

// The contract of every mask: ascending and distinct coordinates below d, Len of them (except
// bernoulli), the same from both ends and from a copy, a new set for each edge and iteration, no
// allocation.
func TestEveryMask(t *testing.T) {
	for _, sizes := range [][]int{{1}, {2, 1}, {64}, {100, 7, 30}, {513, 10, 1}} {
		for _, density := range []float64{1e-9, 0.01, 0.1, 0.37, 0.5, 0.9, 1} {
			for _, spec := range masks {
				t.Run(fmt.Sprintf("%s/%v/%v", spec, sizes, density),
					func(t *testing.T) { checkMask(t, spec, density, sizes) })
			}
		}
	}
}

func checkMask(t *testing.T, spec string, density float64, sizes []int) {
	m, twin := mustMask(t, spec, density, sizes), mustMask(t, spec, density, sizes)
	d := sum(sizes)
	if m.String() != spec || m.Dim() != d {
		t.Errorf("String %q, Dim %d; want %q, %d", m, m.Dim(), spec, d)
	}
	if spec != "bernoulli" && math.Abs(m.Density()-float64(m.Len())/float64(d)) > 1e-15 {
		t.Errorf("Density %v with %d of %d", m.Density(), m.Len(), d)
	}
	if m.Dense() && m.Len() != d {
		t.Errorf("dense with %d of %d", m.Len(), d)
	}
	var got, other []uint32
	for k := range 30 {
		got = m.Draw(got, k, 3, 8)
		other = twin.Draw(other, k, 8, 3)
		if !slices.Equal(got, other) {
			t.Fatalf("t=%d: one end draws %v, the other %v", k, got, other)
		}
		if (spec != "bernoulli" || m.Dense()) && len(got) != m.Len() {
			t.Fatalf("t=%d: %d coordinates, want %d", k, len(got), m.Len())
		}
		for c := range got {
			if int(got[c]) >= d || c > 0 && got[c-1] >= got[c] {
				t.Fatalf("t=%d: coordinates %v of %d are not ascending below it", k, got, d)
			}
		}
	}
	dst, round := make([]uint32, 0, d), 0
	if allocs := testing.AllocsPerRun(50, func() { dst = m.Draw(dst, round, 0, 1); round++ }); allocs != 0 &&
		!raceEnabled {
		t.Errorf("Draw allocates %v times", allocs)
	}
}

// Every coordinate is drawn with the same probability, its Density; for randk-per-layer that of its
// layer. With the second length, stratified has blocks of unequal size: 7 and 8.
func TestMarginals(t *testing.T) {
	const rounds = 40000
	for _, c := range []struct {
		spec  string
		sizes []int
		p     float64
	}{
		{"randk", []int{40}, 0.25}, {"randk", []int{39}, 0.8}, {"bernoulli", []int{40}, 0.13}, {"stratified", []int{40},
			0.25},
		{"stratified", []int{37}, 0.135}, {"stratified", []int{11}, 0.64}, {"stratified", []int{7}, 0.143},
		{"block", []int{40}, 0.2}, {"randk-per-layer", []int{20, 20}, 0.25},
	} {
		m := mustMask(t, c.spec, c.p, c.sizes)
		count := make([]float64, m.Dim())
		var dst []uint32
		for k := range rounds {
			dst = m.Draw(dst, k, 0, 1)
			for _, x := range dst {
				count[x]++
			}
		}
		p := m.Density()
		for x, n := range count {
			if math.Abs(n/rounds-p) > 5*math.Sqrt(p*(1-p)/rounds) {
				t.Errorf("%s %v of %v: coordinate %d is drawn with frequency %.4f, want %.4f", c.spec, c.p, c.sizes, x,
					n/rounds, p)
			}
		}
	}
}

// Masks of different edges and iterations are independent: two of density p share p²·d coordinates
// on average.
func TestMasksAreIndependent(t *testing.T) {
	const d, rounds, p = 200, 4000, 0.1
	for _, spec := range []string{"randk", "bernoulli", "stratified", "block"} {
		m := mustMask(t, spec, p, []int{d})
		shared := map[string]float64{}
		var a, b []uint32
		for k := range rounds {
			a = m.Draw(a, k, 0, 1)
			for name, key := range map[string][3]int{"next t": {k + 1, 0, 1}, "next edge": {k, 0, 2},
				"next agent": {k, 1, 2}, "one agent": {k, 1, 1}} {
				b = m.Draw(b, key[0], key[1], key[2])
				for _, x := range b {
					if _, ok := slices.BinarySearch(a, x); ok {
						shared[name]++
					}
				}
			}
		}
		for name, n := range shared {
			// block has the largest variance: its standard error is 0.075
			if got := n / rounds; math.Abs(got-p*p*d) > 0.4 {
				t.Errorf("%s: %.3f coordinates shared with the %s, want about %v", spec, got, name, p*p*d)
			}
		}
	}
}

func TestMaskSizes(t *testing.T) {
	resnet := resNet50Sizes()
	if len(resnet) != 161 || sum(resnet) != 25557032 || sum(mlpSizes) != 79510 {
		t.Fatalf("%d tensors of %d and %d numbers", len(resnet), sum(resnet), sum(mlpSizes))
	}
	for _, c := range []struct {
		spec    string
		density float64
		sizes   []int
		want    int
	}{
		{"randk-per-layer", 0.1, mlpSizes, 7948}, {"randk", 0.1, mlpSizes, 7951},
		{"randk-per-layer", 0.067, mlpSizes, 5325}, {"randk", 0.067, mlpSizes, 5327},
		{"randk-per-layer", 0.01, mlpSizes, 796}, {"randk", 0.01, mlpSizes, 795},
		{"randk-per-layer", 0.001, mlpSizes, 81}, {"randk", 0.001, mlpSizes, 80},
		{"randk-per-layer", 0.0001, mlpSizes, 10}, {"randk", 0.0001, mlpSizes, 8},
		{"randk-per-layer", 0.1, resnet, 2555621}, {"randk", 0.1, resnet, 2555703},
		{"randk-per-layer", 0.01, resnet, 255513}, {"randk", 0.01, resnet, 255570},
		{"randk-per-layer", 0.001, resnet, 25595}, {"randk", 0.001, resnet, 25557},
		{"stratified", 0.1, resnet, 2555703}, {"block", 0.1, mlpSizes, 7951}, {"bernoulli", 0.1, mlpSizes, 7951},
		{"all", 0.1, mlpSizes, 79510}, {"randk", 1, mlpSizes, 79510}, {"randk", 1e-9, mlpSizes, 1},
	} {
		if got := mustMask(t, c.spec, c.density, c.sizes).Len(); got != c.want {
			t.Errorf("%s of %d at %v: %d coordinates, want %d", c.spec, sum(c.sizes), c.density, got, c.want)
		}
	}
}

func TestAutoMask(t *testing.T) {
	for _, c := range []struct {
		d    int
		want string
	}{{999_999, "randk"}, {1_000_000, "stratified"}} {
		m := mustMask(t, "auto", 0.01, []int{c.d})
		if m.String() != c.want {
			t.Errorf("auto at %d is %s, want %s", c.d, m, c.want)
		}
	}
}

func TestDenseMasks(t *testing.T) {
	for _, c := range []struct {
		spec    string
		density float64
		want    bool
	}{{"all", 0.1, true}, {"randk", 1, true}, {"bernoulli", 1, true}, {"bernoulli", 0.999999, false}, {"stratified",
		0.9999999, true},
		{"randk", 0.5, false}} {
		if m := mustMask(t, c.spec, c.density, []int{10}); m.Dense() != c.want {
			t.Errorf("%s at %v: Dense is %v", c.spec, c.density, m.Dense())
		}
	}
}

func TestMaskErrors(t *testing.T) {
	for _, c := range []struct {
		spec    string
		density float64
		sizes   []int
		want    string
	}{
		{"rand-k", 0.1, mlpSizes, "randk-per-layer"}, {"randk(3)", 0.1, mlpSizes, "takes no argument"},
		{"randk", 0, mlpSizes, "the density is 0"}, {"randk", 1.1, mlpSizes, "the density is 1.1"},
		{"randk", math.NaN(), mlpSizes, "the density is NaN"}, {"all", -1, mlpSizes, "above 0 and at most 1"},
		{"randk", 0.1, nil, "no tensor sizes"}, {"randk", 0.1, []int{5, 0}, "tensor 1 of 2 has 0"},
		{"randk", 0.1, []int{math.MaxUint32, 1}, "longer than 4294967295"},
	} {
		if m, err := ParseMask(c.spec, c.density, c.sizes, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %v, %v: %v, error %v, want one with %q", c.spec, c.density, c.sizes, m, err, c.want)
		}
	}
}

func TestNegativeMaskKeyPanics(t *testing.T) {
	for _, key := range [][3]int{{-1, 0, 1}, {0, -1, 1}, {0, 0, -1}} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "dist: ") {
					t.Errorf("key %v: panic %v", key, r)
				}
			}()
			mustMask(t, "randk", 0.5, []int{8}).Draw(nil, key[0], key[1], key[2])
		}()
	}
}

func TestMasksAreSafeForConcurrentUse(t *testing.T) {
	for _, spec := range masks {
		m := mustMask(t, spec, 0.2, []int{900, 30})
		want := make([][]uint32, 40)
		for k := range want {
			want[k] = m.Draw(nil, k, 0, 1)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				var dst []uint32
				for k := range want {
					if dst = m.Draw(dst, k, 1, 0); !slices.Equal(dst, want[k]) {
						t.Errorf("%s at %d differs", spec, k)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

// These numbers may change only together with rng.Version: processes of different builds must agree
// on them.
func TestMasksArePinned(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"randk", "[1 21 41 47 51]"}, {"randk-per-layer", "[1 35 39 50]"}, {"bernoulli", "[34 43]"}, {"stratified",
			"[8 12 31 42 47]"}, {"block", "[1 2 3 4 5]"},
	} {
		if got := fmt.Sprint(mustMask(t, c.spec, 0.1, []int{40, 13}).Draw(nil, 5, 2, 1)); got != c.want {
			t.Errorf("%s draws %s, want %s", c.spec, got, c.want)
		}
	}
}

// Long vectors use other code paths for the same definitions: sparse bitmaps, shifted blocks, gaps
// longer than the table. These numbers, too, change only together with rng.Version.
func TestLongMasksArePinned(t *testing.T) {
	for _, c := range []struct {
		spec string
		want uint64
	}{{"randk", 0xce03084266d447f8}, {"randk-per-layer", 0xd5605153225d6f10}, {"bernoulli",
		0x30733519720c9016}, {"stratified", 0x8a0e34a4e0537be3}} {
		h := fnv.New64a()
		var dst []uint32
		for _, sizes := range [][]int{{79510}, {1 << 20, 999_983, 64}} {
			for _, density := range []float64{0.9, 0.3, 0.1, 0.02, 0.01, 0.001, 0.0001} {
				m := mustMask(t, c.spec, density, sizes)
				for round := range 3 {
					dst = m.Draw(dst, round, 2, 1)
					if err := binary.Write(h, binary.LittleEndian, dst); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if got := h.Sum64(); got != c.want {
			t.Errorf("%s draws %#x, want %#x", c.spec, got, c.want)
		}
	}
}

func FuzzParseMask(f *testing.F) {
	for _, s := range maskForms {
		f.Add(s.String(), 0.3, 17, 5)
	}
	f.Add("randk", math.Inf(1), 1, 1)
	f.Add("bernoulli", 1e-320, 9, 9)
	f.Fuzz(func(t *testing.T, spec string, density float64, a, b int) {
		if a > 5000 || b > 5000 {
			return
		}
		m, err := ParseMask(spec, density, []int{a, b}, 1)
		if err != nil {
			return
		}
		again, err := ParseMask(m.String(), density, []int{a, b}, 1)
		if err != nil || again.String() != m.String() || !slices.Equal(again.Draw(nil, 1, 2, 3), m.Draw(nil, 1, 2, 3)) {
			t.Errorf("%q at %v of %d+%d became %q, which gives %v, %v", spec, density, a, b, m, again, err)
		}
	})
}

func BenchmarkDraw(b *testing.B) {
	for _, d := range []int{79510, 25557032} {
		for _, density := range []float64{0.1, 0.01, 0.001} {
			for _, spec := range []string{"randk", "bernoulli", "stratified"} {
				m := mustMask(b, spec, density, []int{d})
				b.Run(fmt.Sprintf("%s/d=%d/density=%v", spec, d, density), func(b *testing.B) {
					var dst []uint32
					t := 0
					for b.Loop() {
						dst = m.Draw(dst, t, 0, 1)
						t++
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(m.Len()), "ns/selected")
				})
			}
		}
	}
}
