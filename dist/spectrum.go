package dist

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"fspda/internal/rng"
)

// maxDenseSpectrum is the largest number of agents for which all eigenvalues are computed, in cubic
// time.
const maxDenseSpectrum = 1500

// Connectivity returns the second smallest eigenvalue of the Laplacian (the algebraic
// connectivity), which is positive since the graph is connected. The graph must have at least two
// agents. Above 1,500 agents it uses the formula of the topology, or the Lanczos method on the
// sparse matrix, accurate to at least six digits.
func (g *Graph) Connectivity() float64 {
	if g.N <= maxDenseSpectrum {
		return g.Spectrum()[1]
	}
	if second, _, ok := g.formula(); ok {
		return second
	}
	return 1 / g.lanczos(g.solve)
}

// LargestEigenvalue returns the largest eigenvalue of the Laplacian, computed as in Connectivity.
func (g *Graph) LargestEigenvalue() float64 {
	if g.N <= maxDenseSpectrum {
		return g.Spectrum()[g.N-1]
	}
	if _, largest, ok := g.formula(); ok {
		return largest
	}
	return g.lanczos(g.laplace)
}

// formula returns the extreme eigenvalues of topologies with a closed form (Brouwer and Haemers,
// "Spectra of graphs", 2012, section 1.4), for three agents and more.
func (g *Graph) formula() (second, largest float64, ok bool) {
	kind, ok := rowOf(graphKinds, g.spec)
	if !ok || kind.extremes == nil {
		return 0, 0, false
	}
	second, largest = kind.extremes(g)
	return second, largest, true
}

// gridExtremes returns the function of the extreme eigenvalues of a grid, whose sides have those
// that side returns.
func gridExtremes(side func(n int) (second, largest float64)) func(g *Graph) (second, largest float64) {
	return func(g *Graph) (second, largest float64) {
		r := gridRows(g.N)
		a, top := side(g.N / r)
		if r == 1 {
			return a, top
		}
		b, more := side(r)
		return min(a, b), top + more
	}
}

// pathExtremes returns the extreme eigenvalues of a path of n agents, 2-2·cos(pi·k/n).
func pathExtremes(n int) (second, largest float64) {
	s, c := math.Sincos(math.Pi / float64(2*n))
	return 4 * s * s, 4 * c * c
}

// ringExtremes returns the extreme eigenvalues of a ring, 2-2·cos(2·pi·k/n). A ring of two is a
// path.
func ringExtremes(n int) (second, largest float64) {
	if n == 2 {
		return pathExtremes(n)
	}
	s := math.Sin(math.Pi / float64(n))
	t := math.Sin(math.Pi * float64(n/2) / float64(n))
	return 4 * s * s, 4 * t * t
}

// circulant returns the extreme eigenvalues of a circulant graph, Σ 1-cos(2·pi·k·s/n) with s over
// the neighbours of agent 0.
func (g *Graph) circulant() (second, largest float64) {
	second = math.Inf(1)
	for k := 1; k <= g.N/2; k++ {
		sum := 0.0
		for _, s := range g.Neighbours(0) {
			t := math.Sin(math.Pi * float64(k*s%g.N) / float64(g.N))
			sum += float64(2 * t * t)
		}
		second, largest = min(second, sum), max(largest, sum)
	}
	return second, largest
}

// laplace computes dst = L·x.
func (g *Graph) laplace(dst, x []float64) {
	for i := range dst {
		dst[i] = float64(g.Degree(i)) * x[i]
	}
	for _, e := range g.Edges {
		dst[e.I] -= x[e.J]
		dst[e.J] -= x[e.I]
	}
}

// solve sets dst to the solution of L·dst = b with sum zero, for b with sum zero, by conjugate
// gradients.
func (g *Graph) solve(dst, b []float64) {
	clear(dst)
	r := append([]float64{}, b...)
	p, lp := append([]float64{}, b...), make([]float64, g.N)
	rr := floats.Dot(r, r)
	end := 1e-24 * rr
	for step := 0; rr > end && step < 20*g.N; step++ {
		g.laplace(lp, p)
		a := rr / floats.Dot(p, lp)
		floats.AddScaled(dst, a, p)
		floats.AddScaled(r, -a, lp)
		center(r)
		old := rr
		rr = floats.Dot(r, r)
		floats.AddScaledTo(p, r, rr/old, p)
	}
	center(dst)
}

// lanczosSteps bounds the steps of the Lanczos method. If it is reached, the result is a lower
// bound with some digits right.
const lanczosSteps = 400

// lanczos returns the largest eigenvalue of a symmetric positive operator on the vectors of sum
// zero, to a relative accuracy of 1e-8. It keeps all basis vectors and reorthogonalises them.
func (g *Graph) lanczos(apply func(dst, x []float64)) float64 {
	s := rng.New(0, "lanczos")
	q := make([]float64, g.N)
	for i := range q {
		q[i] = s.Norm()
	}
	center(q)
	floats.Scale(1/math.Sqrt(floats.Dot(q, q)), q)
	var basis [][]float64
	var diagonal, offDiagonal []float64
	for {
		basis = append(basis, q)
		w := make([]float64, g.N)
		apply(w, q)
		diagonal = append(diagonal, floats.Dot(w, q))
		for range 2 { // the second pass removes the rounding errors of the first
			for _, v := range basis {
				floats.AddScaled(w, -floats.Dot(w, v), v)
			}
		}
		center(w)
		next := math.Sqrt(floats.Dot(w, w))
		offDiagonal = append(offDiagonal, next)
		k := len(basis)
		if k%8 == 0 || k >= g.N-1 || k >= lanczosSteps || next < 1e-10*diagonal[0] {
			top, away := tridiagonal(diagonal, offDiagonal)
			if away <= 1e-8*top || k >= min(g.N-1, lanczosSteps) {
				return top
			}
		}
		floats.Scale(1/next, w)
		q = w
	}
}

// tridiagonal returns the largest eigenvalue of the tridiagonal matrix of the Lanczos method, and a
// bound on its distance from an eigenvalue of the operator.
func tridiagonal(diagonal, offDiagonal []float64) (top, away float64) {
	k := len(diagonal)
	t := mat.NewSymDense(k, nil)
	for i, v := range diagonal {
		t.SetSym(i, i, v)
		if i > 0 {
			t.SetSym(i-1, i, offDiagonal[i-1])
		}
	}
	var eig mat.EigenSym
	if !eig.Factorize(t, true) {
		panic("dist: the eigenvalues of a finite symmetric matrix did not converge")
	}
	var vectors mat.Dense
	eig.VectorsTo(&vectors)
	return eig.Values(nil)[k-1], offDiagonal[k-1] * math.Abs(vectors.At(k-1, k-1))
}

// center subtracts the mean from x.
func center(x []float64) { floats.AddConst(-floats.Sum(x)/float64(len(x)), x) }
