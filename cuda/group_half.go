package cuda

import (
	"fspda/cuda/compiler"
	"fspda/cuda/kernels"
	"fspda/device"
)

// groupHalf returns the 16-bit arithmetic of a group: it rounds where single programs round. ok is
// false where the code does something that groups do not support in 16 bits.
func (d *Device) groupHalf(code *device.Code) (s *kernels.GroupHalf, ok bool) {
	e := d.precision.Element()
	if e == kernels.F32 {
		return nil, true
	}
	p, err := compiler.Compile(code, compiler.Options{Precision: d.precision})
	if err != nil {
		return nil, false
	}
	s = &kernels.GroupHalf{Element: e, Rounded: map[*device.Call]bool{}}
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.Work == compiler.Compute && !groupTaskHalf(t, p.Scaling) {
			return nil, false
		} else if t.Work == compiler.Compute {
			s.Rounded[t.Call] = t.Element() != kernels.F32
		}
	}
	if p.Scaling {
		s.Scaling = &kernels.Scaling{Growth: scaleGrowth, Backoff: scaleBackoff, Largest: largestScale,
			Interval: scaleInterval}
	}
	return s, true
}

// groupTaskHalf reports whether a group supports a task in 16 bits. Groups round only results of
// products. They divide gradients of parameters by the loss scale at once, so that summands of
// these must not have the scale.
func groupTaskHalf(t *compiler.Task, scaling bool) bool {
	for _, o := range t.Out {
		if o.Element != kernels.F32 && !kernels.IsProduct(t.Call.Kernel) {
			return false
		}
	}
	if !scaling || t.Call.Kernel == device.LinearGradWDecay {
		return true
	}
	in := t.Call.In
	toGradient := false
	for i, r := range in {
		if r.Space != device.Grads {
			continue
		}
		toGradient = true
		if sums := t.Call.Kernel == device.Add || t.Call.Kernel == device.AddScaled; !sums ||
			in[1-i].Space != device.Grads && (t.LacksScale == nil || !t.LacksScale[1-i]) {
			return false
		}
	}
	return toGradient || t.LacksScale == nil
}

// halfAt returns the group's 16-bit arithmetic with the addresses of the loss scales and of their
// states.
func (g *group) halfAt(scalers, states kernels.Address) *kernels.GroupHalf {
	if g.scaling() == nil {
		return g.half
	}
	s, scaling := *g.half, *g.half.Scaling
	scaling.Scalers, scaling.States = scalers, states
	s.Scaling = &scaling
	return &s
}
