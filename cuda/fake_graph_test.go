package cuda

import (
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/dist"
	"fspda/internal/testing/fakecudnn"
)

// fakeEngines is the engines of the fake cuDNN. Some must never be chosen: one rounds too much, one
// needs too much workspace, one cannot be built. One refuses to run, and one sums in another order
// each time.
func fakeEngines(c fakecudnn.Convolution) []fakecudnn.Engine {
	engine := func(index int64, memory int64, notes ...int32) fakecudnn.Engine {
		return fakecudnn.Engine{Engine: cudnn.Engine{Index: index, Knobs: []cudnn.Knob{{Type: 2, Value: index}}},
			Memory: memory, Numerical: notes}
	}
	unmade, refuses := engine(42, 0), engine(43, 0)
	unmade.Unmade, refuses.Refuses = true, 3000
	all := []fakecudnn.Engine{engine(40, 0, cudnn.NoteDownConvert), engine(41, 1<<40), unmade,
		engine(44, 64, cudnn.NoteReducedReduction),
		engine(62, 128, cudnn.NoteTensorCore), engine(25, 0, cudnn.NoteNondeterministic), engine(28, 256)}
	if c.Direction != cudnn.GradX { // its first engine in deterministic runs refuses to run
		return all
	}
	return append([]fakecudnn.Engine{refuses}, all...)
}

// newGraph returns cuDNN's graph API, which computes by the same loops as the algorithms.
func (n *fakeDNN) newGraph() *fakecudnn.Graph {
	none := func(fakecudnn.Convolution) []fakecudnn.Engine { return nil }
	g := &fakecudnn.Graph{Offered: fakeEngines, Fallback: none}
	g.Compute = func(c fakecudnn.Convolution, by fakecudnn.Engine, x, w, y, _ driver.Pointer) cudnn.Status {
		if i := by.Index; i != 62 && i != 25 && i != 28 || i == 62 && c.Type == cudnn.Float32 && !n.rounding {
			return 2000
		}
		last := func(d [4]int64) [4]int32 { return [4]int32{int32(d[0]), int32(d[2]), int32(d[3]), int32(d[1])} }
		out := map[cudnn.Direction]driver.Pointer{cudnn.Forward: y, cudnn.GradX: x, cudnn.GradW: w}[c.Direction]
		pad := int32(c.Pad)
		if by.Index == n.wrongEngine {
			pad--
		}
		return n.products(last(c.X), last(c.W), [2]int32{int32(c.Stride), pad}, last(c.Y), c.Type, x, w, y, out)
	}
	g.OfferedFlow, g.ComputeFlow = n.attentionEngines, n.attend
	return g
}

// attentionEngines is the engines for attention. Only the last of them, and engine 2, compute it:
// others are wrong, refuse to run, cannot be built, or need too much workspace.
func (n *fakeDNN) attentionEngines(*fakecudnn.Flow) []fakecudnn.Engine {
	if !n.attention {
		return nil
	}
	engine := func(index int64, memory int64) fakecudnn.Engine {
		return fakecudnn.Engine{Engine: cudnn.Engine{Index: index}, Memory: memory,
			Numerical: []int32{cudnn.NoteTensorCore}, Behaviour: []int32{cudnn.NoteCompiles}}
	}
	refuses, unmade := engine(3, 0), engine(4, 0)
	refuses.Refuses, unmade.Unmade = 3000, true
	return []fakecudnn.Engine{engine(2, 256), refuses, unmade, engine(5, 1<<40), engine(6, 0),
		engine(wrongAttention, 0)}
}

// wrongAttention is an engine whose results are a tenth too large.
const wrongAttention = 7

// attend executes the graph of attention.
func (n *fakeDNN) attend(f *fakecudnn.Flow, by fakecudnn.Engine, _ driver.Pointer) cudnn.Status {
	n.attended++
	return cudnn.Status(n.m.Enqueue(n.stream, "attention", func() error {
		return f.Run(func(t *fakecudnn.FlowTensor) ([]float32, func(), error) {
			m, err := matrixAt(n.m, t.Address, t.Extent(), dnnElements[t.Type])
			return m.v, func() {
				if by.Index == wrongAttention {
					for i := range m.v {
						m.v[i] *= 1.1
					}
				}
				m.put()
			}, err
		}, roundTo)
	}))
}

// roundTo rounds numbers to a type of 16 bits.
func roundTo(of cudnn.Type, v []float32) {
	switch of {
	case cudnn.Float16:
		dist.FP16.Round(v)
	case cudnn.BFloat16:
		dist.BF16.Round(v)
	}
}
