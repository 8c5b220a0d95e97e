package kernels

import "fspda/device"

const (
	halfProduct  = operandsA + operandsB + operandsC + operandSums + operandsLast + halfOperands
	halfOperands = " round:i scalers:p"
)

var _ = defineEach("gemm_half.cu", halfElements,
	"gemm_nt_%s "+halfProduct,
	"gemm_nn_%s "+halfProduct,
	"gemm_tn_%s "+halfProduct,
	"gemm_nt_bytes_%s "+gemmNTBytes+halfOperands,
	"gemm_tn_bytes_%s "+operandsA+bytesOperands+operandsC+operandSums+operandsLast+halfOperands,
)

var _ = define("gemm_half.cu",
	"scale_each x:p stride:l n:l scalers:p",
	"zero_if_inf_each g:p scalers:p n:l",
	"step_each scalers:p out:p agents:i growth:f backoff:f largest:f interval:u",
)

// GroupHalf says how a Group computes in 16 bits: the factors of products are rounded to Element
// when they are loaded for the tensor cores. Vectors and arenas are float32, and so are sums.
// Results of the marked calls are rounded too.
type GroupHalf struct {
	Element Element // F16 or BF16
	Rounded map[*device.Call]bool
	// Scaling is set for F16. If nil, losses are not scaled.
	Scaling *Scaling
}

// Scaling is the loss scales of the agents. The gradients of the losses are multiplied by them, and
// the products that compute gradients of parameters are divided by them. An agent whose gradient is
// not finite gets zeros.
type Scaling struct {
	Scalers Address // list of the agents' Scalers in device memory
	States  Address // where the Scalers are copied after the iteration, in order
	// Growth, Backoff, Largest and Interval are parameters of ScalerStep.
	Growth, Backoff, Largest float32
	Interval                 int
}

// halfArgs returns the additional arguments of a 16-bit product.
func (g Gemm) halfArgs() []any {
	round := 0
	if g.Round {
		round = 1
	}
	return []any{round, g.Scalers}
}

// scaleLoss scales the derivative of the losses, at dlogits in the first agent's arena.
func (f Group) scaleLoss(dlogits Address, n int) []Call {
	if f.Half == nil || f.Half.Scaling == nil {
		return nil
	}
	l := over(n)
	l.Grid[2] = uint32(f.Agents)
	return []Call{call("scale_each", l, dlogits, f.Stride, n, f.Half.Scaling.Scalers)}
}

// endScaling ends an iteration: it sets gradients that are not finite to zero and updates the
// scales.
func (f Group) endScaling(dim int) []Call {
	if f.Half == nil || f.Half.Scaling == nil {
		return nil
	}
	s := f.Half.Scaling
	l := over(dim)
	l.Grid[2] = uint32(f.Agents)
	return []Call{call("zero_if_inf_each", l, f.Grads, s.Scalers, dim), call("step_each", blocks(f.Agents, 32),
		s.Scalers, s.States, f.Agents, s.Growth, s.Backoff, s.Largest, s.Interval)}
}
