package device

// Kernel names a computation that every device must know. Shapes are in Dims, matrices are row-major, all operands are float32.
// Reductions named "sum" are accumulated in float64 before they are rounded.
type Kernel string

const (
	// Linear: In x[m×k] W[n×k] b[n], Out y[m×n], Dims m n k. y = x·Wᵀ + b.
	Linear Kernel = "linear"
	// LinearGradX: In dy[m×n] W[n×k], Out dx[m×k], Dims m n k. dx = dy·W.
	LinearGradX Kernel = "linear-grad-x"
	// LinearGradW: In x[m×k] dy[m×n], Out dW[n×k] db[n], Dims m n k. dW = dyᵀ·x, db = column sums of dy.
	LinearGradW Kernel = "linear-grad-w"
	// Sigmoid: In x[n], Out y[n], Dims n. y = 1/(1+exp(-x)).
	Sigmoid Kernel = "sigmoid"
	// SigmoidGrad: In y[n] dy[n], Out dx[n], Dims n. dx = dy·y·(1-y).
	SigmoidGrad Kernel = "sigmoid-grad"
	// ReLU: In x[n], Out y[n], Dims n. y = max(x, 0); NaN stays NaN.
	ReLU Kernel = "relu"
	// ReLUGrad: In y[n] dy[n], Out dx[n], Dims n. dx = dy where y > 0, else 0.
	ReLUGrad Kernel = "relu-grad"
	// SoftmaxCrossEntropy: In logits[m×n] labels[m], Out loss[1] dlogits[m×n], Dims m n. loss is the mean over the m rows of
	// -log softmax(logits)[label]; dlogits its derivative.
	SoftmaxCrossEntropy Kernel = "softmax-cross-entropy"
	// Score: In logits[m×n] labels[m], Out sums[3], Dims m n. Sums over the rows of the cross entropy, of hits (label is the largest
	// logit, ties by lower index) and of top-5 hits. A row with a NaN is no hit.
	Score Kernel = "score"
	// HalfSquare: In x[n], Out s[1], Dims n, Attr a. s = a/2·Σx².
	HalfSquare Kernel = "half-square"
	// Scale: In x[n], Out y[n], Dims n, Attr a. y = a·x.
	Scale Kernel = "scale"
	// ScaleBy: In x[n] s[1], Out y[n], Dims n, Attr a. y = (a·s)·x.
	ScaleBy Kernel = "scale-by"
	// Add: In a[n] b[n], Out y[n], Dims n. y = a + b; y may be a or b.
	Add Kernel = "add"
	// AddScaled: In a[n] b[n], Out y[n], Dims n, Attr c. y = a + c·b, the product rounded first; y may be a or b.
	AddScaled Kernel = "add-scaled"
)

// Kernels lists every Kernel.
func Kernels() []Kernel {
	return []Kernel{Linear, LinearGradX, LinearGradW, Sigmoid, SigmoidGrad, ReLU, ReLUGrad, SoftmaxCrossEntropy, Score,
		HalfSquare, Scale, ScaleBy, Add, AddScaled}
}
