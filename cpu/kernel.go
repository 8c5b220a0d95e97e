package cpu

import (
	"fmt"
	"strings"

	"fspda/device"
)

// operands is what a kernel works on. All lengths have been checked against the shapes of the kernel's entry in kernels.
type operands struct {
	in, out [][]float32
	dims    []int
	attr    float64
	scratch []float32 // as many numbers as scratchSizes says, holding anything

	examples *examples // has the first input where that is nil

	lent *lent    // the helpers of parallel, if any
	gemm gemmCall // the product that parts are computed of
}

// entry describes a kernel: its dimensions by letter, its operands as products of these letters, and the function. An
// operand "1" or "3" has that many elements. The dimensions of a window have t for its stride and o for its padding; p and q are then
// the height and the width of its output.
type entry struct {
	dims    string
	in, out []string
	inPlace bool // an output may be one of the inputs
	run     func(*operands) error
}

// kernels holds every device.Kernel. What each computes is said there. Those that need room to work in are in scratchSizes too.
var kernels = map[device.Kernel]entry{
	device.Linear:              {"mnk", []string{"mk", "nk", "n"}, []string{"mn"}, false, linear},
	device.LinearGradX:         {"mnk", []string{"mn", "nk"}, []string{"mk"}, false, linearGradX},
	device.LinearGradW:         {"mnk", []string{"mk", "mn"}, []string{"nk", "n"}, false, linearGradW},
	device.Sigmoid:             {"n", []string{"n"}, []string{"n"}, true, sigmoid},
	device.SigmoidGrad:         {"n", []string{"n", "n"}, []string{"n"}, true, sigmoidGrad},
	device.ReLU:                {"n", []string{"n"}, []string{"n"}, true, relu},
	device.ReLUGrad:            {"n", []string{"n", "n"}, []string{"n"}, true, reluGrad},
	device.SoftmaxCrossEntropy: {"mn", []string{"mn", "m"}, []string{"1", "mn"}, false, softmaxCrossEntropy},
	device.Score:               {"mn", []string{"mn", "m"}, []string{"3"}, false, score},
	device.HalfSquare:          {"n", []string{"n"}, []string{"1"}, false, halfSquare},
	device.Scale:               {"n", []string{"n"}, []string{"n"}, true, scale},
	device.ScaleBy:             {"n", []string{"n", "1"}, []string{"n"}, true, scaleBy},
	device.Add:                 {"n", []string{"n", "n"}, []string{"n"}, true, add},
	device.AddScaled:           {"n", []string{"n", "n"}, []string{"n"}, true, addScaled},
	device.MoveAverage:         {"n", []string{"n", "n", "1"}, []string{"n"}, true, moveAverage},

	device.LinearSigmoid:        {"mnk", []string{"mk", "nk", "n"}, []string{"mn"}, false, linearSigmoid},
	device.LinearReLU:           {"mnk", []string{"mk", "nk", "n"}, []string{"mn"}, false, linearReLU},
	device.LinearGradXSigmoid:   {"mnk", []string{"mn", "nk", "mk"}, []string{"mk"}, false, linearGradXSigmoid},
	device.LinearGradXReLU:      {"mnk", []string{"mn", "nk", "mk"}, []string{"mk"}, false, linearGradXReLU},
	device.LinearGradWDecay:     {"mnk", []string{"mk", "mn", "nk"}, []string{"nk", "n"}, false, linearGradWDecay},
	device.Conv:                 {"nhwckrsto", []string{"nhwc", "krsc"}, []string{"npqk"}, false, conv},
	device.ConvGradX:            {"nhwckrsto", []string{"npqk", "krsc"}, []string{"nhwc"}, false, convGradX},
	device.ConvGradW:            {"nhwckrsto", []string{"nhwc", "npqk"}, []string{"krsc"}, false, convGradW},
	device.BatchNorm:            {"mc", []string{"mc", "c", "c"}, []string{"mc", "c", "c"}, false, batchNorm(normPlain)},
	device.BatchNormReLU:        {"mc", []string{"mc", "c", "c"}, []string{"mc", "c", "c"}, false, batchNorm(normReLU)},
	device.BatchNormAddReLU:     {"mc", []string{"mc", "c", "c", "mc"}, []string{"mc", "c", "c"}, false, batchNorm(normAddReLU)},
	device.BatchNormGrad:        {"mc", []string{"mc", "mc", "c", "c", "c"}, []string{"mc", "c", "c"}, false, batchNormGrad(normPlain)},
	device.BatchNormReLUGrad:    {"mc", []string{"mc", "mc", "mc", "c", "c", "c"}, []string{"mc", "c", "c"}, false, batchNormGrad(normReLU)},
	device.BatchNormAddReLUGrad: {"mc", []string{"mc", "mc", "mc", "c", "c", "c"}, []string{"mc", "mc", "c", "c"}, false, batchNormGrad(normAddReLU)},
	device.Normalize:            {"mc", []string{"mc", "c", "c", "c", "c"}, []string{"mc"}, false, normalize(normPlain)},
	device.NormalizeReLU:        {"mc", []string{"mc", "c", "c", "c", "c"}, []string{"mc"}, false, normalize(normReLU)},
	device.NormalizeAddReLU:     {"mc", []string{"mc", "c", "c", "c", "c", "mc"}, []string{"mc"}, false, normalize(normAddReLU)},
	device.MaxPool:              {"nhwcrto", []string{"nhwc"}, []string{"npqc", "npqc"}, false, maxPool},
	device.MaxPoolGrad:          {"nhwcrto", []string{"npqc", "npqc"}, []string{"nhwc"}, false, maxPoolGrad},
	device.AvgPool:              {"nmc", []string{"nmc"}, []string{"nc"}, false, avgPool},
	device.AvgPoolGrad:          {"nmc", []string{"nc"}, []string{"nmc"}, false, avgPoolGrad},
}

// Call runs one kernel on host slices: in and out stand for c.In and c.Out, whose Refs are not looked at. The error names the
// kernel and the operand that does not fit c.Dims, or the row and value of a label that is no class.
func Call(c *device.Call, in, out [][]float32) error {
	e, err := lookup(c)
	if err != nil {
		return fmt.Errorf("cpu: %s: %w", title(c), err)
	}
	if err := e.fit(c.Dims, lengths(in), lengths(out)); err != nil {
		return fmt.Errorf("cpu: %s: %w", title(c), err)
	}
	room := borrow(scratchSize(c, 1))
	defer room.giveBack()
	if err := e.run(&operands{in: in, out: out, dims: c.Dims, attr: c.Attr, scratch: room.numbers}); err != nil {
		return fmt.Errorf("cpu: %s: %w", title(c), err)
	}
	return nil
}

// title names a call for people.
func title(c *device.Call) string {
	if c.Name == "" {
		return string(c.Kernel)
	}
	return fmt.Sprintf("%s (%s)", c.Kernel, c.Name)
}

// lookup finds the kernel of c and checks its dimensions.
func lookup(c *device.Call) (entry, error) {
	e, ok := kernels[c.Kernel]
	if !ok {
		return e, fmt.Errorf("kernel is unknown, want one of %v", device.Kernels())
	}
	if len(c.Dims) != len(e.dims) {
		return e, fmt.Errorf("%d dimensions %v, want %d (%s)", len(c.Dims), c.Dims, len(e.dims), e.dims)
	}
	for i, d := range c.Dims {
		if least := e.least(i); d < least {
			return e, fmt.Errorf("dimension %c is %d, want at least %d", e.dims[i], d, least)
		}
	}
	if e.isWindow() {
		return e, e.checkWindow(c.Dims)
	}
	return e, nil
}

// least is the smallest value of dimension i: a padding may be zero.
func (e *entry) least(i int) int {
	if e.dims[i] == 'o' {
		return 0
	}
	return 1
}

func (e *entry) isWindow() bool { return strings.HasSuffix(e.dims, "to") }

// checkWindow checks that a window fits into the padded input, and that not all of it can lie in the padding.
func (e *entry) checkWindow(dims []int) error {
	in, w := e.window(dims)
	for i := range w.side {
		if pad := w.pad; pad >= w.side[i] || w.side[i] > in[i]+2*pad {
			return fmt.Errorf("window of %d×%d with padding %d over an input of %d×%d: want a padding less than the window, and a window no larger than the padded input",
				w.side[0], w.side[1], pad, in[0], in[1])
		}
	}
	return nil
}

// window is what slides over an image: height and width, stride and padding.
type window struct {
	side        [2]int
	stride, pad int
}

// over is how often a window fits along an axis of the input.
func (w window) over(axis, in int) int { return (in+2*w.pad-w.side[axis])/w.stride + 1 }

// window returns the height and the width of the input, and the window. A window with one side is square.
func (e *entry) window(dims []int) (in [2]int, w window) {
	get := func(c byte) int { return dims[strings.IndexByte(e.dims, c)] }
	w = window{[2]int{get('r'), get('r')}, get('t'), get('o')}
	if strings.Contains(e.dims, "s") {
		w.side[1] = get('s')
	}
	return [2]int{get('h'), get('w')}, w
}

// fit checks the number and the lengths of the operands against dims.
func (e *entry) fit(dims, in, out []int) error {
	if err := e.fitSide("input", e.in, dims, in); err != nil {
		return err
	}
	return e.fitSide("output", e.out, dims, out)
}

func (e *entry) fitSide(side string, shapes []string, dims, got []int) error {
	if len(got) != len(shapes) {
		return fmt.Errorf("%d %ss, want %d", len(got), side, len(shapes))
	}
	for i, shape := range shapes {
		if want := e.size(shape, dims); got[i] != want {
			return fmt.Errorf("%s %d has length %d, want %d (%s of dimensions %v)", side, i, got[i], want, shape, dims)
		}
	}
	return nil
}

// size is the number of elements of an operand.
func (e *entry) size(shape string, dims []int) int {
	n := 1
	for _, c := range shape {
		if c >= '0' && c <= '9' {
			n *= int(c - '0')
			continue
		}
		if axis := strings.IndexRune("pq", c); axis >= 0 {
			in, w := e.window(dims)
			n *= w.over(axis, in[axis])
			continue
		}
		for i, d := range e.dims {
			if c == d {
				n *= dims[i]
			}
		}
	}
	return n
}

func lengths(s [][]float32) []int {
	n := make([]int, len(s))
	for i := range s {
		n[i] = len(s[i])
	}
	return n
}
