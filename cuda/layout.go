package cuda

import (
	"fmt"

	"fspda/cuda/compiler"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// layout is the memory of a Program's run in the shared arena, in bytes: the intermediate values,
// then the scratch of the kernels.
type layout struct{ arena, scratch int }

func (l layout) total() int { return l.arena + l.scratch }

func (d *Device) compile(code *device.Code) (*compiler.Plan, error) {
	return compiler.Compile(code, compiler.Options{Precision: d.precision, Epilogues: d.epilogues(),
		NoFusion: d.noFusion, LossPiece: d.lossPiece})
}

func (d *Device) layoutOf(p *compiler.Plan) layout {
	l := layout{arena: compiler.Align(p.Arena)}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		l.scratch = max(l.scratch, compiler.Align(scratchOf(t)), compiler.Align(d.attentionWorkspace(t)))
	}
	return l
}

// Footprint returns the bytes in which a run of code computes: its arena and the scratch of its
// kernels. Programs of one device share them. Code that cannot be loaded takes 0 bytes.
func (d *Device) Footprint(code *device.Code) int {
	if checkKernels(code) != nil {
		return 0
	}
	p, err := d.compile(code)
	if err != nil {
		return 0
	}
	bytes := d.layoutOf(p).total()
	if most := &d.branches.bytes; d.branchesFor(code, bytes) && int64(bytes) > most.Load() {
		most.Store(int64(bytes))
	}
	return bytes
}

// sharedArena is the memory in which Programs compute one after the other. The executor uses it.
type sharedArena struct {
	executor.Block
	dep executor.Dependency
}

// atLeast returns the address of the arena, which it enlarges to the given size. Where the arena
// moves, graphs that were captured with the old one are never launched again.
func (a *sharedArena) atLeast(ex *executor.Executor, bytes int) (kernels.Address, error) {
	if a.Size >= bytes {
		return a.Address(), nil
	}
	if a.Size > 0 {
		ex.PutBlock(a.Block)
		a.Block = executor.Block{}
	}
	b, err := ex.Alloc(bytes)
	if err != nil {
		return 0, fmt.Errorf("allocating the arena of the network: %w", err)
	}
	a.Block = b
	return b.Address(), nil
}

// memoryAdvice returns advice for a run that does not fit the GPU's memory.
func (d *Device) memoryAdvice(code *device.Code) string {
	need := d.Footprint(code)
	perExample := float64(need) / float64(max(1, code.Batch))
	free := int(d.properties.Memory) - d.exec.ReservedBytes()
	fits := int(float64(free) * 0.9 / perExample)
	text := fmt.Sprintf("batches of %d take %s", code.Batch, executor.FormatBytes(need))
	if fits >= 1 && fits < code.Batch {
		text += fmt.Sprintf(", batches of %d would fit (batch, or accumulate %d)", fits, (code.Batch+fits-1)/fits)
	}
	if d.precision == FP32 || d.precision == TF32 {
		text += "; precision fp16 or bf16 halves that"
	}
	return text + "; recompute blocks keeps a third of the activations, and fewer agents keep fewer vectors"
}
