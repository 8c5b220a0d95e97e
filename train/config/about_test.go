package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fspda/internal/testing/doctable"
	"fspda/train/setting"
)

// TestGeneratedTables compares tables of the documentation with the code. With -update it writes
// them.
func TestGeneratedTables(t *testing.T) {
	doctable.Check(t, "../../docs/methods.md", "methods", methodTable())
	doctable.Check(t, "../../docs/training-reference.md", "optimizers", optimizerTable())
}

// Each algorithm of this module has a line in the table of methods, without empty cells.
func TestMethodTable(t *testing.T) {
	for _, m := range builtin {
		if i := slices.Index(m.aboutCells(), ""); i >= 0 {
			t.Errorf("%s has no %q in the table of methods", m.Name, aboutHeads[i])
		}
		if !strings.Contains(methodTable(), "| `"+m.Name+"` |") || !strings.Contains(MethodHelp(), m.Name+"\n") {
			t.Errorf("%s is not in the table of methods", m.Name)
		}
		at := slices.IndexFunc(new(Config).Fields(), func(f Field) bool { return f.Name == "algo" })
		if !strings.Contains(new(Config).Fields()[at].Help, m.Name) {
			t.Errorf("%s is not in the help of the key algo", m.Name)
		}
	}
}

// methodTable is the table of all methods as Markdown.
func methodTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| %s |\n|%s\n", strings.Join(aboutHeads, " | "), strings.Repeat("---|", len(aboutHeads)))
	for _, m := range registered() {
		cells := m.aboutCells()
		cells[0] = "`" + cells[0] + "`"
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(cell, "|", `\|`) // the bars of a number of edges
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String() + "\n"
}

// optimizerTable is the table of all optimizers as Markdown.
func optimizerTable() string {
	var b strings.Builder
	b.WriteString("\n| `optimizer` | settings (default) | direction | vectors | a step is as long as | " +
		"`decay_form: auto` | methods |\n|---|---|---|---|---|---|---|\n")
	r := resolving(Default())
	for _, o := range optimizersWith(func(Optimizer) bool { return true }) {
		vectors, length, decay, of := 0, "the gradient", decayCoupled, "any"
		if o.New != nil {
			r.Params = settle(o.Params, nil)
			vectors = len(o.New(r.optimizerSettings(o, ModelSize{})).Vectors())
		}
		if o.UnitSteps {
			length = "alpha"
		}
		if o.Decoupled {
			decay = decayDecoupled
		}
		if !o.General {
			of = "`" + setting.Either(withFeature(func(m method) bool { return m.takes(o.Name) })) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %s | `%s` | %s |\n", o.Name, settingsOf(o), o.Rule, vectors, length,
			decay, of)
	}
	return b.String() + "\n"
}

// settingsOf lists the keys and parameters that an optimizer reads, with their defaults.
func settingsOf(o Optimizer) string {
	var words []string
	if o.Momentum > 0 {
		words = append(words, fmt.Sprintf("`momentum` (%v)", o.Momentum))
	}
	for _, key := range o.Keys {
		words = append(words, fmt.Sprintf("`%s` (%s)", key, defaultText(key)))
	}
	for _, p := range o.Params {
		words = append(words, fmt.Sprintf("`%s` (%s)", p.Name, setting.Text(p.Initial())))
	}
	return strings.Join(words, ", ")
}

// defaultText is the default of a key as text.
func defaultText(key string) string {
	k, _ := Lookup(key)
	return fmt.Sprint(k.Initial())
}
