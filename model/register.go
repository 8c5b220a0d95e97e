package model

import "slices"

// registration is a network of another package.
type registration struct {
	name string
	open func(Options) (*Network, error)
}

var registered []registration

// Register adds a network to those that [Open] and [Names] know. Call it from init functions. It
// panics if the name is taken.
func Register(name string, open func(Options) (*Network, error)) {
	if slices.Contains(Names(), name) {
		panic("model: Register: a network is already named " + name)
	}
	registered = append(registered, registration{name, open})
}
