package onnx

import (
	"math"
	"slices"
	"testing"
)

// run evaluates a decoded file by the definitions of ONNX's operators, in plain loops over N×C×H×W
// and float64. It uses only the contents of the file.
func (d decoded) run(t *testing.T, input array) array {
	t.Helper()
	values := map[string]array{"input": input}
	at := func(name string) array {
		if a, ok := values[name]; ok {
			return a
		}
		a, ok := d.tensors[name]
		if !ok {
			t.Fatalf("value %q is not defined before its use", name)
		}
		return a
	}
	for _, n := range d.nodes {
		var in []array
		for _, name := range n.in {
			in = append(in, at(name))
		}
		f, ok := evaluators[n.operator]
		if !ok {
			f, ok = languageEvaluators[n.operator]
		}
		if !ok {
			t.Fatalf("operator %s", n.operator)
		}
		if _, twice := values[n.output]; twice {
			t.Fatalf("%s is computed twice", n.output)
		}
		values[n.output] = f(n, in)
	}
	return at("logits")
}

var evaluators = map[string]func(n decodedNode, in []array) array{
	"Gemm":               evaluateGemm,
	"Conv":               evaluateConv,
	"MaxPool":            evaluateMaxPool,
	"BatchNormalization": evaluateNorm,
	"Sigmoid": func(_ decodedNode, in []array) array {
		return each(in[0], func(v float64) float64 { return 1 / (1 + math.Exp(-v)) })
	},
	"Relu": func(_ decodedNode, in []array) array {
		return each(in[0], func(v float64) float64 { return max(v, 0) })
	},
	"GlobalAveragePool": func(_ decodedNode, in []array) array {
		x := in[0]
		y := array{shape: []int{x.shape[0], x.shape[1], 1, 1}}
		for image := range slices.Chunk(x.values, x.shape[2]*x.shape[3]) {
			sum := 0.0
			for _, v := range image {
				sum += float64(v)
			}
			y.values = append(y.values, float32(sum/float64(len(image))))
		}
		return y
	},
	"Flatten": func(n decodedNode, in []array) array {
		axis := n.ints["axis"][0]
		return array{[]int{volume(in[0].shape[:axis]), volume(in[0].shape[axis:])}, in[0].values}
	},
}

func each(x array, f func(float64) float64) array {
	y := array{x.shape, make([]float32, len(x.values))}
	for i, v := range x.values {
		y.values[i] = float32(f(float64(v)))
	}
	return y
}

func evaluateGemm(n decodedNode, in []array) array {
	x, w, b := in[0], in[1], in[2]
	rows, inputs, outputs := x.shape[0], x.shape[1], w.shape[0]
	across, along := inputs, 1
	if !slices.Equal(n.ints["transB"], []int{1}) {
		outputs, across, along = w.shape[1], 1, w.shape[1]
	}
	y := array{shape: []int{rows, outputs}}
	for r := range rows {
		for o := range outputs {
			sum := float64(b.values[o])
			for i := range inputs {
				sum += float64(x.values[r*inputs+i]) * float64(w.values[o*across+i*along])
			}
			y.values = append(y.values, float32(sum))
		}
	}
	return y
}

// windows calls visit for every element of every window: the output that it belongs to, its row and
// column in the image, which may be outside, and its index in the window.
func windows(n decodedNode, h, w int, visit func(out, row, column, place int)) (p, q int) {
	k, s, pad := n.ints["kernel_shape"], n.ints["strides"], n.ints["pads"]
	p, q = (h+pad[0]+pad[2]-k[0])/s[0]+1, (w+pad[1]+pad[3]-k[1])/s[1]+1
	for out := range p * q {
		for place := range k[0] * k[1] {
			visit(out, out/q*s[0]-pad[0]+place/k[1], out%q*s[1]-pad[1]+place%k[1], place)
		}
	}
	return p, q
}

func evaluateConv(n decodedNode, in []array) array {
	x, filter := in[0], in[1]
	c, h, w := x.shape[1], x.shape[2], x.shape[3]
	outputs, side := filter.shape[0], volume(filter.shape[2:])
	y := array{shape: []int{x.shape[0], outputs, 0, 0}}
	for image := range x.shape[0] {
		for o := range outputs {
			sums := map[int]float64{}
			y.shape[2], y.shape[3] = windows(n, h, w, func(out, row, column, place int) {
				if row < 0 || row >= h || column < 0 || column >= w {
					return
				}
				for i := range c {
					sums[out] += float64(x.values[((image*c+i)*h+row)*w+column]) * float64(
						filter.values[(o*c+i)*side+place])
				}
			})
			for out := range y.shape[2] * y.shape[3] {
				y.values = append(y.values, float32(sums[out]))
			}
		}
	}
	return y
}

func evaluateMaxPool(n decodedNode, in []array) array {
	x := in[0]
	h, w := x.shape[2], x.shape[3]
	y := array{shape: []int{x.shape[0], x.shape[1], 0, 0}}
	for image := range slices.Chunk(x.values, h*w) {
		most := map[int]float32{}
		y.shape[2], y.shape[3] = windows(n, h, w, func(out, row, column, _ int) {
			if row < 0 || row >= h || column < 0 || column >= w {
				return
			}
			if m, ok := most[out]; !ok || image[row*w+column] > m {
				most[out] = image[row*w+column]
			}
		})
		for out := range y.shape[2] * y.shape[3] {
			y.values = append(y.values, most[out])
		}
	}
	return y
}

func evaluateNorm(n decodedNode, in []array) array {
	x, scale, shift, mean, variance := in[0], in[1].values, in[2].values, in[3].values, in[4].values
	y := array{x.shape, make([]float32, len(x.values))}
	pixels, channels := volume(x.shape[2:]), x.shape[1]
	for i, v := range x.values {
		c := i / pixels % channels
		y.values[i] = float32((float64(v)-float64(mean[c]))/math.Sqrt(
			float64(variance[c])+float64(n.floats["epsilon"]))*float64(scale[c]) + float64(shift[c]))
	}
	return y
}
