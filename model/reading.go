package model

import (
	"fmt"
	"slices"

	"fspda/device"
)

// reading predicts the next token of a text that grows. It keeps the keys and values of the tokens
// that it has read. It belongs to one goroutine at a time.
type reading struct {
	engine   *Engine
	x        device.Vector
	cache    device.Vector
	capacity int      // positions of the cache
	read     []uint16 // tokens whose keys and values are in cache
	part     []float32
}

// partTokens is the largest number of tokens that are read at once, of a prompt. Each number of
// tokens has a plan, so that there are two.
const partTokens = 32

// Read returns a function that predicts as [Engine.Next] does, for one text. It keeps the keys and
// values of the tokens of the last call. If the next tokens begin with those, and x is the same
// vector, which must not have changed, it computes only the others, so that a token takes a time
// that hardly depends on how many come before it. Else it begins anew. The text may have as many
// tokens as the network has positions. In a window that slides beyond that each token gets another
// position, so that all are computed, as in Next.
//
// For windows of up to 256 tokens the logits have the bits of Next. Longer ones, which that
// computes in blocks, differ by rounding. The function belongs to one goroutine at a time.
func (e *Engine) Read() (next func(out []float64, x device.Vector, tokens []uint16) error, err error) {
	if !e.tokens {
		return nil, fmt.Errorf("model: %s reads no text, want a language model", e.name)
	}
	r := &reading{engine: e, capacity: e.inputs}
	if e.block > 0 {
		r.capacity = e.block
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.plan(planKey{1, 1, Continue})
	if err != nil {
		return nil, err
	}
	r.cache = e.dev.NewVector(p.Code().Buffers)
	return r.next, nil
}

// next is the function of Read.
func (r *reading) next(out []float64, x device.Vector, tokens []uint16) error {
	known := 0
	if x == r.x && len(tokens) > len(r.read) && slices.Equal(tokens[:len(r.read)], r.read) {
		known = len(r.read)
	}
	slides := known == 0 && len(r.read) > 0 && len(tokens) == r.capacity
	if slides || len(tokens) > r.capacity || len(tokens) == 0 || len(out) != r.engine.classes {
		return r.engine.Next(out, x, tokens)
	}
	r.x, r.read = x, r.read[:known]
	for known < len(tokens) {
		n := 1
		if len(tokens)-known >= partTokens {
			n = partTokens
		}
		if err := r.take(out, tokens[known:known+n]); err != nil {
			return err
		}
		known += n
	}
	return nil
}

// take reads the next tokens and writes the logits of the one that follows.
func (r *reading) take(out []float64, tokens []uint16) error {
	e := r.engine
	r.part = r.part[:0]
	for _, t := range tokens {
		r.part = append(r.part, float32(t))
	}
	p, err := e.acquire(planKey{1, len(tokens), Continue})
	if err != nil {
		return err
	}
	defer e.release(planKey{1, len(tokens), Continue}, p)
	batch := device.Batch{X: r.part, Y: []int32{int32(len(r.read))}}
	if err := p.RunBuffered(r.x, nil, r.cache, 0, batch, out); err != nil {
		return err
	}
	r.read = append(r.read, tokens...)
	return nil
}
