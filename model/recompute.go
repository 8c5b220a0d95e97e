package model

import "slices"

// Recompute says what the backward pass computes again, to save the memory of keeping it.
type Recompute string

// The choices of Recompute.
const (
	RecomputeNone Recompute = "none" // nothing
	// what residual blocks and the stem compute inside: a third more work, half the memory
	RecomputeBlocks Recompute = "blocks"
)

// inBlock runs build, whose nodes belong to a block of their own.
func (b *builder) inBlock(build func()) {
	b.blocks++
	b.block = b.blocks
	defer func() { b.block = 0 }()
	build()
}

// recompute drops, of each block but the last, the values that only the block itself and the
// backward pass read, by computing them again before the backward pass needs the first of them. The
// same kernels on the same numbers give the same bits. The last block has its backward pass right
// behind it. Statistics are small and stay.
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

// makers is the block whose step makes each value; 0 where none does.
func (l *lowered) makers() []int {
	block := make([]int, len(l.values))
	for _, s := range l.steps {
		for _, v := range s.out {
			block[v] = s.block
		}
	}
	return block
}

// droppable marks the values of a block that nobody reads but its own steps and the backward pass.
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

// again copies the steps of a block that are needed for what the backward pass reads of its dropped
// values. It returns the copies, which belong to the backward pass, and the new name of each value
// that is computed again.
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

// renamed returns values under their new names, those that have one.
func renamed(values []int, names map[int]int) []int {
	out := slices.Clone(values)
	for i, v := range out {
		if n, ok := names[v]; ok {
			out[i] = n
		}
	}
	return out
}
