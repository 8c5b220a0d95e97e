package acceptance

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// gradient measures the large network in a precision, here and in PyTorch in turns.
func (o *Options) gradient(g gradient) Part {
	return Part{Name: g.name(), Limit: o.limit(time.Minute), Run: func(ctx context.Context, b *job) error {
		p, err := b.startPeer(ctx)
		if err != nil {
			return err
		}
		defer p.close()
		s := b.shapes()
		for range s.rounds {
			if err := b.ourGradient(ctx, b.network(g, b.shapes().turn)); err != nil {
				return err
			}
			for _, compiled := range s.modes(g.precision) {
				if err := b.peers(ctx, p, compiled, float64(g.batch), g.request()); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// request asks the peer for the same.
func (g gradient) request() map[string]any {
	return map[string]any{"kind": "network", "model": g.network, "batch": g.batch, "size": g.pixels,
		"precision": g.precision}
}

// ourGradient measures a gradient here once, by a command.
func (b *job) ourGradient(ctx context.Context, command []string) error {
	var r struct {
		Images   float64 `json:"images_s"`
		Tokens   float64 `json:"tokens_s"`
		Roofline float64 `json:"roofline"`
		CopyRate float64 `json:"copy_gb_s"`
	}
	if err := b.report(ctx, "ours", &r, command...); err != nil {
		return err
	}
	b.out.best("ours", cmp.Or(r.Tokens, r.Images))
	if r.Roofline > 0 {
		b.out.best("roofline", r.Roofline)
		b.out.best("copy", r.CopyRate)
	}
	b.summarizeGradient()
	return nil
}

// network returns the command that measures a gradient for some time.
func (b *job) network(g gradient, turn string) []string {
	return b.benchNetwork(g.network, g.precision, g.batch, turn, "--size", strconv.Itoa(g.pixels))
}

func (b *job) benchNetwork(model, precision string, batch int, turn string, more ...string) []string {
	args := with([]string{"bench", "network", "--device", b.Device, "--model", model, "--batch", strconv.Itoa(batch),
		"--time", turn, "--json"}, more...)
	if b.Device != "cpu" {
		args = append(args, "--precision", precision)
	}
	return args
}

// tuning has the device choose the convolutions of a gradient, half a second each, which would
// otherwise happen within the limit of the gradient. The choices made when its time is over are
// kept, and the gradient makes the rest.
func (o *Options) tuning(g gradient) Part {
	return Part{Name: g.network + "/tune-" + g.shape(), Limit: o.limit(45 * time.Second),
		Run: func(ctx context.Context, b *job) error {
			_, err := b.program(ctx, b.network(g, "1ms")...)
			lines, listed := b.ReadChoices()
			if listed == nil {
				known := bytes.Count(lines, []byte("\n"))
				b.out.set("choices", float64(known))
				b.out.Summary = fmt.Sprintf("%d choices of convolutions are known", known)
			}
			return err
		}}
}

// peers measures PyTorch once, eager or compiled. items is the number of items per run.
func (b *job) peers(ctx context.Context, p *peer, compiled bool, items float64, request map[string]any) error {
	name := "eager"
	if compiled {
		name = "compiled"
	}
	request["compiled"], request["seconds"] = compiled, b.shapes().turns
	ns, why, err := p.time(ctx, request)
	switch {
	case err != nil:
		return err
	case why != "":
		if p.none == "" {
			why = name + ": " + why
		}
		b.out.note(why)
		return b.save()
	}
	b.out.best(name, 1e9*items/ns)
	b.out.set(name+"_ratio", b.out.Values["ours"]/b.out.Values[name])
	b.summarizeGradient()
	return b.save()
}

// summarizeGradient updates the summary of the outcome.
func (b *job) summarizeGradient() {
	v := b.out.Values
	words := []string{fmt.Sprintf("%.6g a second", math.Round(v["ours"]))}
	if r, ok := v["roofline"]; ok {
		words = append(words, fmt.Sprintf("%.0f %% of the roofline", 100*r))
	}
	for _, name := range []string{"eager", "compiled"} {
		if r, ok := v[name+"_ratio"]; ok {
			words = append(words, fmt.Sprintf("%.2f × PyTorch %s", r, name))
		}
	}
	b.out.Summary = strings.Join(words, ", ")
}
