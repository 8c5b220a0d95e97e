package config

import (
	"fmt"
	"strings"

	"fspda/train/setting"
)

// aboutHeads are the heads of the columns of the table of methods.
var aboutHeads = []string{"method", "sends over an edge", "bits an iteration", "vectors", "agents of different data",
	"graphs", "source"}

func (m method) aboutCells() []string {
	a := m.traits.About
	return []string{m.Name, a.Travels, a.Bits, a.Keeps, a.Skew, a.Graphs, a.Source}
}

// methodLegend explains MethodHelp.
const methodLegend = `In the formulas |E_t| is the number of active edges, n that of agents, d the length of the model, k the number
of coordinates that an exchange carries (--density), v the bits of a value (32, or 16 with --wire fp16) and iota
those of an index. Bits are those of all agents together. Vectors are what an agent keeps besides model, gradient and
optimizer. "exact" means that agents of different data, with exact gradients and a constant step size, reach the
minimum of the common objective; the others end at a distance from it. Settings with their default in brackets are
set by --param NAME=VALUE, the others are flags.

`

// MethodHelp is the table of all methods as text: a paragraph for each, with its settings.
func MethodHelp() string {
	var b strings.Builder
	b.WriteString(methodLegend)
	for _, m := range registered() {
		cells := m.aboutCells()
		fmt.Fprintf(&b, "%s\n", cells[0])
		for k, head := range aboutHeads[1:] {
			if cells[k+1] != "" { // a method of another program may not say it
				fmt.Fprintf(&b, "  %-26s %s\n", head, cells[k+1])
			}
		}
		if m.realTime() {
			fmt.Fprintf(&b, "  %-26s %s\n", "clocks", "virtual time, real time")
		}
		fmt.Fprintf(&b, "  %-26s %s\n", "settings", m.settings())
		fmt.Fprintf(&b, "  %-26s %s\n", "optimizers", m.optimizers())
	}
	return b.String()
}

// settings lists the flags that the method reads and not every one has, and its own settings.
func (m method) settings() string {
	var words []string
	if m.traits.Dual {
		words = append(words, "--eta")
	}
	for _, key := range m.keys() {
		words = append(words, "--"+strings.ReplaceAll(key, "_", "-"))
	}
	if m.traits.Mixing {
		words = append(words, "--mixing")
	}
	if m.traits.Masks {
		words = append(words, "--density", "--mask")
	}
	for _, p := range m.Params {
		words = append(words, fmt.Sprintf("%s (%s)", p.Name, setting.Text(p.Initial())))
	}
	if len(words) == 0 {
		return "none of its own"
	}
	return strings.Join(words, ", ")
}

// optimizers lists the values of the key optimizer, the default first.
func (m method) optimizers() string { return strings.Join(namesOf(m.admits()), ", ") }
