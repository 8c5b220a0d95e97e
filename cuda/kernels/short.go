package kernels

import "fspda/device"

const shortOperands = " round:i scalers:p"

var _ = defineEach("short.cu", shortElements,
	"gemm_nt_%s "+gemmOperands+shortOperands,
	"gemm_nn_%s "+gemmOperands+shortOperands,
	"gemm_tn_%s "+gemmOperands+shortOperands,
	"gemm_nt_bytes_%s "+gemmNTBytes+shortOperands,
	"gemm_tn_bytes_%s "+gemmTNBytes+shortOperands,
)

var _ = define("short.cu",
	"scale_each x:p apart:l n:l scalers:p",
	"drop_each g:p scalers:p n:l",
	"step_each scalers:p out:p agents:i growth:f backoff:f largest:f interval:u",
)

// FleetShort is how a Fleet computes in 16 bits: factors of products are rounded to Element on
// their way to the tensor cores, from vectors and arenas of float32, and sums are float32. Results
// that are marked are rounded too.
type FleetShort struct {
	Element Element // F16 or BF16
	Rounded map[*device.Call]bool
	// Scaling is for F16. Nil: losses are not scaled.
	Scaling *Scaling
}

// Scaling is the loss scales of agents: the gradients of their losses are multiplied by them, and
// the products that gradients of parameters are made of divided by them. An agent whose gradient is
// not finite gets zeros.
type Scaling struct {
	Scalers Address // the list of the agents' Scalers in device memory
	States  Address // where they are copied to behind the iteration, one after the other
	// Growth, Backoff, Largest and Interval are those of ScalerStep.
	Growth, Backoff, Largest float32
	Interval                 int
}

// shortArgs are the arguments that a product of 16 bits has more than another.
func (g Gemm) shortArgs() []any {
	round := 0
	if g.Round {
		round = 1
	}
	return []any{round, g.Scalers}
}

// scaleLoss is what follows the derivative of the losses, which lies at dlogits in the first
// agent's arena.
func (f Fleet) scaleLoss(dlogits Address, n int) []Call {
	if f.Short == nil || f.Short.Scaling == nil {
		return nil
	}
	l := over(n)
	l.Grid[2] = uint32(f.Agents)
	return []Call{call("scale_each", l, dlogits, f.Apart, n, f.Short.Scaling.Scalers)}
}

// endScaling ends an iteration: gradients that are not finite become zero, and scales move.
func (f Fleet) endScaling(dim int) []Call {
	if f.Short == nil || f.Short.Scaling == nil {
		return nil
	}
	s := f.Short.Scaling
	l := over(dim)
	l.Grid[2] = uint32(f.Agents)
	return []Call{call("drop_each", l, f.Grads, s.Scalers, dim),
		call("step_each", blocks(f.Agents, 32), s.Scalers, s.States, f.Agents, s.Growth, s.Backoff, s.Largest,
			s.Interval)}
}
