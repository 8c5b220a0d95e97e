package cudnn

import "testing"

// No engine that comes with the library writes the gradient of filters in float32 from 16 bits, as
// far as is known: it is written in 16 bits and widened. If this test fails, a new version may save
// that.
func TestNoFloat32GradientOfFilters(t *testing.T) {
	api := installed(t)
	for _, c := range gpus {
		h := deviceless(t, api, c)
		for _, precision := range precisions[2:] {
			if precision.of == BFloat16 && c.version < 800 {
				continue
			}
			compiled := 0
			for _, s := range resnet50(128, 4) {
				if offersOf(t, h, s, precision.of, precision.of, precision.m, nil) == 0 {
					t.Errorf("%s, %s: %v: no engine writes 16 bits", c, precision.name, s)
				}
				if n := offersOf(t, h, s, precision.of, Float32, precision.m, &compiled); n > 0 {
					t.Errorf("%s, %s: %v: %d engines write float32", c, precision.name, s, n)
				}
			}
			t.Logf("%s, %s: %d offers of engines that compile", c, precision.name, compiled)
		}
	}
}

// offersOf counts the usable engines for the gradient of filters of type w from numbers of type of,
// and those that compile.
func offersOf(t *testing.T, h *Handle, s Shape, of, w Type, m Math, compiled *int) (usable int) {
	t.Helper()
	n := &nodes{api: h.api, what: s}
	g := mixedGradW(n, s, of, w)
	for _, mode := range []int32{HeuristicA, HeuristicFallback} {
		for _, o := range n.offers(g, mode, h.target()) {
			if o.compiles() && compiled != nil {
				*compiled++
			} else if !o.compiles() && !o.unusable(m, false) {
				usable++
			}
		}
	}
	if err := n.close(); err != nil {
		t.Error(err)
	}
	return usable
}

// mixedGradW is graphOf for the gradient of filters of another type than their inputs.
func mixedGradW(n *nodes, s Shape, of, filters Type) Node {
	x := n.tensor(uidX, of, 16, s.N, s.C, s.H, s.W)
	w := n.tensor(uidW, filters, 16, s.K, s.C, s.R, s.S)
	y := n.tensor(uidY, of, 16, s.N, s.K, s.P(), s.Q())
	as := operations[GradW]
	op := n.create(as.node)
	set(n, op, as.conv, NodeValue, n.window(s))
	set(n, op, as.alpha, FloatValue, float32(1))
	set(n, op, as.beta, FloatValue, float32(0))
	for at, v := range map[Attribute]Node{as.x: x, as.w: w, as.y: y} {
		set(n, op, at, NodeValue, v)
	}
	g := n.create(GraphNode)
	set(n, g, GraphOperations, NodeValue, n.finalize(op))
	return n.finalize(g)
}
