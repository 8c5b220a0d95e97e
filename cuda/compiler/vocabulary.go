package compiler

import (
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/device/plan"
)

// In 16 bits the logits of a large vocabulary, and their gradient, are matrices of 16 bits, with
// rows that are padded so that products may load 16 bytes at a time. The rounded weights have as
// many rows. Logits of padding are 0, for their weights are; the loss does not read them, and makes
// their gradient 0.

// wideVocabulary is the number of classes from which logits have 16 bits. Logits of fewer classes
// take little memory, and stay float32.
const wideVocabulary = 2048

// vocabularyAlign divides the length of padded rows of logits.
const vocabularyAlign = 64

// findWide returns the calls that make or read the logits of a large vocabulary or their gradient,
// and the padded length of a row: where a product with parameters makes the logits, and only the
// loss and the products of its gradient read them.
func (p *planner) findWide() map[*tracedCall]int {
	wide := map[*tracedCall]int{}
	if p.element == kernels.F32 {
		return wide
	}
	for _, loss := range p.calls {
		if loss.call.Kernel != device.SoftmaxCrossEntropy || loss.call.Dims[1] < wideVocabulary {
			continue
		}
		if around := p.aroundLoss(loss); around != nil {
			for _, c := range append(around, loss) {
				wide[c] = plan.Align(loss.call.Dims[1], vocabularyAlign)
			}
		}
	}
	return wide
}

// aroundLoss returns the product before a loss and those that read its gradient, or nil if there
// are other calls.
func (p *planner) aroundLoss(loss *tracedCall) (around []*tracedCall) {
	logits, slopes := loss.in[0].value, loss.out[1].value
	if logits < 0 || slopes < 0 || p.values[logits].result || p.values[slopes].result {
		return nil
	}
	is := func(v int) func(source) bool { return func(s source) bool { return s.value == v } }
	products := 0
	for _, c := range p.calls {
		makes, reads := slices.ContainsFunc(c.out, is(logits)), slices.ContainsFunc(c.in, is(logits))
		switch {
		case c == loss:
		case makes && c.call.Kernel == device.Product && isParameter(c.in[1]):
			products++
			around = append(around, c)
		case makes || reads:
			return nil
		case !slices.ContainsFunc(c.in, is(slopes)):
		case p.readsSlopes(c, slopes):
			around = append(around, c)
		default:
			return nil
		}
	}
	if products != 1 {
		return nil
	}
	return around
}

// readsSlopes reports whether a call is a product of the gradient of logits that may be padded.
func (p *planner) readsSlopes(c *tracedCall, slopes int) bool {
	switch c.call.Kernel {
	case device.LinearGradX:
		return c.in[0].value == slopes && isParameter(c.in[1])
	case device.ProductGradW:
		made := c.out[0].value
		return c.in[1].value == slopes && c.in[0].value != slopes && made >= 0 && !p.values[made].result
	}
	return false
}

func isParameter(s source) bool { return s.value < 0 && s.ref.Space == device.Params }

// wideOutputs lists, by the kernel of a call that findWide returns, the output that has padded rows
// (logits and their gradient), or a row for each padded column (the gradient of weights).
var wideOutputs = map[device.Kernel]int{device.Product: 0, device.SoftmaxCrossEntropy: 1, device.ProductGradW: 0}

// isWideOutput reports whether an output of a call is padded, and makes its value as large.
func (p *planner) isWideOutput(c *tracedCall, j int) bool {
	padded := p.wide[c]
	if k, ok := wideOutputs[c.call.Kernel]; padded == 0 || !ok || j != k {
		return false
	}
	v := &p.values[c.out[j].value]
	v.n = c.out[j].ref.Len / c.call.Dims[1] * padded
	if c.call.Kernel == device.SoftmaxCrossEntropy { // nothing else reads the logits
		v.inPlaceOf = c.in[0].value
	}
	return true
}

// wideWeights returns the rounded weights of a call that findWide returns, with zeros for the rows
// of the padding.
func (p *planner) wideWeights(c *tracedCall, s source) Operand {
	rows, width := c.call.Dims[1], c.call.Dims[2]
	return p.operand(p.cast(c.call, s, halfFormat, rows*width, p.wide[c]*width))
}
