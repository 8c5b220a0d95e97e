package kernels

var _ = define("groupnorm.cu",
	"gn_grad_factors part:p gamma:p variance:p images:l m:i c:i g:i eps:d a:p b:p e:p",
	"gn_grad_params part:p variance:p images:l c:i g:i eps:d dgamma:p dbeta:p",
	"evo_grad_factors part:p gamma:p variance:p images:l m:i c:i g:i eps:d k:p q:p",
	"evo_grad_params part:p gamma:p variance:p images:l c:i g:i eps:d dgamma:p dbeta:p dv:p",
)

var _ = defineEach("groupnorm.cu", allElements,
	"gn_statistics_%s mean:p variance:p scale:p shift:p x:p gamma:p beta:p images:l m:i c:i g:i eps:d",
	"gn_apply_%s y:p x:p z:p mean:p scale:p shift:p images:l m:i c:i g:i epilogue:i",
	"gn_grad_sums_%s part:p dz:p x:p dy:p y:p mean:p images:l m:i c:i g:i",
	"gn_grad_apply_%s dx:p x:p dy:p y:p mean:p a:p b:p e:p images:l m:i c:i g:i",
	"evo_apply_%s y:p x:p v:p scale:p beta:p images:l m:i c:i",
	"evo_grad_sums_%s part:p x:p dy:p v:p images:l m:i c:i",
	"evo_grad_apply_%s dx:p x:p dy:p v:p mean:p k:p q:p images:l m:i c:i g:i",
)

// GroupNorm is device.GroupNorm with an epilogue, or device.EvoNorm, of Images images of M pixels
// and C channels in G groups, and its gradient. Parameters, statistics and factors are float32; X,
// Y, Z and their gradients are Elements.
type GroupNorm struct {
	Element         Element
	Images, M, C, G int
	Eps             float64
	Epilogue        NormEpilogue

	X, Y, Z        Address // Z is the summand
	Gamma, Beta, V Address // V is the parameter of EvoNorm
	Mean, Variance Address
	Scratch        Address // has ScratchBytes

	GroupNormGrads
}

// GroupNormGrads is the operands of the gradient of a GroupNorm. Y is 0 without a ReLU.
type GroupNormGrads struct{ DX, DY, DZ, DGamma, DBeta, DV Address }

// groupSums is the most sums of a channel that a gradient keeps: EvoNorm has three.
const groupSums = 3

// ScratchBytes returns the size of Scratch: the sums in float64, then a factor for each channel of
// each image, and two for each channel or group.
func (n *GroupNorm) ScratchBytes() int { return n.Images * n.C * (8*groupSums + 4*groupSums) }

// factor returns the address of the i-th vector of factors.
func (n *GroupNorm) factor(i int) Address { return n.Scratch + Address(n.Images*n.C*(8*groupSums+4*i)) }

// each returns the geometry of a number of blocks for each image.
func (n *GroupNorm) each(blocksOfImage int) Launch {
	return imageBlocks(n.Images, blocksOfImage*threads)
}

func (n *GroupNorm) numbers() Launch { return imageBlocks(n.Images, n.M*n.C) }

func (n *GroupNorm) channels() Launch { return n.each((n.C + 31) / 32) }

func (n *GroupNorm) statistics(shift Address) Call {
	return call(n.Element.name("gn_statistics"), n.each(n.G), n.Mean, n.Variance, n.factor(0), shift, n.X, n.Gamma,
		n.Beta, n.Images, n.M, n.C, n.G, n.Eps)
}

// Forward computes Y, Mean and Variance of device.GroupNorm.
func (n *GroupNorm) Forward() []Call {
	return []Call{n.statistics(n.factor(1)), call(n.Element.name("gn_apply"), n.numbers(), n.Y, n.X, n.Z, n.Mean,
		n.factor(0), n.factor(1), n.Images, n.M, n.C, n.G, int(n.Epilogue))}
}

// Grad computes DX, DGamma and DBeta of device.GroupNorm, and DZ if there is a summand.
func (n *GroupNorm) Grad() []Call {
	part, a, b, e := n.Scratch, n.factor(0), n.factor(1), n.factor(2)
	dy, y := n.DY, n.Y
	sums := call(n.Element.name("gn_grad_sums"), n.channels(), part, n.DZ, n.X, dy, y, n.Mean, n.Images, n.M, n.C, n.G)
	if n.DZ != 0 { // it holds the masked gradient
		dy, y = n.DZ, 0
	}
	return []Call{
		sums,
		call("gn_grad_factors", over(n.Images*n.G), part, n.Gamma, n.Variance, n.Images, n.M, n.C, n.G, n.Eps, a, b, e),
		call("gn_grad_params", over(n.C), part, n.Variance, n.Images, n.C, n.G, n.Eps, n.DGamma, n.DBeta),
		call(n.Element.name("gn_grad_apply"), n.numbers(), n.DX, n.X, dy, y, n.Mean, a, b, e, n.Images, n.M, n.C, n.G),
	}
}

// EvoForward computes Y, Mean and Variance of device.EvoNorm.
func (n *GroupNorm) EvoForward() []Call {
	return []Call{n.statistics(0), call(n.Element.name("evo_apply"), n.numbers(), n.Y, n.X, n.V, n.factor(0), n.Beta,
		n.Images, n.M, n.C)}
}

// EvoGrad computes DX, DGamma, DBeta and DV of device.EvoNorm.
func (n *GroupNorm) EvoGrad() []Call {
	part, k, q := n.Scratch, n.factor(0), n.factor(1)
	return []Call{
		call(n.Element.name("evo_grad_sums"), n.channels(), part, n.X, n.DY, n.V, n.Images, n.M, n.C),
		call("evo_grad_factors", over(n.Images*n.G), part, n.Gamma, n.Variance, n.Images, n.M, n.C, n.G, n.Eps, k, q),
		call("evo_grad_params", over(n.C), part, n.Gamma, n.Variance, n.Images, n.C, n.G, n.Eps, n.DGamma, n.DBeta,
			n.DV),
		call(n.Element.name("evo_grad_apply"), n.numbers(), n.DX, n.X, n.DY, n.V, n.Mean, k, q, n.Images, n.M, n.C,
			n.G),
	}
}
