package devicetest

import (
	"math"
	"testing"

	"fspda/device"
)

// The matrices of Winograd's minimal filtering F(4, 3): of inputs, filters and outputs (Lavin and
// Gray, 2016, section 4.3).
var (
	winogradIn = [6][6]float32{{4, 0, -5, 0, 1, 0}, {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
		{0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}}
	winogradFilter = [6][3]float32{{1. / 4, 0, 0}, {-1. / 6, -1. / 6, -1. / 6}, {-1. / 6, 1. / 6, -1. / 6},
		{1. / 24, 1. / 12, 1. / 6}, {1. / 24, -1. / 12, 1. / 6}, {0, 0, 1}}
	winogradOut = [4][6]float32{{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}
)

// sandwich returns m·v·mᵀ in float32, of matrices of r×n, n×n.
func sandwich[R ~[]float32](m []R, v [][]float32) [][]float32 {
	times := func(v [][]float32) [][]float32 { // (m·v)ᵀ
		out := make([][]float32, len(v[0]))
		for j := range out {
			out[j] = make([]float32, len(m))
			for i := range m {
				for k := range v {
					out[j][i] += float32(m[i][k] * v[k][j])
				}
			}
		}
		return out
	}
	return times(times(v))
}

// rowsOf returns the rows of a matrix.
func rowsOf(r, c int, at func(i, j int) float32) [][]float32 {
	all := make([][]float32, r)
	for i := range all {
		all[i] = make([]float32, c)
		for j := range all[i] {
			all[i][j] = at(i, j)
		}
	}
	return all
}

// winograd computes a 3×3 convolution of stride 1 and padding 1.
func winograd(dims []int, x, w []float32) []float32 {
	n, height, width, ch, filters := dims[0], dims[1], dims[2], dims[3], dims[4]
	y := make([]float32, n*height*width*filters)
	in := rowsOf(6, 6, func(i, j int) float32 { return winogradIn[i][j] })
	filter := rowsOf(6, 3, func(i, j int) float32 { return winogradFilter[i][j] })
	back := rowsOf(4, 6, func(i, j int) float32 { return winogradOut[i][j] })
	for at := range n * ((height + 3) / 4) * ((width + 3) / 4) * filters {
		k, left := at%filters, at/filters%((width+3)/4)*4
		top, image := at/filters/((width+3)/4)%((height+3)/4)*4, at/filters/((width+3)/4)/((height+3)/4)
		sum := rowsOf(6, 6, func(int, int) float32 { return 0 })
		for c := range ch {
			tile := sandwich(in, rowsOf(6, 6, func(i, j int) float32 {
				if i += top - 1; i < 0 || i >= height {
					return 0
				}
				if j += left - 1; j < 0 || j >= width {
					return 0
				}
				return x[((image*height+i)*width+j)*ch+c]
			}))
			g := sandwich(filter, rowsOf(3, 3, func(i, j int) float32 { return w[((k*3+i)*3+j)*ch+c] }))
			for i := range sum {
				for j := range sum[i] {
					sum[i][j] += float32(tile[i][j] * g[i][j])
				}
			}
		}
		for i, row := range sandwich(back, sum) {
			for j, v := range row {
				if top+i < height && left+j < width {
					y[((image*height+top+i)*width+left+j)*filters+k] = v
				}
			}
		}
	}
	return y
}

// A convolution by Winograd's method, which a library may choose, is within the bounds of devices
// that choose, and not always within those of plain sums. The bounds still find an error of a
// thousandth.
func TestTransformedConvolutions(t *testing.T) {
	beyond := false
	for _, dims := range [][]int{{2, 9, 7, 1, 3, 3, 3, 1, 1}, {1, 8, 8, 16, 4, 3, 3, 1, 1},
		{1, 4, 5, 64, 2, 3, 3, 1, 1}} {
		c := &device.Call{Kernel: device.Conv, Dims: dims}
		in := kernelInputs(c)
		want, limit := evaluate(c, in)
		got := winograd(dims, in[0], in[1])
		for i, v := range got {
			beyond = beyond || math.Abs(float64(v)-want[0][i]) > limit[0][i]
		}
		transformed(limit)
		within(t, "by Winograd", [][]float32{got}, want, limit)
		largest := 0.0
		for _, v := range want[0] {
			largest = max(largest, math.Abs(v))
		}
		if limit[0][0] > largest/1000 {
			t.Errorf("%v: the bound is %v of results up to %v", dims, limit[0][0], largest)
		}
	}
	if !beyond {
		t.Error("Winograd's method keeps the bounds of plain sums: the wider ones are not needed")
	}
}
