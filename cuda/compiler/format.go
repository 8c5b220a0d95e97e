package compiler

import (
	"fspda/cuda/kernels"
	"fspda/device"
)

// format is the number format of an operand.
type format uint8

const (
	float32Format  format = iota // float32
	halfFormat                   // 16 bits
	positionFormat               // a byte: the position of a maximum in its pooling window
)

// operandFormats is the formats that a kernel reads and writes in a 16-bit program, a letter for
// each operand: w is float32, h 16 bits, p positions. e is float32 if any other e must be, else 16
// bits. o is an output that is float32 if any reader wants it so. b is a bias, which has the format
// of the output where cuBLASLt adds it.
type operandFormats struct{ in, out string }

// kernelFormats lists all kernels. Activations, their gradients, and the weights that products and
// convolutions read have 16 bits; parameters of batch normalisation, statistics, losses and the
// gradients of parameters are float32. In language models the sum of the layers, its gradient and
// the logits are float32 too, unless findWide finds the logits.
var kernelFormats = map[device.Kernel]operandFormats{
	device.Linear:                   {"hhb", "o"},
	device.LinearSigmoid:            {"hhb", "o"},
	device.LinearReLU:               {"hhb", "o"},
	device.LinearGradX:              {"hh", "o"},
	device.LinearGradXSigmoid:       {"hhh", "h"},
	device.LinearGradXReLU:          {"hhh", "h"},
	device.LinearGradW:              {"hh", "ww"},
	device.LinearGradWDecay:         {"hhw", "ww"},
	device.Sigmoid:                  {"e", "e"},
	device.ReLU:                     {"e", "e"},
	device.SigmoidGrad:              {"ee", "e"},
	device.ReLUGrad:                 {"ee", "e"},
	device.SoftmaxCrossEntropy:      {"ww", "ww"},
	device.SoftmaxCrossEntropyMixed: {"ww", "ww"},
	device.Score:                    {"ww", "w"},

	device.HalfSquare:  {"w", "w"},
	device.Scale:       {"e", "e"},
	device.ScaleBy:     {"ww", "w"},
	device.Add:         {"ee", "e"},
	device.AddScaled:   {"ee", "e"},
	device.Dropout:     {"ew", "e"},
	device.MoveAverage: {"www", "w"},

	device.Conv:      {"hh", "h"},
	device.ConvGradX: {"hh", "h"},
	device.ConvGradW: {"hh", "w"},

	device.BatchNorm:            {"hww", "hww"},
	device.BatchNormReLU:        {"hww", "hww"},
	device.BatchNormAddReLU:     {"hwwh", "hww"},
	device.BatchNormGrad:        {"hhwww", "hww"},
	device.BatchNormReLUGrad:    {"hhhwww", "hww"},
	device.BatchNormAddReLUGrad: {"hhhwww", "hhww"},
	device.Normalize:            {"hwwww", "h"},
	device.NormalizeReLU:        {"hwwww", "h"},
	device.NormalizeAddReLU:     {"hwwwwh", "h"},

	device.AddBias:         {"hw", "h"},
	device.AddBiasReLU:     {"hw", "h"},
	device.AddBiasGrad:     {"h", "w"},
	device.AddBiasReLUGrad: {"hh", "hw"},

	device.GroupNorm:            {"hww", "hww"},
	device.GroupNormReLU:        {"hww", "hww"},
	device.GroupNormAddReLU:     {"hwwh", "hww"},
	device.GroupNormGrad:        {"hhwww", "hww"},
	device.GroupNormReLUGrad:    {"hhhwww", "hww"},
	device.GroupNormAddReLUGrad: {"hhhwww", "hhww"},
	device.EvoNorm:              {"hwww", "hww"},
	device.EvoNormGrad:          {"hhwwww", "hwww"},

	device.MaxPool:     {"h", "hp"},
	device.MaxPoolGrad: {"hp", "h"},
	device.AvgPool:     {"h", "h"},
	device.AvgPoolGrad: {"h", "h"},

	device.Embed:             {"www", "w"},
	device.EmbedGrad:         {"ww", "ww"},
	device.EmbedGradAdd:      {"www", "ww"},
	device.TokenEmbed:        {"ww", "w"},
	device.TokenEmbedGrad:    {"ww", "w"},
	device.TokenEmbedGradAdd: {"www", "w"},
	device.LastToken:         {"w", "w"},
	device.EmbedStep:         {"wwww", "w"},

	device.Product:      {"hh", "o"},
	device.ProductGradW: {"hh", "w"},

	device.LayerNorm:             {"www", "hww"},
	device.LayerNormPlain:        {"ww", "hww"},
	device.LayerNormGrad:         {"whwww", "www"},
	device.LayerNormPlainGrad:    {"whwww", "ww"},
	device.AddLayerNorm:          {"whww", "whww"},
	device.AddLayerNormPlain:     {"whw", "whww"},
	device.LayerNormGradAdd:      {"whwwww", "www"},
	device.LayerNormPlainGradAdd: {"whwwww", "ww"},
	device.RMSNorm:               {"ww", "hw"},
	device.RMSNormGrad:           {"whww", "ww"},

	device.GELUTanh:            {"h", "h"},
	device.GELUTanhGrad:        {"hh", "h"},
	device.GELUErf:             {"h", "h"},
	device.GELUErfGrad:         {"hh", "h"},
	device.LinearGELUTanh:      {"hhb", "hh"},
	device.LinearGELUErf:       {"hhw", "hh"},
	device.ProductGELUTanh:     {"hh", "hh"},
	device.ProductGELUErf:      {"hh", "hh"},
	device.LinearGradXGELUTanh: {"hhh", "h"},
	device.LinearGradXGELUErf:  {"hhh", "h"},
	device.SwiGLU:              {"h", "h"},
	device.SwiGLUGrad:          {"hh", "h"},

	device.RoPE:          {"w", "w"},
	device.RoPEGrad:      {"w", "w"},
	device.RoPEStep:      {"ww", "w"},
	device.Attention:     {"h", "hw"},
	device.AttentionGrad: {"hhwh", "h"},
	device.AttentionStep: {"www", "ww"},
}

func (p *planner) activations() format {
	if p.element == kernels.F32 {
		return float32Format
	}
	return halfFormat
}

// formatOf returns the format of a letter; ok is false for e, o and b of a 16-bit program, which
// depend on other operands. All operands of a float32 program are float32.
func (p *planner) formatOf(letter byte) (f format, ok bool) {
	switch {
	case letter == 'w' || p.element == kernels.F32:
		return float32Format, true
	case letter == 'h':
		return halfFormat, true
	case letter == 'p':
		return positionFormat, true
	}
	return float32Format, false
}
