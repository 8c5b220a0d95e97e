package algo

import (
	"math"
	"slices"
	"testing"

	"fspda/device"
	"fspda/dist"
)

// coding is a compressor in float64, written out: the values of a vector as they arrive, and their
// coordinates; nil: all.
type coding func(v []float64) (values []float64, coords []uint32)

// inCode sends vectors by a coding to all agents at the ends of rounds of 2. A message is counted
// as sent says.
func inCode(code coding, sent dist.Sent) func(g *game) {
	return func(g *game) {
		everyPair(g)
		coords := make([][]uint32, len(g.state))
		g.prepare = func(r *Round) {
			r.Compress = func(v device.Vector, which int) (Compressed, error) {
				got, at := code(values(v))
				if which == 0 {
					coords[r.Self] = at
				}
				b := g.dev.NewVector(len(got))
				copy(values(b), got)
				c := Compressed{Vectors: []device.Vector{b}}
				if at != nil {
					c.Index = g.dev.NewIndex(at, nil)
				}
				return c, nil
			}
		}
		g.heard = func(r *Round) {
			for k := range r.Links {
				var at device.Index
				if c := coords[r.Links[k].Peer]; c != nil {
					at = g.dev.NewIndex(c, nil)
				}
				r.Links[k].Coords = []device.Index{at}
			}
		}
		g.coded = func(*Link, int) dist.Sent { return sent }
	}
}

// ofBlocks rounds blocks of adjacent numbers, by their largest magnitude over top.
func ofBlocks(block int, top float64, nearest func(x float64) float64) coding {
	return func(v []float64) (q []float64, _ []uint32) {
		for part := range slices.Chunk(v, block) {
			most := 0.0
			for _, x := range part {
				most = math.Max(most, math.Abs(x))
			}
			for _, x := range part {
				if scale := most / top; scale > 0 {
					x = scale * math.Max(-top, math.Min(top, nearest(x/scale)))
				}
				q = append(q, x)
			}
		}
		return q, nil
	}
}

func inInts(bits, block int) coding {
	return ofBlocks(block, math.Pow(2, float64(bits-1))-1, math.RoundToEven)
}

func inFP8(block int) coding {
	return ofBlocks(block, 448, func(x float64) float64 {
		unit := math.Max(math.Pow(2, -9), math.Pow(2, math.Floor(math.Log2(math.Abs(x)))-3))
		return math.RoundToEven(x/unit) * unit
	})
}

// largest takes the k largest numbers of each run of adjacent ones, and rounds them to bins; 0:
// it does not.
func largest(run, k, bins int) coding {
	return func(v []float64) (q []float64, at []uint32) {
		for from := 0; from < len(v); from += run {
			var order []int
			for i := range run {
				order = append(order, from+i)
			}
			slices.SortStableFunc(order, func(a, b int) int {
				return int(math.Copysign(1, math.Abs(v[b])-math.Abs(v[a])))
			})
			order = order[:k]
			slices.Sort(order)
			for _, i := range order {
				q, at = append(q, v[i]), append(at, uint32(i))
			}
		}
		if bins == 0 {
			return q, at
		}
		n, b, shift, squares := float64(len(q)), float64(bins), 0.0, 0.0
		for _, x := range q {
			shift += x / n
		}
		for _, x := range q {
			squares += (x - shift) * (x - shift)
		}
		step := 6 * math.Sqrt(squares/(n-1)) / b
		members := map[float64][]int{}
		for i, x := range q {
			code := math.Max(0, math.Min(b-1, math.RoundToEven((x-shift)/step+b/2)))
			members[code] = append(members[code], i)
		}
		for _, of := range members {
			mean := 0.0
			for _, i := range of {
				mean += q[i] / float64(len(of))
			}
			for _, i := range of {
				q[i] = mean
			}
		}
		return q, at
	}
}

// whole is the coding of values as they are.
func whole(v []float64) ([]float64, []uint32) { return slices.Clone(v), nil }

// Trajectories of rounds whose messages are coded.
func TestGoldenCodedRounds(t *testing.T) {
	six := [3]int{6, 6, 6}
	adam := Descent{Opt: AdamW{0.9, 0.99, 1e-8}, Decay: &Decay{Rate: 0.01}}
	sparse := SparseLoCo{H: 2, Keep: 0.9, Rate: 0.7}
	quantized := func(twoSteps bool, feedback float64) DiLoCo {
		by := Quantized{TwoSteps: twoSteps, Feedback: feedback}
		return DiLoCo{H: 2, Rate: 0.7, Mu: 0.9, Reduce: by, Descent: adam}
	}
	in := func(bits int) dist.Sent { return dist.Sent{Values: 6, ValueBits: bits, ExtraBits: 96, Mask: 6, Dim: 6} }
	four := dist.Sent{Values: 4, ValueBits: 32, Mask: 4, Dim: 6, IndexBits: 8, Indices: true, DataDependent: true}
	binned := four
	binned.ValueBits, binned.ExtraBits = 2, 160
	for _, c := range []goldenRow{
		{name: "sparseloco", algo: sparse, d: six, game: inCode(largest(3, 2, 0), four),
			bits: [3]uint64{4896, 4896, 13824}, of: aux(1), want: [3]string{"2.35188486 2.25161228 2.14836943 " +
				"22.39433970 0.54918468 0 0", "1.35486476 0.75344136 1.39936795 19.91852641",
				"0.3601744169 0.7612907624 0.7922623182 " +
					"7.4430083294 0 0 0.4018119507"}},
		{name: "sparseloco, 4 bins", algo: sparse, d: six, game: inCode(largest(3, 2, 4), binned),
			bits: [3]uint64{6336, 6336, 15264}, of: aux(1), want: [3]string{"2.17823631 2.34811121 2.27239201 " +
				"22.44449190 -0.02805187 0.54343258 0.02805187", "1.32420958 0.78944982 1.32016147 19.91650280",
				"0.3489735231 0.7284676772 0.8092051712 " +
					"7.4273889222 0.0712803857 0.0865403272 0.4948451582"}},
		{name: "int4, gather", algo: quantized(false, 0), d: six, game: inCode(inInts(4, 2), in(4)),
			bits: same(4320), of: aux(1), want: [3]string{"2.19677958 2.51133117 2.19527408 23.02402600 " +
				"-0.07415483 -0.24090366 -0.07639095", "1.49449148 0.97360382 1.64220048 21.12338398",
				"-0.1561399140 0.6948608186 0.0101734503 " +
					"6.9108022160 0.6552555433 0.3756012533 0.6025404596"}},
		{name: "int4, two steps, feedback", algo: quantized(true, 0.9), d: six, game: inCode(inInts(4, 2), in(4)),
			bits: same(2160), of: aux(2), want: [3]string{"2.18811334 2.51128531 2.19518223 23.02220974 " +
				"-0.00182934 0 0", "1.51196100 0.97720721 1.65583245 21.15454333",
				"-0.1508232840 0.6959884636 0.0287900044 " +
					"6.9081800950 -0.0040114006 0 0.0106725917"}},
		{name: "fp8, two steps", algo: quantized(true, 0), d: six, game: inCode(inFP8(2), in(8)),
			bits: same(2592), of: aux(1), want: [3]string{"2.18529789 2.51147029 2.19242385 23.03115102 " +
				"-0.06966838 -0.24098737 -0.07253688", "1.49949025 0.97549308 1.62560714 21.09072513",
				"-0.1513816684 0.6720302145 0.0326010970 " +
					"6.8937917404 0.6491870172 0.3832050804 0.5928908904"}},
	} {
		t.Run(c.name, c.check)
	}
}

// codedWorld plays an algorithm with rounds of 2 and messages in a code, with noisy gradients.
func codedWorld(a Algorithm, w world, q quadratics, code coding) *game {
	g := w.play(a, q, 0.05, 0)
	inCode(code, dist.Sent{})(g)
	g.grad, g.share = noisy(q, w.seed, 0.3), w.seed%2 == 0
	return g
}

// SparseLoCo that sends everything is DiLoCo without momentum. The numbers that it sends and keeps
// in a round are the change of the model and the numbers kept before: with Keep 1 the slow model is
// the first one minus all that was sent. Numbers in bins have the mean of the numbers.
func TestSparseLoCoKeepsWhatItDoesNotSend(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		all := codedWorld(SparseLoCo{H: 2, Keep: 0.9, Rate: 0.7, Descent: heavyBall(0.5)}, w, q, whole)
		dense := outerWorld(DiLoCo{H: 2, Rate: 0.7, Descent: heavyBall(0.5)}, w, q, 2)
		for it := range 20 {
			all.step(t, it)
			dense.step(t, it)
			for i := range w.n {
				if e := distance(all.x(i), dense.x(i)); e > 1e-12 {
					t.Fatalf("iteration %d, agent %d: %g from DiLoCo", it, i, e)
				}
			}
		}
	})
	for _, bins := range []int{0, 2, 4} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			const rate = 0.7
			code := largest(3, 2, bins)
			var sent [][]float64
			g := codedWorld(SparseLoCo{H: 2, Keep: 1, Rate: rate, Descent: heavyBall(0.5)}, w, q,
				func(v []float64) ([]float64, []uint32) {
					got, at := code(v)
					one, raw, mean := make([]float64, len(v)), 0.0, 0.0
					for k, c := range at {
						one[c] = got[k]
						raw, mean = raw+v[c], mean+got[k]
					}
					sent = append(sent, one)
					if math.Abs(raw-mean) > 1e-12 {
						t.Fatalf("numbers of sum %g become numbers of sum %g", raw, mean)
					}
					return got, at
				})
			moved, gone, phi := zeros(w.n, w.d), zeros(w.n, w.d), make([]float64, w.d)
			x, u := zeros(w.n, w.d), zeros(w.n, w.d)
			for it := range 20 {
				heavyBallSteps(g, it, x, u)
				if (it+1)%2 == 0 {
					for i := range x {
						for k := range phi {
							moved[i][k] += phi[k] - x[i][k]
						}
					}
				}
				sent = nil
				g.step(t, it)
				if (it+1)%2 > 0 {
					continue
				}
				for i := range sent {
					for k, v := range sent[i] {
						gone[i][k] += v
						phi[k] -= rate * v / float64(w.n)
					}
				}
				for i := range x {
					if !slices.Equal(g.x(i), g.x(0)) {
						t.Fatalf("iteration %d: agent %d has another model than agent 0", it, i)
					}
					copy(x[i], phi)
					for k := range phi {
						if e := moved[i][k] - gone[i][k] - g.aux(i, "error")[k]; math.Abs(e) > 1e-12 {
							t.Fatalf("iteration %d, agent %d: %g is neither sent nor kept", it, i, e)
						}
					}
					if e := distance(g.x(i), phi); e > 1e-12 {
						t.Fatalf("iteration %d, agent %d: %g from the first model minus all that was sent", it, i, e)
					}
				}
			}
		})
	}
}

// With many bits quantized rounds are DiLoCo. All agents hold the same bits, by both collectives,
// with feedback and without.
func TestQuantizedRounds(t *testing.T) {
	for _, by := range []Quantized{{}, {Feedback: 1}, {TwoSteps: true}, {TwoSteps: true, Feedback: 0.9}} {
		forWorlds(t, func(t *testing.T, w world, q quadratics) {
			of := func(code coding) *game {
				return codedWorld(DiLoCo{H: 2, Rate: 0.7, Mu: 0.9, Reduce: by, Descent: heavyBall(0.5)}, w, q, code)
			}
			fine, coarse := of(inInts(16, 3)), of(inInts(3, 4))
			dense := outerWorld(DiLoCo{H: 2, Rate: 0.7, Mu: 0.9, Descent: heavyBall(0.5)}, w, q, 2)
			for it := range 40 {
				for _, g := range []*game{fine, coarse, dense} {
					g.step(t, it)
				}
				for i := range w.n {
					if e := distance(fine.x(i), dense.x(i)); e > 1e-3 {
						t.Fatalf("%v, iteration %d, agent %d: %g from DiLoCo", by, it, i, e)
					}
					if it%2 == 1 && (!slices.Equal(coarse.x(i), coarse.x(0)) || !slices.Equal(fine.x(i), fine.x(0))) {
						t.Fatalf("%v, iteration %d: agent %d has another model than agent 0", by, it, i)
					}
				}
			}
			if fine.differ || coarse.differ {
				t.Errorf("%v: agents make different shared vectors", by)
			}
		})
	}
}

// One agent alone goes through the same code as many.
func TestQuantizedRoundsOfOne(t *testing.T) {
	for _, by := range []Quantized{{}, {Feedback: 1}, {TwoSteps: true}} {
		g := newGame(DiLoCo{H: 2, Rate: 1, Reduce: by}, 1, []float64{2, 2, 2, 2})
		inCode(inInts(3, 4), dist.Sent{})(g)
		q := goldenQuadratics(4)
		g.alpha, g.grad = 0.1, q.grad
		start := slices.Clone(g.x(0))
		x, grad := slices.Clone(start), make([]float64, 4)
		for it := range 2 {
			q.grad(it, 0, grad, x)
			for k := range x {
				x[k] -= 0.1 * grad[k]
			}
			g.step(t, it)
		}
		for k := range x {
			x[k] = start[k] - x[k]
		}
		coded, _ := inInts(3, 4)(x)
		for k := range x {
			x[k] = start[k] - coded[k]
		}
		if e := distance(x, g.x(0)); e > 1e-12 {
			t.Errorf("%v: %g from the change in code", by, e)
		}
	}
}
