package acceptance

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// gradient measures the large network in a precision, here and in PyTorch in turns.
func (o *Options) gradient(g gradient) Part {
	return Part{g.name(), o.limit(150 * time.Second), func(ctx context.Context, b *job) error {
		p, err := b.startPeer(ctx)
		if err != nil {
			return err
		}
		defer p.close()
		s := b.shapes()
		for range s.rounds {
			if err := b.ourGradient(ctx, g); err != nil {
				return err
			}
			for _, compiled := range s.modes(g.precision) {
				err := b.peers(ctx, p, compiled, float64(g.batch), map[string]any{"kind": "network", "model": g.network,
					"batch": g.batch, "size": g.pixels, "precision": g.precision})
				if err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// ourGradient measures a gradient here once.
func (b *job) ourGradient(ctx context.Context, g gradient) error {
	var r struct {
		Images   float64 `json:"images_s"`
		Roofline float64 `json:"roofline"`
		CopyRate float64 `json:"copy_gb_s"`
	}
	args := []string{"bench", "network", "--device", b.Device, "--model", g.network, "--batch", strconv.Itoa(g.batch),
		"--size", strconv.Itoa(g.pixels), "--time", b.shapes().turn, "--json"}
	if b.Device != "cpu" {
		args = append(args, "--precision", g.precision)
	}
	if err := b.report(ctx, "ours", &r, args...); err != nil {
		return err
	}
	b.out.best("ours", r.Images)
	if r.Roofline > 0 {
		b.out.best("roofline", r.Roofline)
		b.out.best("copy", r.CopyRate)
	}
	b.summarizeGradient()
	return nil
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
	words := []string{fmt.Sprintf("%.4g a second", v["ours"])}
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
