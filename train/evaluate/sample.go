package evaluate

import (
	"context"
	"errors"
	"strings"

	"fspda/data/text"
	"fspda/train/generate"
)

// Settings of the samples of text at rows; nanoGPT has the same.
const (
	sampleTemperature = 0.8
	sampleTopK        = 200
)

// sample lets the model x write sample_tokens tokens after a new line, or the first character of
// the vocabulary. It is "" if the run asks for none, the network is no language model, or its
// logits are not numbers.
func (e *Evaluator) sample(x []float32, t int) (string, error) {
	s := e.setup
	if s.Config.SampleTokens == 0 || s.Set.Text == nil || s.Set.Text.Tokenizer == nil {
		return "", nil
	}
	w := e.acquire(0)
	defer e.release(w)
	m, ok := w.Model.(generate.Model)
	if !ok {
		return "", nil
	}
	w.Device.Write(w.x, x)
	tokenizer := s.Set.Text.Tokenizer
	prompt, err := tokenizer.Encode(nil, []byte("\n"))
	if err != nil {
		prompt = []uint16{0}
	}
	var b strings.Builder
	out := text.NewWriter(&b, tokenizer)
	err = generate.Tokens(context.Background(), m, w.x, prompt, generate.Options{Choice: generate.Choice{
		Temperature: sampleTemperature, TopK: sampleTopK}, Vocabulary: s.Set.Classes, Block: s.Window,
		Count: s.Config.SampleTokens, Seed: s.Config.Seed, Sample: uint64(t)}, func(token uint16) error {
		if e.interrupted() {
			return ErrInterrupted
		}
		return out.Token(token)
	})
	if errors.Is(err, generate.ErrLogits) {
		return "", nil
	}
	return b.String(), err
}
