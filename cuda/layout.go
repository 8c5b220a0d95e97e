package cuda

import (
	"fmt"

	"fspda/cuda/compiler"
	"fspda/cuda/kernels"
	"fspda/device"
)

// layout is what a run of a Program takes of the shared arena, in bytes: the intermediate values,
// then room for kernels to work in.
type layout struct{ arena, scratch int }

func (l layout) total() int { return l.arena + l.scratch }

// planOf plans code for the device's precision.
func (d *Device) planOf(code *device.Code) (*compiler.Plan, error) {
	return compiler.Compile(code, compiler.Options{Precision: d.precision, Epilogues: d.epilogues(), NoFusion: d.noFusion})
}

// layout is what a run of a plan takes of the shared arena.
func layoutOf(p *compiler.Plan) layout {
	l := layout{arena: compiler.Align(p.Arena)}
	for i := range p.Tasks {
		l.scratch = max(l.scratch, compiler.Align(scratchOf(&p.Tasks[i])))
	}
	return l
}

// Footprint forecasts the bytes that a run of code computes in: its arena, and what the kernels
// need beside it. Programs of one device share them. Code that cannot be loaded takes nothing.
func (d *Device) Footprint(code *device.Code) int {
	p, err := d.planOf(code)
	if err != nil {
		return 0
	}
	return layoutOf(p).total()
}

// sharedArena returns the arena of the device, at least so large. Graphs that were captured with
// another one are never used again.
func (ex *executor) sharedArena(bytes int) (kernels.Address, error) {
	if ex.arena.size >= bytes {
		return ex.arena.address(), nil
	}
	if ex.arena.size > 0 {
		ex.pool.put(ex.arena)
		ex.arena = block{}
	}
	b, err := ex.alloc(bytes)
	if err != nil {
		return 0, fmt.Errorf("making room for what the network computes: %w", err)
	}
	ex.arena = b
	return b.address(), nil
}

// advice says what a run that does not fit could do.
func (d *Device) memoryAdvice(code *device.Code) string {
	need := d.Footprint(code)
	perExample := float64(need) / float64(max(1, code.Batch))
	free := int(d.properties.Memory) - d.exec.reservedBytes()
	fits := int(float64(free) * 0.9 / perExample)
	text := fmt.Sprintf("batches of %d take %s", code.Batch, formatBytes(need))
	if fits >= 1 && fits < code.Batch {
		text += fmt.Sprintf(", batches of %d would fit (batch, or accumulate %d)", fits, (code.Batch+fits-1)/fits)
	}
	if d.precision == FP32 || d.precision == TF32 {
		text += "; precision fp16 or bf16 halves that"
	}
	return text + "; recompute blocks keeps a third of the activations, and fewer agents keep fewer vectors"
}
