package kernels

var _ = define("layer.cu",
	"bias y:p b:p mn:l n:i",
	"bias_sigmoid y:p b:p mn:l n:i",
	"bias_relu y:p b:p mn:l n:i",
	"sigmoid y:p x:p n:l",
	"sigmoid_grad dx:p y:p dy:p n:l",
	"relu y:p x:p n:l",
	"relu_grad dx:p y:p dy:p n:l",
	"tanh_forward y:p x:p n:l",
	"tanh_grad dx:p y:p dy:p n:l",
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
	TanhOf
)

// Bias adds b[j] to every element of column j of an m×n matrix in place, and applies the
// activation, with the bits of device.Linear and its fused variants. TanhOf takes two calls.
func Bias(y, b Address, m, n int, activation Activation) []Call {
	name := [...]string{"bias", "bias_sigmoid", "bias_relu", "bias"}[activation]
	calls := []Call{call(name, over(m*n), y, b, m*n, n)}
	if activation == TanhOf {
		calls = append(calls, Activate(y, y, m*n, activation))
	}
	return calls
}

// Activate applies an activation other than Identity to n numbers.
func Activate(y, x Address, n int, f Activation) Call {
	name := [...]string{SigmoidOf: "sigmoid", ReLUOf: "relu", TanhOf: "tanh_forward"}[f]
	return call(name, over(n), y, x, n)
}

// ActivateGrad computes the gradient of an activation other than Identity from its output y. dx may
// be dy.
func ActivateGrad(dx, y, dy Address, n int, f Activation) Call {
	name := [...]string{SigmoidOf: "sigmoid_grad", ReLUOf: "relu_grad", TanhOf: "tanh_grad"}[f]
	return call(name, over(n), dx, y, dy, n)
}

// ColumnSums sums the rows of an m×n matrix in float64, in order: the gradient of a bias.
func ColumnSums(dst, a Address, m, n int) Call {
	return call("column_sums", blocks((n+31)/32*threads, threads), dst, a, m, n)
}

// BiasHalf is Bias for a 16-bit matrix and a float32 bias. It does not support TanhOf.
func BiasHalf(e Element, y, b Address, m, n int, activation Activation) Call {
	return call(e.name("activate"), over(m*n), y, y, b, m*n, n, halfActivation(activation))
}

// ActivateHalf is Activate for 16-bit numbers. It does not support TanhOf.
func ActivateHalf(e Element, y, x Address, n int, f Activation) Call {
	return call(e.name("activate"), over(n), y, x, Address(0), n, 1, halfActivation(f))
}

// ActivateGradHalf is ActivateGrad for 16-bit numbers. It does not support TanhOf.
func ActivateGradHalf(e Element, dx, y, dy Address, n int, f Activation) Call {
	return call(e.name("activate_grad"), over(n), dx, y, dy, n, halfActivation(f))
}

func halfActivation(f Activation) int {
	if f == TanhOf {
		panic("kernels: tanh is not supported in 16 bits")
	}
	return int(f)
}

// WeightedSum computes y = p·a + q·b for n 16-bit numbers, in float32. b may be 0 for none; y may
// be a or b.
func WeightedSum(e Element, y, a, b Address, p, q float32, n int) Call {
	return call(e.name("weighted_sum"), over(n), y, a, b, p, q, n)
}

// ColumnSumsHalf is ColumnSums for a 16-bit matrix.
func ColumnSumsHalf(e Element, dst, a Address, m, n int) Call {
	return call(e.name("column_sums"), blocks((n+31)/32*threads, threads), dst, a, m, n)
}
