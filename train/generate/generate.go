package generate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"fspda/device"
	"fspda/internal/rng"
)

// Model is a language model on a device.
type Model interface {
	// Read returns a function for one text. It writes the logits of the token that follows the given
	// ones, one for each token of the vocabulary, to out. It may keep results of a call for the
	// next one, which often has the same tokens and one more.
	Read() (next func(out []float64, x device.Vector, tokens []uint16) error, err error)
}

// Choice says how a token is drawn from logits.
type Choice struct {
	// Temperature divides the logits; 0 takes the token with the largest logit, of equal ones the
	// first.
	Temperature float64
	// TopK keeps the k largest logits and those equal to the smallest of them; 0 keeps all.
	TopK int
}

// Options configures [Tokens].
type Options struct {
	Choice
	Vocabulary   int    // tokens of the model
	Block        int    // the longest context that the model reads
	Count        int    // tokens to draw
	Seed, Sample uint64 // seed of the draws, and number of the sample
}

// Tokens draws tokens that follow a prompt, which has at least one, and calls see with each. It
// ends with the error of see, of the model, or of the context.
func Tokens(ctx context.Context, m Model, x device.Vector, prompt []uint16, o Options,
	see func(token uint16) error) error {

	if len(prompt) == 0 {
		return fmt.Errorf("generate: the prompt has no tokens, want at least one to begin with")
	}
	if err := o.Check(); err != nil {
		return err
	}
	for i, t := range prompt {
		if int(t) >= o.Vocabulary {
			return fmt.Errorf("generate: token %d of the prompt is %d, want 0 to %d", i, t, o.Vocabulary-1)
		}
	}
	read, err := m.Read()
	if err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	so := slices.Clone(prompt[max(0, len(prompt)-o.Block):])
	stream := rng.New(o.Seed, "sample", o.Sample)
	logits, scratch := make([]float64, o.Vocabulary), make([]float64, o.Vocabulary)
	for range o.Count {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := read(logits, x, so); err != nil {
			return fmt.Errorf("generate: %w", err)
		}
		next, err := o.Draw(logits, scratch, &stream)
		if err != nil {
			return err
		}
		if err := see(next); err != nil {
			return err
		}
		if len(so) == o.Block {
			so = so[:copy(so, so[1:])]
		}
		so = append(so, next)
	}
	return nil
}

// Check refuses a temperature below 0 or not finite, and a negative TopK.
func (c Choice) Check() error {
	switch {
	case !(c.Temperature >= 0) || math.IsInf(c.Temperature, 0):
		return fmt.Errorf("generate: temperature %v, want a finite number of at least 0", c.Temperature)
	case c.TopK < 0:
		return fmt.Errorf("generate: top-k %d, want 1 or more, or 0 for all", c.TopK)
	}
	return nil
}

// ErrLogits is the error of logits that are not numbers.
var ErrLogits = errors.New("generate: logits are not numbers")

// Draw draws a token: the first whose running sum of the probabilities, the softmax of the logits
// over the temperature, exceeds the next number of the stream. scratch has the length of logits. It
// returns an error for logits that are not numbers.
func (c Choice) Draw(logits, scratch []float64, s *rng.Stream) (uint16, error) {
	best := 0
	for i, v := range logits {
		if math.IsNaN(v) || math.IsInf(v, 1) {
			return 0, fmt.Errorf("%w: that of token %d is %v: has the training diverged?", ErrLogits, i, v)
		}
		if v > logits[best] {
			best = i
		}
	}
	if c.Temperature == 0 {
		return uint16(best), nil
	}
	least := math.Inf(-1)
	if c.TopK > 0 && c.TopK < len(logits) {
		copy(scratch, logits)
		slices.Sort(scratch)
		least = scratch[len(scratch)-c.TopK]
	}
	sum := 0.0
	for i, v := range logits {
		scratch[i] = 0
		if v >= least {
			scratch[i] = math.Exp((v - logits[best]) / c.Temperature)
			sum += scratch[i]
		}
	}
	u, running, last := s.Float64(), 0.0, best
	for i, p := range scratch {
		if p == 0 {
			continue
		}
		if running += p / sum; running > u {
			return uint16(i), nil
		}
		last = i
	}
	return uint16(last), nil // the rounded sum may stay below 1
}
