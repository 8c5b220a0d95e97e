package data

import "slices"

// registration is a data set of another package.
type registration struct {
	name string
	open func(OpenOptions) (*Set, error)
}

var registered []registration

// Register adds a data set to those that [Open] and [Names] know. Call it from init functions. It
// panics if the name is taken.
func Register(name string, open func(OpenOptions) (*Set, error)) {
	if slices.Contains(Names(), name) {
		panic("data: Register: a data set is already named " + name)
	}
	registered = append(registered, registration{name, open})
}
