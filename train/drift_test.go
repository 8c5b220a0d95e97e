package train

import (
	"math"
	"os"
	"testing"

	"fspda/device"
	"fspda/dist"
	"fspda/internal/rng"
	"fspda/train/algo"
)

// drift is the length of the sum of the duals against the sum of their lengths, after T noisy
// iterations in float32 with one edge each, n agents of different objectives, and a tenth of the
// coordinates an exchange, which travel as wire says.
func drift(t *testing.T, a algo.Algorithm, T int, wire dist.ValueFormat) float64 {
	t.Helper()
	const n, d, k = 10, 200, 20
	p := drifting{host: make([]float32, d)}
	s := rng.New(1, "drift")
	for range n {
		p.states = append(p.states, algo.NewState(a, cpuDevice, cpuDevice.NewVector(d)))
		want := make([]float32, d)
		for j := range want {
			want[j] = float32(s.Norm())
		}
		p.want = append(p.want, want)
	}
	rounds, coords := make([]algo.Round, n), make([]uint32, k)
	for it := range T {
		i := s.IntN(n)
		j := (i + 1 + s.IntN(n-1)) % n
		for q := range coords {
			coords[q] = uint32(q*(d/k) + s.IntN(d/k))
		}
		mask := cpuDevice.NewIndex(coords, nil)
		for q := range rounds {
			r := &rounds[q]
			*r = algo.Round{T: it, Self: q, Alpha: 0.01, Eta: 0.001, Acquire: cpuDevice.NewVector,
				Post: func(link int, v ...device.Vector) { shorten(wire, v); r.Links[link].Sent = v }}
			r.Grad = func(dst, x device.Vector) error { p.grad(it, q, dst, x); return nil }
			if q == i || q == j {
				r.Links = []algo.Link{{Peer: i + j - q, Len: k, Mask: mask}}
			}
			if err := a.Local(p.states[q], r); err != nil {
				t.Fatal(err)
			}
		}
		rounds[i].Links[0].Received, rounds[j].Links[0].Received = rounds[j].Links[0].Sent, rounds[i].Links[0].Sent
		for q := range rounds {
			if err := a.Mix(p.states[q], &rounds[q]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p.sum(a)
}

type drifting struct {
	states []*algo.State
	want   [][]float32
	host   []float32
}

// grad is the gradient of ½|x - want|² with noise that depends on iteration and agent alone.
func (p *drifting) grad(it, i int, dst, x device.Vector) {
	s := rng.New(2, "noise", uint64(it), uint64(i))
	noise := float32(s.Norm())
	cpuDevice.Read(p.host, x)
	for k := range p.host {
		p.host[k] += noise*float32(k%3) - p.want[i][k]
	}
	cpuDevice.Write(dst, p.host)
}

func (p *drifting) sum(a algo.Algorithm) float64 {
	name := a.Traits().Tracked.Name
	sum, lengths := make([]float64, len(p.host)), 0.0
	for _, s := range p.states {
		cpuDevice.Read(p.host, algo.Aux(a, s, name))
		sq := 0.0
		for k, v := range p.host {
			sum[k] += float64(v)
			sq += float64(v) * float64(v)
		}
		lengths += math.Sqrt(sq)
	}
	sq := 0.0
	for _, v := range sum {
		sq += v * v
	}
	return math.Sqrt(sq) / lengths
}

func shorten(wire dist.ValueFormat, vs []device.Vector) {
	for _, v := range vs {
		host := make([]float32, v.Len())
		cpuDevice.Read(host, v)
		wire.Round(host)
		cpuDevice.Write(v, host)
	}
}

// In float32 the duals keep their zero sum over many noisy exchanges, however many bits the values
// have on the wire. FSPDA_LONG=1 takes 100,000 of them.
func TestDualDrift(t *testing.T) {
	T := 4000
	if os.Getenv("FSPDA_LONG") != "" {
		T = 100_000
	}
	for _, wire := range []dist.ValueFormat{dist.FP32, dist.FP16, dist.BF16} {
		for _, a := range []algo.Algorithm{algo.SA{Gamma: 0.5, Beta: 1}, algo.STORM{Gamma: 0.5, Beta: 1, AX: 0.1,
			ALambda: 0.1}, algo.STORM{Gamma: 0.5, Beta: 0.1, AX: 0.01, ALambda: 0.01}} {
			got := drift(t, a, T, wire)
			t.Logf("%s %s %+v: %.2g after %d iterations", wire, a.Name(), a, got, T)
			if limit := 1e-5 * math.Sqrt(float64(T)/100_000); !(got < limit) {
				t.Errorf("%s %s %+v: %g after %d iterations, want below %g", wire, a.Name(), a, got, T, limit)
			}
		}
	}
}
