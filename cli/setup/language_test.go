package setup

import (
	"testing"

	"fspda/model"
	"fspda/train"
)

// The configuration has defaults of every language model, for windows of its length.
func TestLanguageModelDefaults(t *testing.T) {
	for _, name := range model.TransformerNames() {
		c := train.Default()
		c.Model = name
		c.SetExplicit("model")
		sizes, _ := model.NamedTransformer(name, model.Transformer{})
		if d := c.Defaults(); d.Model != name || d.Window() != sizes.Block {
			t.Errorf("%s: defaults of %s with windows of %d tokens, want %d", name, d.Model, d.Window(), sizes.Block)
		}
	}
}
