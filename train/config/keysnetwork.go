package config

import (
	"fspda/model"
	"fspda/train/setting"
)

// NetworkKeys choose the network and its initial weights.
type NetworkKeys struct {
	Model      string  `key:"model"`
	Hidden     Widths  `key:"hidden"`
	Activation string  `key:"activation"`
	Layers     int     `key:"layers"`
	Heads      int     `key:"heads"`
	Width      int     `key:"width"`
	GELU       string  `key:"gelu"`
	Bias       bool    `key:"bias"`
	Dropout    float64 `key:"dropout"`
	Block      int     `key:"block"`
	Init       string  `key:"init"`
	Head       string  `key:"init_head"`
}

var networkKeys = []setting.Key{
	{Name: "model", Topic: "network", Default: "mlp", Names: model.Names,
		Help: "network: mlp, resnet18, 34, 50, 101 or 152 for large images, resnet20, 32, 44 or 56 for small ones, " +
			"with -gn for group norm or -evonorm for EvoNorm-S0 in place of batch norm, gn-lenet, vgg11, gpt-nano, " +
			"gpt-char, gpt2, gpt2-medium or llama-nano for text, or external, which the program of command computes"},
	{Name: "hidden", Topic: "network", Default: Widths{100},
		Help: "mlp: widths of the hidden layers, comma separated; none is a linear model; language models: width of " +
			"the feed-forward layers, none is 4 times width, llama 8/3 times"},
	{Name: "activation", Topic: "network", Default: "sigmoid", Choices: []string{"sigmoid", "relu"},
		Help: "mlp: sigmoid or relu"},
	{Name: "layers", Topic: "network", Whole: true, Range: "[0, inf)", Want: "at least 0", Since: "0.2.0",
		Help: "language models: number of layers; 0 is that of the network"},
	{Name: "heads", Topic: "network", Whole: true, Range: "[0, inf)", Want: "at least 0", Since: "0.2.0",
		Help: "language models: heads of the attention, which divide width; 0 is the number of the network, or fewer " +
			"where it does not divide width"},
	{Name: "width", Topic: "network", Whole: true, Range: "[0, inf)", Want: "at least 0", Since: "0.2.0",
		Help: "language models: numbers of a token between the layers; 0 is the width of the network"},
	{Name: "gelu", Topic: "network", Default: "tanh", Choices: []string{"tanh", "erf"}, Since: "0.2.0",
		Help: "gpt: form of GELU: tanh, as GPT-2 has it, or erf"},
	{Name: "bias", Topic: "network", Default: true, Since: "0.2.0",
		Help: "gpt: biases in linear and norm layers"},
	{Name: "dropout", Topic: "network", Range: "[0, 1)", Want: "at least 0 and below 1", Since: "0.2.0",
		Help: "share of the numbers that training replaces by 0, the others divided by 1 minus it: mlp, after each " +
			"activation; vgg11, before its hidden dense layers (0.5 in its source); gpt, of the embedding and of " +
			"what each layer adds"},
	{Name: "block", Topic: "network", Whole: true, Range: "[0, inf)", Want: "at least 0", Since: "0.2.0",
		Help: "language models: tokens of a window T, of which each predicts the next; 0 is that of the network"},
	{Name: "init", Topic: "network", Default: "",
		Help: "weights to start from: a safetensors file of this network, as fspda export writes from a run folder; " +
			"empty draws them from the seed"},
	{Name: "init_head", Topic: "network", Default: HeadFile, Choices: []string{HeadFile, HeadNew},
		Needs: []setting.Need{needs("init, a file of weights",
			func(c Config) bool { return c.Init != "" })},
		Since: "0.2.0",
		Help: "init: file (all weights), or new, which draws those of the last layer from the seed, for other " +
			"classes"},
}
