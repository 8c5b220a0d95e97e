package dist

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func mustGraph(t testing.TB, spec string, n int) *Graph {
	t.Helper()
	g, err := ParseGraph(spec, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestNewGraphSortsAndMerges(t *testing.T) {
	g, err := NewGraph(4, []Edge{{3, 2}, {0, 1}, {1, 0}, {2, 1}, {2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Edge{{0, 1}, {1, 2}, {2, 3}}; !slices.Equal(g.Edges, want) {
		t.Errorf("edges %v, want %v", g.Edges, want)
	}
	if g.String() != "custom" || g.N != 4 || g.MaxDegree() != 2 || g.Degree(0) != 1 {
		t.Errorf("got %s, n %d, degrees %d and %d", g, g.N, g.MaxDegree(), g.Degree(0))
	}
}

func TestNewGraphErrors(t *testing.T) {
	for _, c := range []struct {
		n     int
		edges []Edge
		want  string
	}{
		{0, nil, "at least 1"},
		{3, []Edge{{1, 1}}, "joins agent 1 to itself"},
		{3, []Edge{{0, 3}}, "the agents are 0 to 2"},
		{3, []Edge{{-1, 0}}, "names agent -1"},
		{5, []Edge{{0, 3}, {1, 4}}, "3 connected components: {0 3} {1 4} {2}"},
		{40, nil, "40 connected components"},
	} {
		if _, err := NewGraph(c.n, c.edges); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewGraph(%d, %v): error %v, want one with %q", c.n, c.edges, err, c.want)
		}
	}
}

// Neighbours, Incident and EdgeIndex agree with the list of edges for all pairs.
func TestAdjacencyAgrees(t *testing.T) {
	for _, spec := range []string{"er10-published", "exponential", "star", "torus"} {
		g := mustGraph(t, spec, 10)
		for i := -1; i <= g.N; i++ {
			for j := -1; j <= g.N; j++ {
				want := slices.Index(g.Edges, Edge{min(i, j), max(i, j)})
				k, ok := g.EdgeIndex(i, j)
				if ok != (want >= 0) || ok && k != want {
					t.Fatalf("%s: EdgeIndex(%d,%d) = %d, %v; the list has it at %d", g, i, j, k, ok, want)
				}
				if i < 0 || i >= g.N {
					continue
				}
				at := slices.Index(g.Neighbours(i), j)
				if (at >= 0) != ok || ok && g.Incident(i)[at] != want {
					t.Fatalf("%s: neighbours %v of %d by edges %v; %d should be among them by edge %d", g,
						g.Neighbours(i), i, g.Incident(i), j, want)
				}
			}
		}
		for i := range g.N {
			if !slices.IsSorted(g.Neighbours(i)) || g.Degree(i) != len(g.Neighbours(i)) {
				t.Errorf("%s: neighbours %v of %d, degree %d", g, g.Neighbours(i), i, g.Degree(i))
			}
		}
	}
}

func TestLaplacianRowsSumToZero(t *testing.T) {
	g := mustGraph(t, "er10-published", 10)
	l := g.Laplacian()
	for i := range g.N {
		sum := 0.0
		for j := range g.N {
			sum += l.At(i, j)
		}
		if sum != 0 || l.At(i, i) != float64(g.Degree(i)) {
			t.Errorf("row %d sums to %v, diagonal %v", i, sum, l.At(i, i))
		}
	}
}

func TestPublishedGraph(t *testing.T) {
	g := mustGraph(t, "er10-published", 10)
	degrees := []int{2, 4, 2, 3, 4, 2, 3, 4, 3, 5}
	for i, want := range degrees {
		if g.Degree(i) != want {
			t.Errorf("degree of %d is %d, want %d", i, g.Degree(i), want)
		}
	}
	want := []float64{0, 0.6958, 1.3623, 2.4918, 2.7046, 3.3753, 4.4012, 4.7516, 5.8230, 6.3943}
	for k, v := range g.Spectrum() {
		if math.Abs(v-want[k]) > 1e-4 {
			t.Errorf("eigenvalue %d is %.5f, want %.4f", k, v, want[k])
		}
	}
	if len(g.Edges) != 16 {
		t.Errorf("%d edges, want 16", len(g.Edges))
	}
}
