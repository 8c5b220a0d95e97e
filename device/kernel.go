package device

// Kernel names a computation that every device implements. Shapes are in Dims, matrices are
// row-major, all operands are float32. Sums are accumulated in float64 and rounded once where a
// kernel says "sum".
type Kernel string

const (
	// Linear: In x[m×k] W[n×k] b[n], Out y[m×n], Dims m n k. y = x·Wᵀ + b.
	Linear Kernel = "linear"
	// LinearGradX: In dy[m×n] W[n×k], Out dx[m×k], Dims m n k. dx = dy·W.
	LinearGradX Kernel = "linear-grad-x"
	// LinearGradW: In x[m×k] dy[m×n], Out dW[n×k] db[n], Dims m n k. dW = dyᵀ·x, db = column sums
	// of dy.
	LinearGradW Kernel = "linear-grad-w"
	// Sigmoid: In x[n], Out y[n], Dims n. y = 1/(1+exp(-x)).
	Sigmoid Kernel = "sigmoid"
	// SigmoidGrad: In y[n] dy[n], Out dx[n], Dims n. dx = dy·y·(1-y).
	SigmoidGrad Kernel = "sigmoid-grad"
	// ReLU: In x[n], Out y[n], Dims n. y = max(x, 0); NaN stays NaN.
	ReLU Kernel = "relu"
	// ReLUGrad: In y[n] dy[n], Out dx[n], Dims n. dx = dy where y > 0, else 0.
	ReLUGrad Kernel = "relu-grad"
	// SoftmaxCrossEntropy: In logits[m×n] labels[m], Out loss[1] dlogits[m×n], Dims m n, Attr s
	// (label smoothing, 0 to 1). loss is the mean over the m rows of -Σ t·log softmax(logits), with
	// the target t = s/n, plus 1-s at the label. dlogits is its derivative.
	SoftmaxCrossEntropy Kernel = "softmax-cross-entropy"
	// Score: In logits[m×n] labels[m], Out sums[3], Dims m n. The sums over the rows of the cross
	// entropy, of top-1 hits (the label has the largest logit; the lower index wins ties) and of
	// top-5 hits. A row with a NaN is no hit.
	Score Kernel = "score"
	// HalfSquare: In x[n], Out s[1], Dims n, Attr a. s = a/2·Σx².
	HalfSquare Kernel = "half-square"
	// Scale: In x[n], Out y[n], Dims n, Attr a. y = a·x.
	Scale Kernel = "scale"
	// ScaleBy: In x[n] s[1], Out y[n], Dims n, Attr a. y = (a·s)·x.
	ScaleBy Kernel = "scale-by"
	// Add: In a[n] b[n], Out y[n], Dims n. y = a + b; y may be a or b.
	Add Kernel = "add"
	// AddScaled: In a[n] b[n], Out y[n], Dims n, Attr c. y = a + c·b, the product rounded first; y
	// may be a or b.
	AddScaled Kernel = "add-scaled"
	// MoveAverage: In x[n] avg[n] momentum[1], Out y[n], Dims n, Attr a. y = (1-momentum)·avg +
	// momentum·(a·x), rounded once at the end; y may be avg.
	MoveAverage Kernel = "move-average"
)

// Images are stored channels-last (NHWC): element (n,h,w,c) of x[n·h·w·c] is x[((n·H+h)·W+w)·C+c].
// A filter W[k·r·s·c] has its k outputs first and its channels last. The Dims of a window kernel
// are those of the input, then stride and pad. Its output has height p = ⌊(h+2·pad−r)/stride⌋+1 and
// width q likewise. Outside the input it reads zeros; a maximum ignores those positions.
const (
	// Conv: In x[n·h·w·c] W[k·r·s·c], Out y[n·p·q·k], Dims n h w c k r s stride pad. y = x ⋆ W, the
	// cross-correlation that networks call convolution.
	Conv Kernel = "conv"
	// ConvGradX: In dy[n·p·q·k] W[k·r·s·c], Out dx[n·h·w·c], Dims as Conv.
	ConvGradX Kernel = "conv-grad-x"
	// ConvGradW: In x[n·h·w·c] dy[n·p·q·k], Out dW[k·r·s·c], Dims as Conv.
	ConvGradW Kernel = "conv-grad-w"

	// BatchNorm: In x[m·c] gamma[c] beta[c], Out y[m·c] mean[c] var[c], Dims m c, Attr eps. Over
	// the m rows of each column: mean, var (biased, 1/m) and y = gamma·(x−mean)/sqrt(var+eps) +
	// beta.
	BatchNorm Kernel = "batch-norm"
	// BatchNormReLU is BatchNorm followed by y = max(y, 0).
	BatchNormReLU Kernel = "batch-norm-relu"
	// BatchNormAddReLU: In x[m·c] gamma[c] beta[c] z[m·c]. BatchNorm followed by y = max(y + z, 0).
	BatchNormAddReLU Kernel = "batch-norm-add-relu"
	// BatchNormGrad: In x[m·c] dy[m·c] gamma[c] mean[c] var[c], Out dx[m·c] dgamma[c] dbeta[c],
	// Dims m c, Attr eps.
	BatchNormGrad Kernel = "batch-norm-grad"
	// BatchNormReLUGrad: In x[m·c] y[m·c] dy[m·c] gamma[c] mean[c] var[c]. BatchNormGrad of dy
	// where y > 0, else of 0.
	BatchNormReLUGrad Kernel = "batch-norm-relu-grad"
	// BatchNormAddReLUGrad: In as BatchNormReLUGrad, Out dx[m·c] dz[m·c] dgamma[c] dbeta[c].
	// BatchNormReLUGrad, and dz = dy where y > 0, else 0.
	BatchNormAddReLUGrad Kernel = "batch-norm-add-relu-grad"
	// Normalize: In x[m·c] gamma[c] beta[c] mean[c] var[c], Out y[m·c], Dims m c, Attr eps.
	// BatchNorm with the given statistics.
	Normalize Kernel = "normalize"
	// NormalizeReLU is Normalize followed by y = max(y, 0).
	NormalizeReLU Kernel = "normalize-relu"
	// NormalizeAddReLU: In x[m·c] gamma[c] beta[c] mean[c] var[c] z[m·c]. Normalize followed by y =
	// max(y + z, 0).
	NormalizeAddReLU Kernel = "normalize-add-relu"

	// MaxPool: In x[n·h·w·c], Out y[n·p·q·c] at[n·p·q·c], Dims n h w c r stride pad, windows of
	// r×r. y is the maximum of the window and at its position in the window, row·r+column. The
	// first of equal maxima wins, and NaN wins over all numbers.
	MaxPool Kernel = "max-pool"
	// MaxPoolGrad: In dy[n·p·q·c] at[n·p·q·c], Out dx[n·h·w·c], Dims as MaxPool. Adds every dy to
	// the position of its maximum.
	MaxPoolGrad Kernel = "max-pool-grad"
	// AvgPool: In x[n·m·c], Out y[n·c], Dims n m c. y is the mean over the m pixels of an image:
	// their sum, times 1/m.
	AvgPool Kernel = "avg-pool"
	// AvgPoolGrad: In dy[n·c], Out dx[n·m·c], Dims n m c. dx = dy/m at every pixel.
	AvgPoolGrad Kernel = "avg-pool-grad"

	// LinearSigmoid is Linear followed by y = 1/(1+exp(-y)).
	LinearSigmoid Kernel = "linear-sigmoid"
	// LinearReLU is Linear followed by y = max(y, 0).
	LinearReLU Kernel = "linear-relu"
	// LinearGradXSigmoid: In dy[m×n] W[n×k] y[m×k], Out dx[m×k], Dims m n k. dx = (dy·W)·y·(1-y).
	LinearGradXSigmoid Kernel = "linear-grad-x-sigmoid"
	// LinearGradXReLU: In dy[m×n] W[n×k] y[m×k], Out dx[m×k], Dims m n k. dx = dy·W where y > 0,
	// else 0.
	LinearGradXReLU Kernel = "linear-grad-x-relu"
	// LinearGradWDecay: In x[m×k] dy[m×n] W[n×k], Out dW[n×k] db[n], Dims m n k, Attr c. dW = dyᵀ·x
	// + c·W, the product with c rounded first, db as in LinearGradW.
	LinearGradWDecay Kernel = "linear-grad-w-decay"
)

// Kernels lists every Kernel.
func Kernels() []Kernel {
	return []Kernel{Linear, LinearGradX, LinearGradW, Sigmoid, SigmoidGrad, ReLU, ReLUGrad, SoftmaxCrossEntropy,
		Score, HalfSquare, Scale, ScaleBy, Add, AddScaled, MoveAverage, LinearSigmoid, LinearReLU, LinearGradXSigmoid,
		LinearGradXReLU, LinearGradWDecay, Conv, ConvGradX, ConvGradW, BatchNorm, BatchNormReLU, BatchNormAddReLU,
		BatchNormGrad, BatchNormReLUGrad, BatchNormAddReLUGrad, Normalize, NormalizeReLU, NormalizeAddReLU, MaxPool,
		MaxPoolGrad, AvgPool, AvgPoolGrad}
}
