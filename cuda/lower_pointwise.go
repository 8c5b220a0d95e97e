package cuda

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"fspda/cuda/compiler"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// FusedVariable is the environment variable that, if it is 0, leaves out the fused convolutions.
const FusedVariable = "FSPDA_CUDA_FUSED"

// linksPointwise reports whether convolutions of 1×1 are linked with their normalisations: where
// kernels.Pointwise runs, and may be chosen by timing.
func (d *Device) linksPointwise() bool {
	return d.hasPointwise() && (!d.deterministic || d.fuseAlways) && os.Getenv(FusedVariable) != "0"
}

// hasPointwise reports whether kernels.Pointwise runs.
func (d *Device) hasPointwise() bool {
	return d.precision.Element() != kernels.F32 && d.properties.CC >= 80
}

// doneElsewhere returns which kernels of a normalisation convolutions compute.
func (l *lowerer) doneElsewhere(t *compiler.Task) *elsewhere {
	if l.elsewhere[t] == nil {
		l.elsewhere[t] = &elsewhere{}
	}
	return l.elsewhere[t]
}

// pointwiseScratch returns the scratch of a linked convolution, in bytes.
func pointwiseScratch(t *compiler.Task) int {
	if t.Feeds == nil {
		return 0
	}
	p := t.Product()
	return 8 * p.PartNumbers()
}

// bothBlocks returns the blocks of a kernel that computes both gradients of a convolution, one for
// each multiprocessor; 0 where it does not run.
func (d *Device) bothBlocks() int {
	if d.properties.Shared < kernels.MaxBothShared() {
		return 0
	}
	return d.properties.Multiprocessors
}

// bothScratch returns the scratch of the kernels of both gradients, in bytes.
func bothScratch(t *compiler.Task) int {
	if t.GradX == nil {
		return 0
	}
	p := t.GradX.Product()
	p.Blocks = t.Blocks
	filters, part := p.FilterBytes()
	return filters + part
}

// linkedProduct returns a linked convolution as a product with its normalisations, in a run.
func (env *launchEnv) linkedProduct(t *compiler.Task) kernels.Pointwise {
	x, p := env.bind(t), t.Product()
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
	return p
}

// fused is the step of a linked convolution with the kernels of its normalisations that it may
// compute.
func fused(t *compiler.Task) step {
	return func(env *launchEnv) error {
		p := env.linkedProduct(t)
		if t.Call.Kernel == device.ConvGradX {
			return env.ex.Launch(p.Grad())
		}
		return env.ex.Launch(p.Forward())
	}
}

// both is the step of the gradient of filters with the gradient of the input that it is linked to,
// and with all that this may compute.
func both(t *compiler.Task) step {
	return func(env *launchEnv) error {
		p, w := env.linkedProduct(t.GradX), env.bind(t)
		p.Input, p.DW, p.Blocks = w.in[0], w.out[0], t.Blocks
		_, part := p.FilterBytes()
		p.Filters = env.scratch + kernels.Address(part)
		return env.ex.Launch(p.Both()...)
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
// one kernel that computes also those of its normalisations.
func (l *lowerer) fuse(t *compiler.Task, conv step) (step, error) {
	if t.GradX != nil {
		return l.fuseBoth(t, conv)
	}
	if t.Reads == nil && t.Feeds == nil {
		return conv, nil
	}
	one, many := fused(t), separate(t, conv)
	faster, err := l.isFaster(t, fuseKey(t), one, many)
	l.linked[t] = many
	if faster {
		l.fuseWith(t)
		conv, l.linked[t] = one, one
	}
	done := l.doneElsewhere(t)
	return func(env *launchEnv) error {
		if done.all {
			return nil
		}
		return conv(env)
	}, err
}

// fuseBoth returns the step of the gradient of filters: conv, or, if that is faster, one that
// computes also the gradient of the input and what this may compute.
func (l *lowerer) fuseBoth(t *compiler.Task, conv step) (step, error) {
	first := l.linked[t.GradX]
	faster, err := l.isFaster(t, "both gradients: "+fuseKey(t.GradX), both(t), func(env *launchEnv) error {
		return errors.Join(first(env), conv(env))
	})
	if err != nil || !faster {
		return conv, err
	}
	l.fuseWith(t.GradX)
	l.doneElsewhere(t.GradX).all = true
	l.markFused(t)
	return both(t), nil
}

// fuseWith notes that the normalisations that a convolution is linked to leave it what it may
// compute.
func (l *lowerer) fuseWith(t *compiler.Task) {
	l.markFused(t)
	if t.Reads != nil {
		l.doneElsewhere(t.Reads).apply = true
	}
	if t.Feeds != nil {
		l.doneElsewhere(t.Feeds).sums = true
	}
}

func (l *lowerer) markFused(t *compiler.Task) {
	for i := range l.routes {
		l.routes[i].fused = l.routes[i].fused || l.routes[i].task == t
	}
}

// isFaster reports whether one step, a fused kernel of task t, is faster than another that computes
// the same, as far as is known or can be timed, and computes the same.
func (l *lowerer) isFaster(t *compiler.Task, key string, one, many step) (bool, error) {
	if l.fuseAlways {
		return true, nil
	}
	var choice cudnn.Choice
	err := l.exec.Do(func() (err error) {
		if l.visit != nil {
			return l.compareFused(t, key, one, many)
		}
		choice, err = l.handles.choices.Choose(key, func() (cudnn.Choice, error) {
			return l.timeFused(t, key, one, many)
		})
		return err
	})
	if driver.Lost(err) {
		err = fmt.Errorf("trying the %s: %w; the next start does without it, and with %s=0 without all of its kind",
			key, err, FusedVariable)
	}
	for i := range l.routes {
		if l.routes[i].task == t {
			l.routes[i].why = choice.Why
		}
	}
	return choice.Fused, err
}

// fuseKey describes everything that the choice depends on, except the GPU and cuDNN, whose kernels
// it is compared with.
func fuseKey(t *compiler.Task) string {
	p, around := t.Product(), ""
	for _, n := range []*compiler.Task{t.Reads, t.Feeds} {
		if n != nil {
			around += fmt.Sprintf(", %s (pair %t, sum %t)", n.Call.Kernel, n.PairSaved != nil, n.Addend != nil)
		} else {
			around += ", none"
		}
	}
	return fmt.Sprintf("fused %s of %v as %d×%d×%d, stride %d%s, kernels %s", t.Call.Kernel, p.Element, p.M, p.N, p.K,
		p.Stride, around, fusedSources())
}

// fusedSources is a hash of the sources of what is compared.
var fusedSources = sync.OnceValue(func() string { return kernels.Digest("pointwise.cu", "norm.cu") })
