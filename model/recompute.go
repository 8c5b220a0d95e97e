package model

import "slices"

// Recompute selects activation checkpointing: values that the backward pass recomputes to save
// memory.
type Recompute string

// The values of Recompute.
const (
	RecomputeNone Recompute = "none" // nothing
	// the intermediate values of residual blocks and the stem, or of a language model's layers: a third
	// more work; of ResNet-50 a third of the memory
	RecomputeBlocks Recompute = "blocks"
)

// inBlock runs build and assigns its nodes to a new block.
func (b *builder) inBlock(build func()) {
	b.blocks++
	b.block = b.blocks
	defer func() { b.block = 0 }()
	build()
}

// recompute drops, in each block but the last, the values that only the block itself and the
// backward pass read, and recomputes them before the backward pass first needs one. The same
// kernels on the same operands give the same bits. The backward pass of the last block follows
// immediately, so it keeps its values. Statistics are small and are kept.
func (l *lowered) recompute() {
	last := 0
	for _, s := range l.steps {
		last = max(last, s.block)
	}
	maker := l.makers()
	for block := last - 1; block >= 1; block-- {
		dropped := l.droppable(block, maker)
		first := slices.IndexFunc(l.steps, func(s step) bool {
			return s.backward && slices.ContainsFunc(s.in, func(v int) bool { return dropped[v] })
		})
		if first < 0 {
			continue
		}
		again, copies := l.recomputeBlock(block, dropped)
		for i := first; i < len(l.steps); i++ {
			if l.steps[i].backward {
				l.steps[i].in = renamed(l.steps[i].in, copies)
			}
		}
		l.steps = slices.Insert(l.steps, first, again...)
	}
}

// makers returns the block that computes each value, or 0.
func (l *lowered) makers() []int {
	block := make([]int, len(l.values))
	for _, s := range l.steps {
		for _, v := range s.out {
			block[v] = s.block
		}
	}
	return block
}

// droppable marks the values of a block that are read only by its own steps and the backward pass.
func (l *lowered) droppable(block int, maker []int) map[int]bool {
	dropped := map[int]bool{}
	for v, from := range maker {
		if from == block && l.values[v].shape.Dims() > 1 {
			dropped[v] = true
		}
	}
	for _, s := range l.steps {
		if !s.backward && s.block != block {
			for _, v := range s.in {
				delete(dropped, v)
			}
		}
	}
	for _, v := range l.results {
		delete(dropped, v)
	}
	return dropped
}

// recomputeBlock copies the steps of a block needed for the dropped values that the backward pass
// reads. It returns the copies, which belong to the backward pass, and the new index of each
// recomputed value.
func (l *lowered) recomputeBlock(block int, dropped map[int]bool) (steps []step, copies map[int]int) {
	wanted := map[int]bool{}
	for _, s := range l.steps {
		if s.backward {
			for _, v := range s.in {
				wanted[v] = wanted[v] || dropped[v]
			}
		}
	}
	var from []step
	for _, s := range slices.Backward(l.steps) {
		if s.block != block || s.backward || !slices.ContainsFunc(s.out, func(v int) bool { return wanted[v] }) {
			continue
		}
		from = append(from, s)
		for _, v := range s.in {
			wanted[v] = wanted[v] || dropped[v]
		}
	}
	copies = map[int]int{}
	for _, s := range slices.Backward(from) {
		c := step{call: s.call, in: renamed(s.in, copies), backward: true}
		for _, v := range s.out {
			n := len(l.values)
			l.values = append(l.values, l.values[v])
			c.out = append(c.out, n)
			if dropped[v] {
				copies[v] = n
			}
		}
		steps = append(steps, c)
	}
	return steps, copies
}

// renamed replaces the values that have a new index.
func renamed(values []int, names map[int]int) []int {
	out := slices.Clone(values)
	for i, v := range out {
		if n, ok := names[v]; ok {
			out[i] = n
		}
	}
	return out
}
