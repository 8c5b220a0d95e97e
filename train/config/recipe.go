package config

import (
	"fmt"
	"slices"

	"fspda/train/setting"
)

// recipeNone is the value of the key recipe without one.
const recipeNone = "none"

// recipe is a list of values for keys that are not set.
type recipe struct {
	name   string
	values []recipeValue
}

type recipeValue struct {
	key   string
	value any
}

// recipes lists the recipes.
//
// resnet50-2021 is torchvision's reference of the weights IMAGENET1K_V2 of ResNet-50 (Vryniotis, How
// to train state-of-the-art models using TorchVision's latest primitives, 2021), for batches of 128
// on each of eight devices. Its program averages weights every 32 iterations with 1 - 1.09e-3, here
// every iteration with the 32nd root. It evaluates pictures of 232 cut to 224, with networks trained
// on 176; here evaluation sees as many pixels as training, of a picture larger by the same ratio.
//
// cifar-2021 has the step size, weight decay, length and batch with which Müller and Hutter
// (TrivialAugment, 2021) train on CIFAR, and all else of the first, with a shorter average.
var recipes = []recipe{
	{"resnet50-2021", append([]recipeValue{{"model", "resnet50"}, {"crop", 176}, {"image_size", 182},
		{"augment", "imagenet"}, {"repeat_augment", 4}, {"epochs", 600.0}, {"alpha", 0.5}, {"weight_decay", 2e-5},
		{"average", "ema(0.999966)"}}, means...)},
	{"cifar-2021", append([]recipeValue{{"model", "resnet56"}, {"augment", "cifar"}, {"epochs", 200.0}, {"alpha", 0.1},
		{"weight_decay", 5e-4}, {"average", "ema(0.999)"}}, means...)},
}

// means are the values that the recipes have in common.
var means = []recipeValue{{"auto_augment", "trivialaugment"}, {"random_erase", 0.1}, {"mixup", 0.2}, {"cutmix", 1.0},
	{"batch", 128}, {"momentum", 0.9}, {"schedule", scheduleCosine}, {"warmup", 5.0}, {"decay", "no-norm"},
	{"label_smoothing", 0.1}}

// Recipes lists the values of the key recipe.
func Recipes() []string {
	names := []string{recipeNone}
	for _, r := range recipes {
		names = append(names, r.name)
	}
	return names
}

// recipeValues returns the values of the recipe of c, none for unknown names, which Check refuses. A
// number of iterations that is set takes the place of epochs.
func (c Config) recipeValues() []recipeValue {
	i := slices.IndexFunc(recipes, func(r recipe) bool { return r.name == c.Recipe })
	if i < 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(recipes[i].values), func(v recipeValue) bool {
		return v.key == "epochs" && slices.Contains(c.explicit, "iterations")
	})
}

// UseRecipe gives the keys of the recipe its values, but for keys that are set. The recipe must be
// set itself: a resolved configuration has all values.
func (c *Config) UseRecipe() error {
	if !slices.Contains(c.explicit, "recipe") {
		return nil
	}
	for _, v := range c.recipeValues() {
		if slices.Contains(c.explicit, v.key) {
			continue
		}
		fs := c.fields()
		at := slices.IndexFunc(fs, func(f Field) bool { return f.Name == v.key })
		if err := read(fs[at].Value, v.value); err != nil {
			return err
		}
	}
	return nil
}

// RecipeLines lists the values of the recipe of the run, and the keys that keep others or have no
// effect; nil without a recipe.
func (s *Setup) RecipeLines() []string {
	var lines []string
	given := s.Config.given
	for _, v := range given.recipeValues() {
		line := fmt.Sprintf("  %s %s", v.key, setting.Text(v.value))
		needs := s.missing(v.key, given)
		switch f := setting.Text(given.Value(v.key)); {
		case needs != "":
			line += ": no effect here, since it needs " + needs
		case f != setting.Text(v.value):
			line += ": " + f + " is set"
		}
		lines = append(lines, line)
	}
	if lines != nil {
		lines = slices.Insert(lines, 0, "recipe "+given.Recipe+":")
	}
	return lines
}
