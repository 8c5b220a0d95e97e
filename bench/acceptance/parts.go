package acceptance

import (
	"fmt"
	"slices"
	"time"

	"fspda/bench"
)

// Precisions that are judged, and the one that is shown beside them.
var (
	judged = []string{"bf16", "fp16"}
	all    = []string{"fp32", "tf32", "fp16", "bf16"}
)

// Parts lists the parts, the most important first.
func (o *Options) Parts() []Part {
	s := o.shapes()
	parts := []Part{o.selftest("fp32"), o.step("fp32"), o.sparse()}
	networks := o.networks()
	parts = append(parts, networks[:min(2, len(networks))]...)
	parts = append(parts, o.memory(), o.curve(), o.repeat(), o.idle(), o.selftest("bf16"), o.selftest("fp16"),
		o.selftest("tf32"), o.million(s))
	if o.Device != "cpu" {
		parts = append(parts, o.launches())
	}
	return append(append(parts, networks[min(2, len(networks)):]...), o.step("tf32"))
}

// gradient is a measured gradient of a large network.
type gradient struct {
	network, precision string
	batch, pixels      int
}

func (g gradient) name() string {
	return fmt.Sprintf("%s/%s-%d-%d", g.network, g.precision, g.batch, g.pixels)
}

// gradients returns the gradients of the large network in some precisions, by precision and batch.
func (s shapes) gradients(precisions []string) (all []gradient) {
	for _, precision := range precisions {
		for _, batch := range s.batches {
			for _, pixels := range s.pixels {
				all = append(all, gradient{s.network, precision, batch, pixels})
			}
		}
	}
	return all
}

// networks are the gradients of the large network: in the precisions that are judged first, the two
// ends before what lies between them.
func (o *Options) networks() (parts []Part) {
	s := o.shapes()
	type shape struct{ batch, pixels int }
	var sizes []shape
	for _, pixels := range s.pixels {
		for _, batch := range s.batches {
			sizes = append(sizes, shape{batch, pixels})
		}
	}
	add := func(precision string, z shape) {
		parts = append(parts, o.gradient(gradient{s.network, precision, z.batch, z.pixels}))
	}
	for i, z := range sizes {
		add(judged[0], z)
		add(judged[1], sizes[len(sizes)-1-i])
	}
	for _, z := range sizes {
		add("tf32", z)
	}
	return parts
}

// names returns the names of all parts.
func (o *Options) names() []string {
	var all []string
	for _, p := range o.Parts() {
		all = append(all, p.Name)
	}
	return all
}

// chosen returns the parts to run: those selected by name, else all unfinished ones.
func (o *Options) chosen(r *Results) []Part {
	return slices.DeleteFunc(o.Parts(), func(p Part) bool {
		if o.Only != "" {
			return !bench.Selects(o.Only, p.Name)
		}
		have := r.outcome(p.Name)
		return have != nil && have.Status == Done
	})
}

// limit returns the time limit of a part.
func (o *Options) limit(d time.Duration) time.Duration {
	if o.Device == "cpu" { // cores are few, and tests run beside it
		return 3 * d
	}
	return d
}
