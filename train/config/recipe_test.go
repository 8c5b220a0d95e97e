package config

import (
	"slices"
	"strings"
	"testing"

	"fspda/train/setting"
)

// made returns the configuration of a text, as commands make it.
func made(t *testing.T, text string) Config {
	t.Helper()
	c, err := Made(func(c *Config) error { return c.Parse("run.yaml", []byte(text)) })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A recipe sets every key that it lists, to a value that the key admits, but for keys that are set.
func TestRecipes(t *testing.T) {
	for _, r := range recipes {
		c := made(t, "recipe: "+r.name)
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
		for _, v := range r.values {
			if got := setting.Text(c.Value(v.key)); got != setting.Text(v.value) {
				t.Errorf("%s: %s is %s, want %v", r.name, v.key, got, v.value)
			}
		}
		// one's own values, before and behind the recipe, and a length in iterations
		c = made(t, "alpha: 0.25\nrecipe: "+r.name+"\nmixup: 0\niterations: 70")
		if c.Alpha != 0.25 || c.Mixup != 0 || c.Iterations != 70 || c.Epochs != 0 || c.Cutmix != 1 {
			t.Errorf("%s: alpha %v, mixup %v, %d iterations, %v epochs, cutmix %v", r.name, c.Alpha, c.Mixup,
				c.Iterations, c.Epochs, c.Cutmix)
		}
	}
	c := Default()
	c.SetExplicit("recipe") // as the flag does before the file is read
	c.Recipe = "cifar-2021"
	if err := c.Parse("run.yaml", []byte("recipe: resnet50-2021")); err != nil || c.Crop != 0 {
		t.Errorf("the recipe of a file counts beside the flag: crop %d, %v", c.Crop, err)
	}
	if err := c.Parse("run.yaml", []byte("recipe: resnet50-2022")); err != nil {
		t.Fatal(err)
	} else if err := c.Check(); err == nil || !strings.Contains(err.Error(), "resnet50-2021") {
		t.Errorf("an unknown recipe: %v", err)
	}
}

// A run lists the values of its recipe, with those that are set in their place and those that have
// no effect. Its configuration resolves to the same run again, of which the recipe changes nothing.
func TestRecipeLines(t *testing.T) {
	c := small()
	if err := c.Parse("run.yaml", []byte("{recipe: cifar-2021, model: mlp, batch: 8, augment: none, alpha: 0.02, "+
		"iterations: 30}")); err != nil {
		t.Fatal(err)
	}
	s, m := resolve(t, c)
	lines := s.RecipeLines()
	for _, want := range []string{"recipe cifar-2021:", "  model resnet56: mlp is set", "  batch 128: 8 is set",
		"  mixup 0.2", "  label_smoothing 0.1", "  alpha 0.1: 0.02 is set"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q among %q", want, lines)
		}
	}
	again, err := s.Config.Stored().Resolve(labSet, m)
	if err != nil || again.Config.Stored().Fingerprint() != s.Config.Stored().Fingerprint() {
		t.Errorf("the stored configuration is another run: %v", err)
	}
	stored := s.Config.Stored()
	stored.Recipe = recipeNone
	if stored.Fingerprint() != s.Config.Stored().Fingerprint() {
		t.Error("the name of the recipe is part of the fingerprint")
	}
	if lines := (&Setup{}).RecipeLines(); lines != nil {
		t.Errorf("lines %q without a recipe", lines)
	}
}
