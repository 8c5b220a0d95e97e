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

// Activation is what follows the bias of a dense layer.
type Activation int

const (
	Identity Activation = iota
	SigmoidOf
	ReLUOf
	TanhOf
)

// Bias adds b[j] to every column of an m×n matrix in place, and applies the activation, with the bits of device.Linear and its fused kin.
// TanhOf is two calls.
func Bias(y, b Address, m, n int, then Activation) []Call {
	name := [...]string{"bias", "bias_sigmoid", "bias_relu", "bias"}[then]
	calls := []Call{call(name, over(m*n), y, b, m*n, n)}
	if then == TanhOf {
		calls = append(calls, Activate(y, y, m*n, then))
	}
	return calls
}

// Activate applies an activation, which is not Identity, to n numbers.
func Activate(y, x Address, n int, f Activation) Call {
	name := [...]string{SigmoidOf: "sigmoid", ReLUOf: "relu", TanhOf: "tanh_forward"}[f]
	return call(name, over(n), y, x, n)
}

// ActivateGrad is the gradient of an activation, which is not Identity, by its output y. dx may be dy.
func ActivateGrad(dx, y, dy Address, n int, f Activation) Call {
	name := [...]string{SigmoidOf: "sigmoid_grad", ReLUOf: "relu_grad", TanhOf: "tanh_grad"}[f]
	return call(name, over(n), dx, y, dy, n)
}

// ColumnSums adds up the rows of an m×n matrix in float64, from the first to the last: the gradient of a bias.
func ColumnSums(dst, a Address, m, n int) Call {
	return call("column_sums", blocks((n+31)/32*threads, threads), dst, a, m, n)
}
