package kernels

var _ = define("layer.cu",
	"bias y:p b:p mn:l n:i",
	"bias_sigmoid y:p b:p mn:l n:i",
	"bias_relu y:p b:p mn:l n:i",
	"sigmoid y:p x:p n:l",
	"sigmoid_grad dx:p y:p dy:p n:l",
	"relu y:p x:p n:l",
	"relu_grad dx:p y:p dy:p n:l",
	"add_bias y:p x:p b:p mn:l n:i f:i",
	"column_sums dst:p a:p m:i n:i",
)

var _ = defineEach("layer.cu", halfElements,
	"activate_%s y:p x:p b:p mn:l n:i f:i",
	"activate_grad_%s dx:p y:p dy:p n:l f:i",
	"weighted_sum_%s y:p a:p b:p p:f q:f n:l",
	"column_sums_%s dst:p a:p m:i n:i",
)

// Activation is the function applied after the bias of a dense layer.
type Activation int

const (
	Identity Activation = iota
	SigmoidOf
	ReLUOf
)

// Bias adds b[j], float32, to every element of column j of an m×n matrix in place, and applies the
// activation, with the bits of device.Linear and its fused variants.
func Bias(e Element, y, b Address, m, n int, f Activation) Call {
	if e != F32 {
		return call(e.name("activate"), over(m*n), y, y, b, m*n, n, int(f))
	}
	return call([...]string{"bias", "bias_sigmoid", "bias_relu"}[f], over(m*n), y, b, m*n, n)
}

// ChannelBias is device.AddBias, with the activation ReLUOf device.AddBiasReLU. y may be x.
func ChannelBias(e Element, y, x, b Address, m, n int, f Activation) Call {
	name := "add_bias"
	if e != F32 {
		name = e.name("activate")
	}
	return call(name, over(m*n), y, x, b, m*n, n, int(f))
}

// Activate applies an activation other than Identity to n numbers.
func Activate(e Element, y, x Address, n int, f Activation) Call {
	if e != F32 {
		return call(e.name("activate"), over(n), y, x, Address(0), n, 1, int(f))
	}
	return call([...]string{SigmoidOf: "sigmoid", ReLUOf: "relu"}[f], over(n), y, x, n)
}

// ActivateGrad computes the gradient of an activation other than Identity from its output y. dx may
// be dy.
func ActivateGrad(e Element, dx, y, dy Address, n int, f Activation) Call {
	if e != F32 {
		return call(e.name("activate_grad"), over(n), dx, y, dy, n, int(f))
	}
	return call([...]string{SigmoidOf: "sigmoid_grad", ReLUOf: "relu_grad"}[f], over(n), dx, y, dy, n)
}

// ColumnSums writes the n column sums of an m×n matrix, as float32: the gradient of a bias.
func ColumnSums(e Element, dst, a Address, m, n int) Call {
	name := "column_sums"
	if e != F32 {
		name = e.name(name)
	}
	return call(name, blocks((n+31)/32*threads, threads), dst, a, m, n)
}

// WeightedSum computes y = p·a + q·b for n 16-bit numbers, in float32. b may be 0 for none; y may
// be a or b.
func WeightedSum(e Element, y, a, b Address, p, q float32, n int) Call {
	return call(e.name("weighted_sum"), over(n), y, a, b, p, q, n)
}
