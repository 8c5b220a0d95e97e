package acceptance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fspda/bench/measure"
)

// Precisions that are judged, and the one that is shown beside them.
var (
	judged = []string{"bf16", "fp16"}
	all    = []string{"fp32", "tf32", "fp16", "bf16"}
)

// judged returns the precisions that are judged on this device.
func (o *Options) judged() []string {
	return slices.DeleteFunc(slices.Clone(judged), func(p string) bool { return o.Lacks[p] != "" })
}

// errLacking says why a device cannot do a part.
type errLacking string

func (e errLacking) Error() string { return string(e) }

// in returns a part that computes in a precision, which is skipped on a device without it.
func (o *Options) in(precision string, p Part) Part {
	if why := o.Lacks[precision]; why != "" {
		p.Run = func(context.Context, *job) error { return errLacking(why) }
	}
	return p
}

// Parts lists the parts: the headline, then the others, the most important first.
func (o *Options) Parts() []Part {
	networks := o.networks()
	parts := o.headline()
	parts = append(parts, o.sparse(), o.memory(), o.curve(), o.repeat(), o.idle(),
		o.in("bf16", o.selftest("bf16", longSelftest)), o.selftest("fp16", longSelftest),
		o.in("tf32", o.selftest("tf32", longSelftest)))
	if o.Device != "cpu" {
		parts = append(parts, o.launches())
	}
	parts = append(parts, networks[min(headlineNetworks*o.partsOfNetwork(), len(networks)):]...)
	return append(parts, o.in("tf32", o.step("tf32")))
}

// headlineNetworks is the number of gradients of the large network in the headline: one in each
// precision that is judged.
const headlineNetworks = 2

// headline are the parts that a call of DefaultBudget finishes or cuts off at their limits, which
// add up to it.
func (o *Options) headline() []Part {
	networks := o.networks()
	networks = networks[:min(headlineNetworks*o.partsOfNetwork(), len(networks))]
	if o.Device == "cpu" {
		parts := []Part{o.selftest("fp32", shortSelftest), o.step("fp32")}
		return append(append(parts, networks...), o.language(), o.million(o.shapes()))
	}
	// nothing is timed while PyTorch compiles in the background
	parts := []Part{o.megakernel(), o.alone(), o.selftest("fp32", shortSelftest), o.compilePeer(), o.step("fp32")}
	one := o.partsOfNetwork()
	parts = append(append(parts, networks[:one]...), o.in(o.shapes().language.precision, o.language()))
	return append(append(parts, networks[one:]...), o.million(o.shapes()))
}

// partsOfNetwork is the number of parts of a gradient: one chooses the convolutions, where there
// are several to choose from, and one measures it.
func (o *Options) partsOfNetwork() int {
	if o.Device == "cpu" {
		return 1
	}
	return 2
}

// gradient is a measured gradient of a large network.
type gradient struct {
	network, precision string
	batch, pixels      int
}

func (g gradient) name() string { return g.network + "/" + g.shape() }

func (g gradient) shape() string { return fmt.Sprintf("%s-%d-%d", g.precision, g.batch, g.pixels) }

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

// networks are the gradients of the large network: of the smallest size in the precisions that are
// judged, then of the other sizes from both ends.
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
		g := gradient{s.network, precision, z.batch, z.pixels}
		if o.partsOfNetwork() > 1 {
			parts = append(parts, o.in(precision, o.tuning(g)))
		}
		parts = append(parts, o.in(precision, o.gradient(g)))
	}
	add(judged[0], sizes[0])
	add(judged[1], sizes[0])
	for i := 1; i < len(sizes); i++ {
		add(judged[0], sizes[i])
		add(judged[1], sizes[len(sizes)-i])
	}
	for _, z := range sizes {
		add("tf32", z)
	}
	return parts
}

func (o *Options) names() []string {
	var all []string
	for _, p := range o.Parts() {
		all = append(all, p.Name)
	}
	return all
}

// chosen returns the parts to run: the parts selected by name, else all unfinished ones.
func (o *Options) chosen(r *Results) []Part {
	return slices.DeleteFunc(o.Parts(), func(p Part) bool {
		if o.Only != "" {
			return !measure.Selects(o.Only, p.Name)
		}
		have := r.outcome(p.Name)
		return have != nil && (have.Status == Done || have.Status == Skipped)
	})
}

func (o *Options) limit(d time.Duration) time.Duration {
	if o.most > 0 {
		return min(d, o.most)
	}
	if o.Device == "cpu" || o.Tiny { // cores are few, and tests run beside it
		return 3 * d
	}
	return d
}
