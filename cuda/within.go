package cuda

import (
	"encoding/binary"

	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// encodeRanges returns ranges for device memory: the first coordinate of each, and how many those
// before have.
func encodeRanges(ranges []device.Range) (b []byte) {
	before := 0
	for _, r := range ranges {
		b = binary.LittleEndian.AppendUint64(b, uint64(r.From))
		b = binary.LittleEndian.AppendUint64(b, uint64(before))
		before += r.To - r.From
	}
	return b
}

// rangesOf returns the ranges of an operation that hold a coordinate, nil if there is none.
func (d *Device) rangesOf(op *device.Op) (list *listCopy[device.Range], k kernels.Ranges) {
	var ranges []device.Range
	for _, r := range op.Only {
		if r.From < r.To {
			ranges = append(ranges, r)
			k.Total += r.To - r.From
		}
	}
	if len(ranges) == 0 {
		return nil, k
	}
	if list = d.ranges.of(d.exec, ranges, encodeRanges); list != nil {
		k.List, k.Count = list.address(), len(ranges)
	}
	return list, k
}

// sendWithin queues a Combine or an AdamW that is limited to ranges.
func (d *Device) sendWithin(op *device.Op) {
	list, ranges := d.rangesOf(op)
	if list == nil {
		return
	}
	out := d.operand(op.Out[0]).address()
	if op.Kind == device.KindCombine && (len(op.Terms) < 1 || len(op.Terms) > kernels.MaxTermsEach) {
		d.enqueueLists(op, func(l []kernels.List) kernels.Call {
			defer keepAlive(list)
			return kernels.CombineWithinList(ranges, out, l[0])
		}, d.kernelTerms(op.Terms))
		return
	}
	made := &batchedWithin{list: list, ranges: ranges, kind: op.Kind, out: out, adam: op.Adam}
	if op.Kind == device.KindAdamW {
		made.vectors = kernels.AdamVectors{G: out, M: d.operand(op.Out[1]).address(), V: d.operand(op.Out[2]).address(),
			X: d.operand(op.In[0]).address()}
	} else {
		made.terms = d.kernelTerms(op.Terms)
	}
	made.Batch = made
	d.declare(&made.Op, op)
	d.exec.EnqueueOp(&made.Op)
}

// batchedWithin is a Combine of few terms or an AdamW, limited to ranges, which shares a launch
// with the same operations of other agents.
type batchedWithin struct {
	executor.Op
	list    *listCopy[device.Range]
	ranges  kernels.Ranges
	kind    device.Kind
	out     kernels.Address
	terms   []kernels.Term      // The terms of a Combine.
	adam    device.Adam         // The settings of an AdamW.
	vectors kernels.AdamVectors // The vectors of an AdamW.
}

func (c *batchedWithin) BatchesWith(other executor.Batchable) bool {
	x, ok := other.(*batchedWithin)
	return ok && x.list == c.list && x.kind == c.kind && len(x.terms) == len(c.terms) && x.adam == c.adam
}

func (c *batchedWithin) LevelStride() int { return 1 }

func (c *batchedWithin) SendBatch(ex *executor.Executor, ops []*executor.Op) error {
	together := func(part []*executor.Op) kernels.Call {
		var dst []kernels.Address
		var terms [][]kernels.Term
		var adams []kernels.AdamVectors
		for _, p := range part {
			one := p.Batch.(*batchedWithin)
			dst, terms, adams = append(dst, one.out), append(terms, one.terms), append(adams, one.vectors)
		}
		if c.kind == device.KindAdamW {
			return kernels.AdamWWithin(c.ranges, c.adam, adams)
		}
		return kernels.CombineWithin(c.ranges, dst, terms)
	}
	return sendTogether(ex, ops, together)
}
