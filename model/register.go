package model

import "slices"

// registered lists the networks of other packages.
var registered []Named

// Register adds a network to those that [Open] and [Names] know, with the keys that it reads
// besides recompute and that not every network reads. Call it from init functions. It panics if the
// name is taken.
func Register(name string, open func(Options) (*Network, error), keys ...string) {
	if slices.Contains(Names(), name) {
		panic("model: Register: a network is already named " + name)
	}
	registered = append(registered, Named{name, append([]string{"recompute"}, keys...), open})
}
