package onnx

import (
	"math"
	"slices"
	"testing"

	"fspda/cpu"
	"fspda/internal/rng"
	"fspda/model"
)

// languageNetworks are small language models with every kind of layer, one for windows shorter than
// its block.
func languageNetworks(t *testing.T) map[string]*model.Network {
	t.Helper()
	nets := map[string]*model.Network{}
	sizes := model.Transformer{Layers: 2, Heads: 2, Width: 12, Block: 7}
	erf := sizes
	erf.GELU, erf.NoBias = "erf", true
	for what, c := range map[string]struct {
		name  string
		sizes model.Transformer
		shape []int
	}{"gpt": {"gpt-nano", sizes, nil}, "erf without biases": {"gpt-nano", erf, nil},
		"short": {"gpt-nano", sizes, []int{5}}, "llama": {"llama-nano", sizes, nil}} {
		net, err := model.Open(c.name, model.Options{Classes: 11, Shape: c.shape, Transformer: c.sizes})
		if err != nil {
			t.Fatal(err)
		}
		nets[what] = net
	}
	return nets
}

// The file of a language model, evaluated by the definitions of its operators, predicts what
// follows each token as the network does.
func TestWriteLanguageModels(t *testing.T) {
	for what, net := range languageNetworks(t) {
		x, _ := weightsOf(net)
		d := decodeModel(t, write(t, net, x, nil))
		length, vocabulary := net.Inputs(), net.Classes()
		if !slices.Equal(d.input, []any{"batch", length}) ||
			!slices.Equal(d.output, []any{"batch", length, vocabulary}) {
			t.Errorf("%s: ends %v and %v", what, d.input, d.output)
		}
		const batch = 2
		s, tokens := rng.New(2, "onnx"), make([]uint16, batch*length)
		in := array{shape: []int{batch, length}}
		for i := range tokens {
			tokens[i] = uint16(s.IntN(vocabulary))
			in.values = append(in.values, float32(tokens[i]))
		}
		got := d.run(t, in)
		if !slices.Equal(got.shape, []int{batch, length, vocabulary}) {
			t.Fatalf("%s: logits of shape %v", what, got.shape)
		}
		dev := cpu.New()
		v := dev.NewVector(len(x))
		dev.Write(v, x)
		engine, want, far, largest := model.NewEngine(net, dev), make([]float64, vocabulary), 0.0, 0.0
		for i := range tokens {
			if err := engine.Next(want, v, tokens[i/length*length:i+1]); err != nil {
				t.Fatal(err)
			}
			for c, w := range want {
				far = math.Max(far, math.Abs(float64(got.values[i*vocabulary+c])-w))
				largest = math.Max(largest, math.Abs(w))
			}
		}
		if !(far <= 1e-5*largest) || largest < 1e-2 {
			t.Errorf("%s: the file's logits differ by up to %g, of %g", what, far, largest)
		}
		for _, w := range net.Layout().Tensors() {
			if got := d.tensors[w.Name]; !slices.Equal(got.shape, w.Shape) {
				t.Errorf("%s: tensor %s has the shape %v, want %v", what, w.Name, got.shape, w.Shape)
			}
		}
		_ = dev.Close()
	}
}

var languageEvaluators = map[string]func(n decodedNode, in []array) array{
	"Add":      broadcast(func(a, b float64) float64 { return a + b }),
	"Sub":      broadcast(func(a, b float64) float64 { return a - b }),
	"Mul":      broadcast(func(a, b float64) float64 { return a * b }),
	"Div":      broadcast(func(a, b float64) float64 { return a / b }),
	"Sqrt":     func(_ decodedNode, in []array) array { return each(in[0], math.Sqrt) },
	"Erf":      func(_ decodedNode, in []array) array { return each(in[0], math.Erf) },
	"Constant": evaluateConstant,
	"Reshape": func(_ decodedNode, in []array) array {
		y := array{values: in[0].values}
		for i, v := range in[1].values {
			if v == 0 {
				v = float32(in[0].shape[i])
			}
			y.shape = append(y.shape, int(v))
		}
		return y
	},
	"Expand": func(_ decodedNode, in []array) array {
		y := array{shape: integers(in[1])}
		y.values = slices.Repeat(in[0].values, volume(y.shape))
		return y
	},
	"Trilu": func(_ decodedNode, in []array) array {
		y := array{in[0].shape, slices.Clone(in[0].values)}
		for i := range y.values {
			if row, column := i/y.shape[1], i%y.shape[1]; column < row+int(in[1].values[0]) {
				y.values[i] = 0
			}
		}
		return y
	},
	"Slice": func(_ decodedNode, in []array) array { // of the first axis
		width := volume(in[0].shape[1:])
		from, to := int(in[1].values[0]), int(in[2].values[0])
		return array{append([]int{to - from}, in[0].shape[1:]...), in[0].values[from*width : to*width]}
	},
	"Gather": func(n decodedNode, in []array) array {
		axis := append(n.ints["axis"], 0)[0]
		shape := in[0].shape
		inner := volume(shape[axis+1:])
		y := array{shape: slices.Concat(shape[:axis], in[1].shape, shape[axis+1:])}
		for o := range volume(shape[:axis]) {
			for _, i := range integers(in[1]) {
				y.values = append(y.values, in[0].values[(o*shape[axis]+i)*inner:][:inner]...)
			}
		}
		return y
	},
	"Transpose": func(n decodedNode, in []array) array {
		y := array{}
		for _, axis := range n.ints["perm"] {
			y.shape = append(y.shape, in[0].shape[axis])
		}
		for i := range in[0].values {
			at := make([]int, len(y.shape))
			for k, place := range places(i, y.shape) {
				at[n.ints["perm"][k]] = place
			}
			y.values = append(y.values, in[0].values[index(at, in[0].shape)])
		}
		return y
	},
	"MatMul": func(_ decodedNode, in []array) array {
		a, b := in[0], in[1]
		rows, depth, cols := a.shape[len(a.shape)-2], a.shape[len(a.shape)-1], b.shape[len(b.shape)-1]
		y := array{shape: append(slices.Clone(a.shape[:len(a.shape)-1]), cols)}
		for i := range volume(y.shape) {
			matrix, row, column := i/(rows*cols), i/cols%rows, i%cols
			matrixB, sum := matrix%volume(b.shape[:len(b.shape)-2]), 0.0
			for k := range depth {
				sum += float64(a.values[(matrix*rows+row)*depth+k]) * float64(b.values[(matrixB*depth+k)*cols+column])
			}
			y.values = append(y.values, float32(sum))
		}
		return y
	},
	"Softmax": rowwise(func(_ decodedNode, row []float64, _ []array) {
		top, sum := slices.Max(row), 0.0
		for j := range row {
			row[j] = math.Exp(row[j] - top)
			sum += row[j]
		}
		for j := range row {
			row[j] /= sum
		}
	}),
	"LayerNormalization": rowwise(func(n decodedNode, row []float64, in []array) {
		mean, square := 0.0, 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for _, v := range row {
			square += (v - mean) * (v - mean) / float64(len(row))
		}
		for j := range row {
			row[j] = (row[j] - mean) / math.Sqrt(square+float64(n.floats["epsilon"])) * float64(in[1].values[j])
			if len(in) > 2 {
				row[j] += float64(in[2].values[j])
			}
		}
	}),
	"ReduceMean": func(_ decodedNode, in []array) array {
		last := len(in[0].shape) - 1
		y := array{shape: append(slices.Clone(in[0].shape[:last]), 1)}
		for row := range slices.Chunk(in[0].values, in[0].shape[last]) {
			sum := 0.0
			for _, v := range row {
				sum += float64(v)
			}
			y.values = append(y.values, float32(sum/float64(len(row))))
		}
		return y
	},
	"Concat": func(_ decodedNode, in []array) array { // of two along the last axis
		last := len(in[0].shape) - 1
		n := in[0].shape[last]
		y := array{shape: append(slices.Clone(in[0].shape[:last]), 2*n)}
		for i := 0; i < len(in[0].values); i += n {
			y.values = append(append(y.values, in[0].values[i:i+n]...), in[1].values[i:i+n]...)
		}
		return y
	},
}

func evaluateConstant(n decodedNode, _ []array) array {
	var y array
	if v, ok := n.ints["value_int"]; ok {
		y.values = []float32{float32(v[0])}
	}
	for _, v := range n.ints["value_ints"] {
		y.values = append(y.values, float32(v))
		y.shape = []int{len(y.values)}
	}
	if v, ok := n.floats["value_float"]; ok {
		y.values = []float32{v}
	}
	if v, ok := n.lists["value_floats"]; ok {
		y = array{[]int{len(v)}, v}
	}
	return y
}

func integers(a array) (v []int) {
	for _, f := range a.values {
		v = append(v, int(f))
	}
	return v
}

// places returns the index along each axis of element i, and index the element of such indices.
func places(i int, shape []int) []int {
	at := make([]int, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		at[k], i = i%shape[k], i/shape[k]
	}
	return at
}

func index(at, shape []int) (i int) {
	for k, n := range shape {
		i = i*n + at[k]
	}
	return i
}

// broadcast is an operator of two operands, of which one may have fewer or shorter axes.
func broadcast(f func(a, b float64) float64) func(n decodedNode, in []array) array {
	return func(_ decodedNode, in []array) array {
		axes := max(len(in[0].shape), len(in[1].shape))
		var shapes [2][]int
		for i, a := range in {
			shapes[i] = append(slices.Repeat([]int{1}, axes-len(a.shape)), a.shape...)
		}
		y := array{shape: make([]int, axes)}
		for k := range axes {
			y.shape[k] = max(shapes[0][k], shapes[1][k])
		}
		for i := range volume(y.shape) {
			var v [2]float64
			for side, shape := range shapes {
				at := places(i, y.shape)
				for k, n := range shape {
					at[k] %= n
				}
				v[side] = float64(in[side].values[index(at, shape)])
			}
			y.values = append(y.values, float32(f(v[0], v[1])))
		}
		return y
	}
}

// rowwise is an operator of the numbers along the last axis.
func rowwise(f func(n decodedNode, row []float64, in []array)) func(n decodedNode, in []array) array {
	return func(n decodedNode, in []array) array {
		y := array{shape: in[0].shape}
		for row := range slices.Chunk(in[0].values, y.shape[len(y.shape)-1]) {
			wide := make([]float64, len(row))
			for j, v := range row {
				wide[j] = float64(v)
			}
			f(n, wide, in)
			for _, v := range wide {
				y.values = append(y.values, float32(v))
			}
		}
		return y
	}
}
