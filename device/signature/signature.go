package signature

import (
	"fmt"
	"strings"

	"fspda/device"
)

// Signature describes a kernel: its dimensions by letter, and the shapes of its operands as
// products of these letters. An operand "1", "3" or "4" has that many elements, and "2mf" twice as
// many as "mf". In window
// kernels t is
// the stride and o the padding; p and q are the height and the width of the output.
type Signature struct {
	Dims    string
	In, Out []string
	InPlace bool // an output may equal one of the inputs
}

// signatures has an entry for every device.Kernel. The documentation of the kernel defines the
// computation.
var signatures = map[device.Kernel]Signature{
	device.Linear:                   {"mnk", []string{"mk", "nk", "n"}, []string{"mn"}, false},
	device.LinearGradX:              {"mnk", []string{"mn", "nk"}, []string{"mk"}, false},
	device.LinearGradW:              {"mnk", []string{"mk", "mn"}, []string{"nk", "n"}, false},
	device.Sigmoid:                  {"n", []string{"n"}, []string{"n"}, true},
	device.SigmoidGrad:              {"n", []string{"n", "n"}, []string{"n"}, true},
	device.ReLU:                     {"n", []string{"n"}, []string{"n"}, true},
	device.ReLUGrad:                 {"n", []string{"n", "n"}, []string{"n"}, true},
	device.SoftmaxCrossEntropy:      {"mn", []string{"mn", "m"}, []string{"1", "mn"}, false},
	device.SoftmaxCrossEntropyMixed: {"mn", []string{"mn", "3m"}, []string{"1", "mn"}, false},
	device.Score:                    {"mn", []string{"mn", "m"}, []string{"3"}, false},
	device.HalfSquare:               {"n", []string{"n"}, []string{"1"}, false},
	device.Scale:                    {"n", []string{"n"}, []string{"n"}, true},
	device.ScaleBy:                  {"n", []string{"n", "1"}, []string{"n"}, true},
	device.Add:                      {"n", []string{"n", "n"}, []string{"n"}, true},
	device.AddScaled:                {"n", []string{"n", "n"}, []string{"n"}, true},
	device.Dropout:                  {"nl", []string{"n", "4"}, []string{"n"}, true},
	device.MoveAverage:              {"n", []string{"n", "n", "1"}, []string{"n"}, true},

	device.LinearSigmoid:      {"mnk", []string{"mk", "nk", "n"}, []string{"mn"}, false},
	device.LinearReLU:         {"mnk", []string{"mk", "nk", "n"}, []string{"mn"}, false},
	device.LinearGradXSigmoid: {"mnk", []string{"mn", "nk", "mk"}, []string{"mk"}, false},
	device.LinearGradXReLU:    {"mnk", []string{"mn", "nk", "mk"}, []string{"mk"}, false},
	device.LinearGradWDecay:   {"mnk", []string{"mk", "mn", "nk"}, []string{"nk", "n"}, false},
	device.Conv:               {"nhwckrsto", []string{"nhwc", "krsc"}, []string{"npqk"}, false},
	device.ConvGradX:          {"nhwckrsto", []string{"npqk", "krsc"}, []string{"nhwc"}, false},
	device.ConvGradW:          {"nhwckrsto", []string{"nhwc", "npqk"}, []string{"krsc"}, false},
	device.BatchNorm:          {"mc", []string{"mc", "c", "c"}, []string{"mc", "c", "c"}, false},
	device.BatchNormReLU:      {"mc", []string{"mc", "c", "c"}, []string{"mc", "c", "c"}, false},
	device.BatchNormAddReLU:   {"mc", []string{"mc", "c", "c", "mc"}, []string{"mc", "c", "c"}, false},
	device.BatchNormGrad:      {"mc", []string{"mc", "mc", "c", "c", "c"}, []string{"mc", "c", "c"}, false},
	device.BatchNormReLUGrad:  {"mc", []string{"mc", "mc", "mc", "c", "c", "c"}, []string{"mc", "c", "c"}, false},
	device.BatchNormAddReLUGrad: {"mc", []string{"mc", "mc", "mc", "c", "c", "c"}, []string{"mc", "mc", "c", "c"},
		false},
	device.Normalize:        {"mc", []string{"mc", "c", "c", "c", "c"}, []string{"mc"}, false},
	device.NormalizeReLU:    {"mc", []string{"mc", "c", "c", "c", "c"}, []string{"mc"}, false},
	device.NormalizeAddReLU: {"mc", []string{"mc", "c", "c", "c", "c", "mc"}, []string{"mc"}, false},
	device.AddBias:          {"mc", []string{"mc", "c"}, []string{"mc"}, false},
	device.AddBiasReLU:      {"mc", []string{"mc", "c"}, []string{"mc"}, false},
	device.AddBiasGrad:      {"mc", []string{"mc"}, []string{"c"}, false},
	device.AddBiasReLUGrad:  {"mc", []string{"mc", "mc"}, []string{"mc", "c"}, false},
	device.GroupNorm:        {"nmcg", []string{"nmc", "c", "c"}, []string{"nmc", "ng", "ng"}, false},
	device.GroupNormReLU:    {"nmcg", []string{"nmc", "c", "c"}, []string{"nmc", "ng", "ng"}, false},
	device.GroupNormAddReLU: {"nmcg", []string{"nmc", "c", "c", "nmc"}, []string{"nmc", "ng", "ng"}, false},
	device.GroupNormGrad:    {"nmcg", []string{"nmc", "nmc", "c", "ng", "ng"}, []string{"nmc", "c", "c"}, false},
	device.GroupNormReLUGrad: {"nmcg", []string{"nmc", "nmc", "nmc", "c", "ng", "ng"}, []string{"nmc", "c", "c"},
		false},
	device.GroupNormAddReLUGrad: {"nmcg", []string{"nmc", "nmc", "nmc", "c", "ng", "ng"},
		[]string{"nmc", "nmc", "c", "c"}, false},
	device.EvoNorm:     {"nmcg", []string{"nmc", "c", "c", "c"}, []string{"nmc", "ng", "ng"}, false},
	device.EvoNormGrad: {"nmcg", []string{"nmc", "nmc", "c", "c", "ng", "ng"}, []string{"nmc", "c", "c", "c"}, false},
	device.MaxPool:     {"nhwcrto", []string{"nhwc"}, []string{"npqc", "npqc"}, false},
	device.MaxPoolGrad: {"nhwcrto", []string{"npqc", "npqc"}, []string{"nhwc"}, false},
	device.AvgPool:     {"nmc", []string{"nmc"}, []string{"nc"}, false},
	device.AvgPoolGrad: {"nmc", []string{"nc"}, []string{"nmc"}, false},

	device.Embed:                 {"mvcit", []string{"m", "vc", "ic"}, []string{"mc"}, false},
	device.EmbedGrad:             {"mvcit", []string{"m", "mc"}, []string{"vc", "ic"}, false},
	device.EmbedGradAdd:          {"mvcit", []string{"m", "mc", "vc"}, []string{"vc", "ic"}, false},
	device.TokenEmbed:            {"mvc", []string{"m", "vc"}, []string{"mc"}, false},
	device.TokenEmbedGrad:        {"mvc", []string{"m", "mc"}, []string{"vc"}, false},
	device.TokenEmbedGradAdd:     {"mvc", []string{"m", "mc", "vc"}, []string{"vc"}, false},
	device.LastToken:             {"btc", []string{"btc"}, []string{"bc"}, false},
	device.Product:               {"mnk", []string{"mk", "nk"}, []string{"mn"}, false},
	device.ProductGradW:          {"mnk", []string{"mk", "mn"}, []string{"nk"}, false},
	device.LayerNorm:             {"mc", []string{"mc", "c", "c"}, []string{"mc", "m", "m"}, false},
	device.LayerNormPlain:        {"mc", []string{"mc", "c"}, []string{"mc", "m", "m"}, false},
	device.LayerNormGrad:         {"mc", []string{"mc", "mc", "c", "m", "m"}, []string{"mc", "c", "c"}, false},
	device.LayerNormPlainGrad:    {"mc", []string{"mc", "mc", "c", "m", "m"}, []string{"mc", "c"}, false},
	device.AddLayerNorm:          {"mc", []string{"mc", "mc", "c", "c"}, []string{"mc", "mc", "m", "m"}, false},
	device.AddLayerNormPlain:     {"mc", []string{"mc", "mc", "c"}, []string{"mc", "mc", "m", "m"}, false},
	device.LayerNormGradAdd:      {"mc", []string{"mc", "mc", "c", "m", "m", "mc"}, []string{"mc", "c", "c"}, false},
	device.LayerNormPlainGradAdd: {"mc", []string{"mc", "mc", "c", "m", "m", "mc"}, []string{"mc", "c"}, false},
	device.RMSNorm:               {"mc", []string{"mc", "c"}, []string{"mc", "m"}, false},
	device.RMSNormGrad:           {"mc", []string{"mc", "mc", "c", "m"}, []string{"mc", "c"}, false},
	device.GELUTanh:              {"n", []string{"n"}, []string{"n"}, true},
	device.GELUTanhGrad:          {"n", []string{"n", "n"}, []string{"n"}, true},
	device.GELUErf:               {"n", []string{"n"}, []string{"n"}, true},
	device.GELUErfGrad:           {"n", []string{"n", "n"}, []string{"n"}, true},
	device.LinearGELUTanh:        {"mnk", []string{"mk", "nk", "n"}, []string{"mn", "mn"}, false},
	device.LinearGELUErf:         {"mnk", []string{"mk", "nk", "n"}, []string{"mn", "mn"}, false},
	device.ProductGELUTanh:       {"mnk", []string{"mk", "nk"}, []string{"mn", "mn"}, false},
	device.ProductGELUErf:        {"mnk", []string{"mk", "nk"}, []string{"mn", "mn"}, false},
	device.LinearGradXGELUTanh:   {"mnk", []string{"mn", "nk", "mk"}, []string{"mk"}, false},
	device.LinearGradXGELUErf:    {"mnk", []string{"mn", "nk", "mk"}, []string{"mk"}, false},
	device.SwiGLU:                {"mf", []string{"2mf"}, []string{"mf"}, false},
	device.SwiGLUGrad:            {"mf", []string{"2mf", "mf"}, []string{"2mf"}, false},
	device.RoPE:                  {"btHh", []string{"3btHh"}, []string{"3btHh"}, true},
	device.RoPEGrad:              {"btHh", []string{"3btHh"}, []string{"3btHh"}, true},
	device.Attention:             {"btHh", []string{"3btHh"}, []string{"btHh", "bHt"}, false},
	device.AttentionGrad: {"btHh", []string{"3btHh", "btHh", "bHt", "btHh"}, []string{"3btHh"},
		false},
	device.EmbedStep:     {"mvci", []string{"m", "vc", "ic", "1"}, []string{"mc"}, false},
	device.RoPEStep:      {"mHh", []string{"3mHh", "1"}, []string{"3mHh"}, true},
	device.AttentionStep: {"miHh", []string{"3mHh", "2iHh", "1"}, []string{"mHh", "2iHh"}, true},
}

// Title names a call in messages: the kernel, and the layer if known.
func Title(c *device.Call) string {
	if c.Name == "" {
		return string(c.Kernel)
	}
	return fmt.Sprintf("%s (%s)", c.Kernel, c.Name)
}

// Of returns the signature of a kernel, or an empty one if the kernel is unknown.
func Of(k device.Kernel) Signature { return signatures[k] }

// Find returns the signature of the kernel of c and checks the dimensions of c.
func Find(c *device.Call) (Signature, error) {
	e, ok := signatures[c.Kernel]
	if !ok {
		return e, fmt.Errorf("kernel is unknown, want one of %v", device.Kernels())
	}
	if len(c.Dims) != len(e.Dims) {
		return e, fmt.Errorf("%d dimensions %v, want %d (%s)", len(c.Dims), c.Dims, len(e.Dims), e.Dims)
	}
	for i, d := range c.Dims {
		least := 1
		if e.Dims[i] == 'o' { // a padding
			least = 0
		}
		if d < least {
			return e, fmt.Errorf("dimension %c is %d, want at least %d", e.Dims[i], d, least)
		}
	}
	if e.isWindow() {
		return e, e.checkWindow(c.Dims)
	}
	if e.Dims == "nmcg" {
		return e, checkGroups(c)
	}
	return e, checkTokens(c)
}

func checkGroups(c *device.Call) error {
	if channels, groups := c.Dims[2], c.Dims[3]; channels%groups != 0 {
		return fmt.Errorf("%d channels in %d groups, want a number of groups that divides that of channels", channels,
			groups)
	}
	return nil
}

// checkTokens checks the dimensions of kernels over windows of tokens.
func checkTokens(c *device.Call) error {
	switch d := c.Dims; c.Kernel {
	case device.Embed, device.EmbedGrad, device.EmbedGradAdd:
		if m, p, t := d[0], d[3], d[4]; t > p || m%t != 0 {
			return fmt.Errorf("%d rows in windows of %d tokens, with %d positions: want whole windows that have "+
				"positions", m, t, p)
		}
	case device.RoPE, device.RoPEGrad, device.RoPEStep:
		if h := d[len(d)-1]; h%2 != 0 {
			return fmt.Errorf("heads of width %d, want an even width: its numbers are turned in pairs", h)
		}
	case device.EmbedStep, device.AttentionStep:
		positions := d[1]
		if c.Kernel == device.EmbedStep {
			positions = d[3]
		}
		if d[0] > positions {
			return fmt.Errorf("%d rows, want at most the %d positions", d[0], positions)
		}
	}
	return nil
}

func (e *Signature) isWindow() bool { return strings.HasSuffix(e.Dims, "to") }

// checkWindow checks that a window fits into the padded input, and that it is larger than the
// padding, so that no window lies entirely in the padding.
func (e *Signature) checkWindow(dims []int) error {
	in, w := e.window(dims)
	for i := range w.side {
		if pad := w.pad; pad >= w.side[i] || w.side[i] > in[i]+2*pad {
			return fmt.Errorf("window of %d×%d with padding %d over an input of %d×%d: want padding < window <= "+
				"padded input", w.side[0], w.side[1], pad, in[0], in[1])
		}
	}
	return nil
}

// window is the sliding window of a convolution or pooling: height and width, stride and padding.
type window struct {
	side        [2]int
	stride, pad int
}

// positions returns the number of window positions along an axis of the input.
func (w window) positions(axis, in int) int { return (in+2*w.pad-w.side[axis])/w.stride + 1 }

// window returns the height and width of the input, and the window. A window with one side is
// square.
func (e *Signature) window(dims []int) (in [2]int, w window) {
	get := func(c byte) int { return dims[strings.IndexByte(e.Dims, c)] }
	w = window{[2]int{get('r'), get('r')}, get('t'), get('o')}
	if strings.Contains(e.Dims, "s") {
		w.side[1] = get('s')
	}
	return [2]int{get('h'), get('w')}, w
}

// Fit checks the number and lengths of the operands against dims.
func (e *Signature) Fit(dims, in, out []int) error {
	if err := e.fitSide("input", e.In, dims, in); err != nil {
		return err
	}
	return e.fitSide("output", e.Out, dims, out)
}

func (e *Signature) fitSide(side string, shapes []string, dims, got []int) error {
	if len(got) != len(shapes) {
		return fmt.Errorf("%d %ss, want %d", len(got), side, len(shapes))
	}
	for i, shape := range shapes {
		if want := e.Size(shape, dims); got[i] != want {
			return fmt.Errorf("%s %d has length %d, want %d (%s of dimensions %v)", side, i, got[i], want, shape, dims)
		}
	}
	return nil
}

// Size returns the number of elements of an operand with the given shape, one of In and Out.
func (e *Signature) Size(shape string, dims []int) int {
	n := 1
	for _, c := range shape {
		if c >= '0' && c <= '9' {
			n *= int(c - '0')
			continue
		}
		if axis := strings.IndexRune("pq", c); axis >= 0 {
			in, w := e.window(dims)
			n *= w.positions(axis, in[axis])
			continue
		}
		for i, d := range e.Dims {
			if c == d {
				n *= dims[i]
			}
		}
	}
	return n
}
