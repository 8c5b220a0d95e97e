package device

import "errors"

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
	// SoftmaxCrossEntropyMixed: In logits[m×n] labels[m×3], Out loss[1] dlogits[m×n], Dims m n, Attr s.
	// A row of labels is a class, a second class, and the weight w of the first. Label smoothing
	// puts 1-s at the label: here w·(1-s) at the first class and (1-w)·(1-s) at the second. Where w is
	// 1, the bits are those of SoftmaxCrossEntropy.
	SoftmaxCrossEntropyMixed Kernel = "softmax-cross-entropy-mixed"
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
	// Dropout: In x[n] key[4], Out y[n], Dims n l, Attr p (0 to below 1). With the key 0, y = x.
	// Else y = x·1/(1−p), the factor rounded first, for the numbers that are kept, and 0 for the
	// others, also of NaN. The key is Σ key[k]·2^(16k) for whole numbers below 2^16. Its random stream,
	// divided by l with Stream.Sub of fspda/internal/rng, has 32 bits for each number: bits 0 to 31 of
	// Uint64 j for number 2j, bits 32 to 63 for number 2j+1. A number is kept if its bits, as an
	// integer, are at least ⌊p·2^32⌋. l, from 1 on, tells the layers of a network apart.
	Dropout Kernel = "dropout"
	// MoveAverage: In x[n] avg[n] momentum[1], Out y[n], Dims n, Attr a. y = (1-momentum)·avg +
	// momentum·(a·x), rounded once at the end; y may be avg.
	MoveAverage Kernel = "move-average"
)

// Images are stored channels-last (NHWC): element (n,h,w,c) of x[n·h·w·c] is x[((n·H+h)·W+w)·C+c].
// A filter W[k·r·s·c] has its k outputs first and its channels last. The Dims of a window kernel
// are the input's, then stride and pad. Its output has height p = ⌊(h+2·pad−r)/stride⌋+1 and
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

	// AddBias: In x[m·c] b[c], Out y[m·c], Dims m c. y = x + b in each row.
	AddBias Kernel = "add-bias"
	// AddBiasReLU is AddBias followed by y = max(y, 0).
	AddBiasReLU Kernel = "add-bias-relu"
	// AddBiasGrad: In dy[m·c], Out db[c], Dims m c. The sums of the columns.
	AddBiasGrad Kernel = "add-bias-grad"
	// AddBiasReLUGrad: In y[m·c] dy[m·c], Out dx[m·c] db[c], Dims m c. dx = dy where y > 0, else 0, and
	// AddBiasGrad of dx.
	AddBiasReLUGrad Kernel = "add-bias-relu-grad"

	// GroupNorm: In x[n·m·c] gamma[c] beta[c], Out y[n·m·c] mean[n·g] var[n·g], Dims n m c g, Attr eps.
	// The c channels are g groups of c/g neighbours. Over the m pixels and the channels of each group
	// of each of the n images: mean, var (biased) and y = gamma·(x−mean)/sqrt(var+eps) + beta.
	GroupNorm Kernel = "group-norm"
	// GroupNormReLU is GroupNorm followed by y = max(y, 0).
	GroupNormReLU Kernel = "group-norm-relu"
	// GroupNormAddReLU: In x[n·m·c] gamma[c] beta[c] z[n·m·c]. GroupNorm followed by y = max(y + z, 0).
	GroupNormAddReLU Kernel = "group-norm-add-relu"
	// GroupNormGrad: In x[n·m·c] dy[n·m·c] gamma[c] mean[n·g] var[n·g], Out dx[n·m·c] dgamma[c]
	// dbeta[c], Dims n m c g, Attr eps.
	GroupNormGrad Kernel = "group-norm-grad"
	// GroupNormReLUGrad: In x[n·m·c] y[n·m·c] dy[n·m·c] gamma[c] mean[n·g] var[n·g]. GroupNormGrad of
	// dy where y > 0, else of 0.
	GroupNormReLUGrad Kernel = "group-norm-relu-grad"
	// GroupNormAddReLUGrad: In as GroupNormReLUGrad, Out dx[n·m·c] dz[n·m·c] dgamma[c] dbeta[c].
	// GroupNormReLUGrad, and dz = dy where y > 0, else 0.
	GroupNormAddReLUGrad Kernel = "group-norm-add-relu-grad"
	// EvoNorm: In x[n·m·c] gamma[c] beta[c] v[c], Out y[n·m·c] mean[n·g] var[n·g], Dims n m c g, Attr
	// eps. With the statistics of GroupNorm, y = gamma·x·σ(v·x)/sqrt(var+eps) + beta, σ the sigmoid:
	// EvoNorm-S0.
	EvoNorm Kernel = "evo-norm"
	// EvoNormGrad: In x[n·m·c] dy[n·m·c] gamma[c] v[c] mean[n·g] var[n·g], Out dx[n·m·c] dgamma[c]
	// dbeta[c] dv[c], Dims n m c g, Attr eps.
	EvoNormGrad Kernel = "evo-norm-grad"

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

// Kernels of language models. A row belongs to a token: row b·T+i is token i of window b. Tokens
// are numbers, as labels are. C is the width of a row, H the number of heads, h = C/H the width of
// a head.
const (
	// Embed: In ids[m] tokens[v×c] positions[p×c], Out y[m×c], Dims m v c p T. Row r is tokens[ids r]
	// + positions[r mod T]; T is at most p.
	Embed Kernel = "embed"
	// EmbedGrad: In ids[m] dy[m×c], Out dtokens[v×c] dpositions[p×c], Dims as Embed. Each row of
	// dtokens is the sum of the rows of dy with that token, and of dpositions those at that position.
	EmbedGrad Kernel = "embed-grad"
	// EmbedGradAdd: In ids[m] dy[m×c] base[v×c], Out and Dims as EmbedGrad. base is added to dtokens
	// after that is rounded.
	EmbedGradAdd Kernel = "embed-grad-add"
	// TokenEmbed: In ids[m] tokens[v×c], Out y[m×c], Dims m v c. Embed without positions.
	TokenEmbed Kernel = "token-embed"
	// TokenEmbedGrad: In ids[m] dy[m×c], Out dtokens[v×c], Dims m v c.
	TokenEmbedGrad Kernel = "token-embed-grad"
	// TokenEmbedGradAdd: In ids[m] dy[m×c] base[v×c], Out dtokens[v×c], Dims m v c.
	TokenEmbedGradAdd Kernel = "token-embed-grad-add"
	// LastToken: In x[b·t×c], Out y[b×c], Dims b t c. The last row of each window.
	LastToken Kernel = "last-token"

	// Product: In x[m×k] W[n×k], Out y[m×n], Dims m n k. y = x·Wᵀ: Linear without a bias.
	Product Kernel = "product"
	// ProductGradW: In x[m×k] dy[m×n], Out dW[n×k], Dims m n k. dW = dyᵀ·x.
	ProductGradW Kernel = "product-grad-w"

	// LayerNorm: In x[m×c] gamma[c] beta[c], Out y[m×c] mean[m] rstd[m], Dims m c, Attr eps. Over the
	// c numbers of each row: mean, rstd = 1/sqrt(var+eps) with the biased var, and y =
	// gamma·(x−mean)·rstd + beta.
	LayerNorm Kernel = "layer-norm"
	// LayerNormPlain: In x[m×c] gamma[c]. LayerNorm without beta.
	LayerNormPlain Kernel = "layer-norm-plain"
	// LayerNormGrad: In x[m×c] dy[m×c] gamma[c] mean[m] rstd[m], Out dx[m×c] dgamma[c] dbeta[c], Dims
	// m c.
	LayerNormGrad Kernel = "layer-norm-grad"
	// LayerNormPlainGrad: In as LayerNormGrad, Out dx[m×c] dgamma[c].
	LayerNormPlainGrad Kernel = "layer-norm-plain-grad"
	// AddLayerNorm: In a[m×c] d[m×c] gamma[c] beta[c], Out s[m×c] y[m×c] mean[m] rstd[m]. s = a + d,
	// then LayerNorm of s.
	AddLayerNorm Kernel = "add-layer-norm"
	// AddLayerNormPlain: In a[m×c] d[m×c] gamma[c]. AddLayerNorm without beta.
	AddLayerNormPlain Kernel = "add-layer-norm-plain"
	// LayerNormGradAdd: In x[m×c] dy[m×c] gamma[c] mean[m] rstd[m] e[m×c]. LayerNormGrad followed by
	// dx = dx + e.
	LayerNormGradAdd Kernel = "layer-norm-grad-add"
	// LayerNormPlainGradAdd: LayerNormPlainGrad followed by dx = dx + e.
	LayerNormPlainGradAdd Kernel = "layer-norm-plain-grad-add"
	// RMSNorm: In x[m×c] gamma[c], Out y[m×c] rrms[m], Dims m c, Attr eps. rrms = 1/sqrt(mean of x² +
	// eps), y = gamma·x·rrms.
	RMSNorm Kernel = "rms-norm"
	// RMSNormGrad: In x[m×c] dy[m×c] gamma[c] rrms[m], Out dx[m×c] dgamma[c], Dims m c.
	RMSNormGrad Kernel = "rms-norm-grad"

	// GELUTanh: In x[n], Out y[n], Dims n. y = x·σ(2·sqrt(2/π)·(x + 0.044715·x³)), σ the sigmoid:
	// x/2·(1+tanh(…)), the form of GPT-2.
	GELUTanh Kernel = "gelu-tanh"
	// GELUTanhGrad: In x[n] dy[n], Out dx[n], Dims n.
	GELUTanhGrad Kernel = "gelu-tanh-grad"
	// GELUErf: In x[n], Out y[n], Dims n. y = x·Φ(x), Φ the distribution function of the normal
	// distribution.
	GELUErf Kernel = "gelu-erf"
	// GELUErfGrad: In x[n] dy[n], Out dx[n], Dims n.
	GELUErfGrad Kernel = "gelu-erf-grad"
	// LinearGELUTanh: In x[m×k] W[n×k] b[n], Out z[m×n] y[m×n], Dims m n k. z = x·Wᵀ + b, y =
	// GELUTanh of z.
	LinearGELUTanh Kernel = "linear-gelu-tanh"
	// LinearGELUErf: LinearGELUTanh with GELUErf.
	LinearGELUErf Kernel = "linear-gelu-erf"
	// ProductGELUTanh: In x[m×k] W[n×k], Out z[m×n] y[m×n], Dims m n k. LinearGELUTanh without a bias.
	ProductGELUTanh Kernel = "product-gelu-tanh"
	// ProductGELUErf: ProductGELUTanh with GELUErf.
	ProductGELUErf Kernel = "product-gelu-erf"
	// LinearGradXGELUTanh: In dy[m×n] W[n×k] z[m×k], Out dx[m×k], Dims m n k. GELUTanhGrad of z and
	// dy·W.
	LinearGradXGELUTanh Kernel = "linear-grad-x-gelu-tanh"
	// LinearGradXGELUErf: LinearGradXGELUTanh with GELUErfGrad.
	LinearGradXGELUErf Kernel = "linear-grad-x-gelu-erf"
	// SwiGLU: In gu[m×2f], Out y[m×f], Dims m f. y = g·σ(g)·u, g the first f numbers of a row, u the
	// others.
	SwiGLU Kernel = "swiglu"
	// SwiGLUGrad: In gu[m×2f] dy[m×f], Out dgu[m×2f], Dims m f.
	SwiGLUGrad Kernel = "swiglu-grad"

	// RoPE: In x[B·T×3C], Out y[B·T×3C], Dims B T H h, Attr θ, with h even. A row holds queries, keys
	// and values. It turns the pairs j and j+h/2 of each head of the first two by the angle
	// t·θ^(−2j/h), t being the position, and copies the values.
	RoPE Kernel = "rope"
	// RoPEGrad: In dy[B·T×3C], Out dx[B·T×3C], Dims and Attr as RoPE. RoPE by the negative angles.
	RoPEGrad Kernel = "rope-grad"
	// Attention: In qkv[B·T×3C], Out y[B·T×C] lse[B·H·T], Dims B T H h. For each head with the queries
	// q, keys k and values v of a window: S = q·kᵀ/sqrt(h), y_i = Σ_j softmax(S)_ij·v_j over the
	// positions j up to i, and lse_i = log Σ exp S_ij.
	Attention Kernel = "attention"
	// AttentionGrad: In qkv[B·T×3C] y[B·T×C] lse[B·H·T] dy[B·T×C], Out dqkv[B·T×3C], Dims B T H h.
	AttentionGrad Kernel = "attention-grad"

	// EmbedStep: In ids[m] tokens[v×c] positions[i×c] at[1], Out y[m×c], Dims m v c i. Embed of m
	// tokens of one window, the first of which has the position at.
	EmbedStep Kernel = "embed-step"
	// RoPEStep: In x[m×3C] at[1], Out y[m×3C], Dims m H h, Attr θ. RoPE of the positions from at on.
	RoPEStep Kernel = "rope-step"
	// AttentionStep: In qkv[m×3C] cache[i×2C] at[1], Out y[m×C] moved[i×2C], Dims m i H h. Attention of
	// the positions from at on of one window, at+m ≤ i. A row of cache holds the keys, times
	// 1/sqrt(h), and the values of a position. moved is cache with the m new rows, and may
	// be cache.
	AttentionStep Kernel = "attention-step"
)

// ErrNoKernel is the error of loading code with a kernel that a device does not have.
var ErrNoKernel = errors.New("the device has no such kernel")

// Kernels lists every Kernel.
func Kernels() []Kernel {
	return []Kernel{Linear, LinearGradX, LinearGradW, Sigmoid, SigmoidGrad, ReLU, ReLUGrad, SoftmaxCrossEntropy,
		SoftmaxCrossEntropyMixed, Score, HalfSquare, Scale, ScaleBy, Add, AddScaled, Dropout, MoveAverage,
		LinearSigmoid, LinearReLU, LinearGradXSigmoid,
		LinearGradXReLU, LinearGradWDecay, Conv, ConvGradX, ConvGradW, BatchNorm, BatchNormReLU, BatchNormAddReLU,
		BatchNormGrad, BatchNormReLUGrad, BatchNormAddReLUGrad, Normalize, NormalizeReLU, NormalizeAddReLU, AddBias,
		AddBiasReLU, AddBiasGrad, AddBiasReLUGrad, GroupNorm,
		GroupNormReLU, GroupNormAddReLU, GroupNormGrad, GroupNormReLUGrad, GroupNormAddReLUGrad, EvoNorm, EvoNormGrad,
		MaxPool, MaxPoolGrad, AvgPool, AvgPoolGrad, Embed, EmbedGrad, EmbedGradAdd, TokenEmbed, TokenEmbedGrad,
		TokenEmbedGradAdd, LastToken, Product, ProductGradW, LayerNorm, LayerNormPlain, LayerNormGrad,
		LayerNormPlainGrad, AddLayerNorm, AddLayerNormPlain, LayerNormGradAdd, LayerNormPlainGradAdd, RMSNorm,
		RMSNormGrad, GELUTanh, GELUTanhGrad, GELUErf, GELUErfGrad, LinearGELUTanh, LinearGELUErf, ProductGELUTanh,
		ProductGELUErf, LinearGradXGELUTanh, LinearGradXGELUErf, SwiGLU, SwiGLUGrad, RoPE, RoPEGrad, Attention,
		AttentionGrad, EmbedStep, RoPEStep, AttentionStep}
}
