package cuda

import (
	"errors"
	"fmt"
	"slices"

	"fspda/cuda/compiler"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// linksPointwise reports whether convolutions of 1×1 are linked with their normalisations: where
// kernels.Pointwise runs, and may be chosen by timing.
func (d *Device) linksPointwise() bool {
	return d.precision.Element() != kernels.F32 && d.properties.CC >= 80 && (!d.deterministic || d.fuseAlways)
}

// doneElsewhere returns which kernels of a normalisation convolutions compute.
func (l *lowerer) doneElsewhere(t *compiler.Task) *elsewhere {
	if l.elsewhere[t] == nil {
		l.elsewhere[t] = &elsewhere{}
	}
	return l.elsewhere[t]
}

// pointwiseOf returns a convolution as a product.
func pointwiseOf(t *compiler.Task) kernels.Pointwise {
	d := t.Call.Dims
	p := kernels.Pointwise{Element: t.Out[0].Element, M: d[0] * d[1] * d[2], N: d[4], K: d[3]}
	if t.Call.Kernel == device.ConvGradX {
		p.N, p.K = p.K, p.N
	}
	return p
}

// pointwiseScratch returns the scratch of a linked convolution, in bytes.
func pointwiseScratch(t *compiler.Task) int {
	if t.Feeds == nil {
		return 0
	}
	p := pointwiseOf(t)
	return 8 * p.PartNumbers()
}

// fused is the step of a linked convolution with the kernels of its normalisations that it may
// compute.
func fused(t *compiler.Task) step {
	return func(env *launchEnv) error {
		x, p := env.bind(t), pointwiseOf(t)
		p.A, p.W, p.C = x.in[0], x.in[1], x.out[0]
		for _, link := range []struct {
			norm *compiler.Task
			to   **kernels.Norm
		}{{t.Reads, &p.In}, {t.Feeds, &p.Out}} {
			if link.norm != nil {
				n := normalisations[link.norm.Call.Kernel].norm(env.bind(link.norm))
				n.Part = env.scratch
				*link.to = &n
			}
		}
		if t.Call.Kernel == device.ConvGradX {
			return env.ex.Launch(p.Grad())
		}
		return env.ex.Launch(p.Forward())
	}
}

// separate is a linked convolution and the kernels that fused would compute, each in a launch of its
// own.
func separate(t *compiler.Task, conv step) step {
	return func(env *launchEnv) error {
		if r := t.Reads; r != nil {
			f := normalisations[r.Call.Kernel]
			n := f.norm(env.bind(r))
			if err := env.ex.Launch(f.apply(&n)); err != nil {
				return err
			}
		}
		if err := conv(env); err != nil || t.Feeds == nil {
			return err
		}
		f := normalisations[t.Feeds.Call.Kernel]
		n := f.norm(env.bind(t.Feeds))
		return env.ex.Launch(f.sums(&n))
	}
}

// fuse returns the step of a convolution: conv, or, if the convolution is linked and that is faster,
// one kernel that computes also those of its normalisations. The route of conv is the last one.
func (l *lowerer) fuse(t *compiler.Task, conv step) (step, error) {
	if t.Reads == nil && t.Feeds == nil {
		return conv, nil
	}
	if !l.fuseAlways {
		var choice cudnn.Choice
		err := l.exec.Do(func() (err error) {
			choice, err = l.handles.choices.Choose(fuseKey(t), func() (cudnn.Choice, error) {
				return l.timeFused(fused(t), separate(t, conv))
			})
			return err
		})
		if err != nil || !choice.Fused {
			return conv, err
		}
	}
	l.routes[len(l.routes)-1].fused = true
	if t.Reads != nil {
		l.doneElsewhere(t.Reads).apply = true
	}
	if t.Feeds != nil {
		l.doneElsewhere(t.Feeds).sums = true
	}
	return fused(t), nil
}

// fuseKey describes everything that the choice depends on, except the GPU and cuDNN.
func fuseKey(t *compiler.Task) string {
	p, around := pointwiseOf(t), ""
	for _, n := range []*compiler.Task{t.Reads, t.Feeds} {
		if n != nil {
			around += fmt.Sprintf(", %s (pair %t, sum %t)", n.Call.Kernel, n.PairSaved != nil, n.Addend != nil)
		} else {
			around += ", none"
		}
	}
	return fmt.Sprintf("fused %s of %v as %d×%d×%d%s", t.Call.Kernel, p.Element, p.M, p.N, p.K, around)
}

// timeFused compares two ways to compute the same on the executor, in memory of their own with any
// content. Without memory for that, or if they cannot be captured, the second is chosen.
func (l *lowerer) timeFused(one, many step) (best cudnn.Choice, err error) {
	const runs, turns = 4, 3
	ex := l.exec
	at, end, err := ex.Borrow(l.layout.total(), 4*l.dim, l.arrived)
	if err != nil {
		return best, nil
	}
	defer end()
	if err := ex.SetBytes(at[2], 0, l.arrived); err != nil {
		return best, err
	}
	env := &launchEnv{ex: ex, blas: l.handles.blas, math: l.compute()}
	env.spaces = [spaces]kernels.Address(slices.Repeat([]kernels.Address{kernels.Address(at[1])}, spaces))
	env.spaces[device.Arena] = kernels.Address(at[0])
	env.scratch = kernels.Address(at[0] + driver.Pointer(l.layout.arena))
	env.scalars.arrived = kernels.Address(at[2])
	var ms [2]float64
	for i, s := range []step{one, many} {
		send := func() error { return s(env) }
		if _, err = ex.TimeWork(0, 1, send); err == nil { // loads the kernels
			ms[i], err = ex.TimeWork(runs, turns, send)
		}
		if errors.Is(err, executor.ErrNotCapturable) {
			return best, nil
		}
		if err != nil {
			return best, err
		}
	}
	return cudnn.Choice{Fused: ms[0] < ms[1], Time: float32(min(ms[0], ms[1]) / runs)}, nil
}
