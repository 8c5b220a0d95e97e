package modelcmd

import (
	"context"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"fspda/cli/command"
	"fspda/device"
	"fspda/train"
)

// textReport is the output of fspda eval for a language model.
type textReport struct {
	Network string       `json:"network"`
	Data    string       `json:"data"`
	Split   string       `json:"split"`
	Windows int          `json:"windows"`
	Tokens  int          `json:"tokens"` // tokens that were predicted
	Models  []textScores `json:"models"`
}

// textScores are the results of one model.
type textScores struct {
	Model       string     `json:"model"`
	Loss        train.Num  `json:"loss"` // nats a token
	Perplexity  train.Num  `json:"perplexity"`
	BitsPerByte *train.Num `json:"bits_per_byte"` // null: the tokenizer is not known
	Accuracy    float64    `json:"accuracy"`      // accuracy of the next token
	Top5        float64    `json:"top5"`
}

// windowTokens is about the number of tokens that are scored at a time.
const windowTokens = 4096

// evalText scores language models on all windows of a split.
func (t *target) evalText(ctx context.Context, split string) (fmt.Stringer, error) {
	n, length := t.split.Len(), t.set.Features()
	r := &textReport{Network: t.Network, Data: t.set.Name, Split: split, Windows: n, Tokens: n * length}
	size := max(1, windowTokens/length)
	stream := t.set.Text.Val
	if split == "train" {
		stream = t.set.Text.Train
	}
	bytes := float64(t.set.Text.Bytes(stream)) / float64(len(stream)) // mean bytes of a token
	var b device.Batch
	for _, m := range t.models {
		x := t.dev.NewVector(len(m.x))
		t.dev.Write(x, m.x)
		s, sum := textScores{Model: m.of}, 0.0
		for from := 0; from < n; from += size {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err := t.split.Batch(&b, from, min(from+size, n)); err != nil {
				return nil, err
			}
			loss, hits, hits5, err := t.engine.Score(x, b)
			if err != nil {
				return nil, err
			}
			sum, s.Accuracy, s.Top5 = sum+loss, s.Accuracy+hits, s.Top5+hits5
		}
		all := float64(r.Tokens)
		loss := sum / all
		s.Loss, s.Perplexity = train.Num(loss), train.Num(math.Exp(loss))
		s.Accuracy, s.Top5 = s.Accuracy/all, s.Top5/all
		if bytes > 0 {
			bits := train.Num(loss / math.Ln2 / bytes)
			s.BitsPerByte = &bits
		}
		r.Models = append(r.Models, s)
	}
	return r, nil
}

// String is the report as text: the models side by side.
func (r *textReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s tokens of %s %s windows of %s\n\n", r.Network, command.Thousands(uint64(r.Tokens)),
		command.Thousands(uint64(r.Windows)), r.Split, r.Data)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "model\tloss\tperplexity\tbits per byte\taccuracy\ttop-5")
	for _, s := range r.Models {
		bits := "–"
		if s.BitsPerByte != nil {
			bits = fmt.Sprintf("%.4f", *s.BitsPerByte)
		}
		fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%s\t%s\t%s\n", s.Model, s.Loss, s.Perplexity, bits, command.Percent(s.Accuracy),
			command.Percent(s.Top5))
	}
	_ = w.Flush() // writing to memory gives no error
	return b.String()
}
