package acceptance

import (
	"context"
	"strconv"
	"time"
)

// languagePart is the gradient of a language model.
const languagePart = "gpt2/bf16"

// language measures the gradient of a language model, here and in PyTorch in turns.
func (o *Options) language() Part {
	return Part{Name: languagePart, Limit: o.limit(time.Minute), Run: func(ctx context.Context, b *job) error {
		p, err := b.startPeer(ctx)
		if err != nil {
			return err
		}
		defer p.close()
		l := b.shapes().language
		for range b.shapes().rounds {
			if err := b.ourGradient(ctx, l.args(b, b.shapes().turn)); err != nil {
				return err
			}
			for _, compiled := range b.shapes().modes(l.precision) {
				if err := b.peers(ctx, p, compiled, float64(l.batch*l.window), l.request()); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// languageModel is a gradient of a language model that is measured.
type languageModel struct {
	model, precision          string
	layers, heads, width      int
	batch, window, vocabulary int // windows of a batch, tokens of a window, different tokens
}

// args returns the command that measures it for some time.
func (l languageModel) args(b *job, turn string) []string {
	return b.benchNetwork(l.model, l.precision, l.batch, turn, "--classes", strconv.Itoa(l.vocabulary))
}

// request asks the peer for the same.
func (l languageModel) request() map[string]any {
	return map[string]any{"kind": "language", "layers": l.layers, "heads": l.heads, "width": l.width,
		"batch": l.batch, "window": l.window, "vocabulary": l.vocabulary, "precision": l.precision}
}
