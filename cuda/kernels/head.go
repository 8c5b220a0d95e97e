package kernels

import "fspda/device"

var _ = define("head.cu",
	"head part:p parts:i aux_list:p aux:p aux_offset:l epilogue:i h_list:p h:p h_offset:l w_list:p w:p w_offset:l "+
		"bias_list:p bias:p bias_offset:l labels:p bad:p row_loss:p dz_list:p dz:p dz_offset:l dh_list:p dh:p "+
		"dh_offset:l back:i m:i rows:i width:i classes:i s:d",
	"bias_gradient db_list:p db:p db_offset:l dy_list:p dy:p dy_offset:l b_list:p b:p b_offset:l factor:f m:i n:i",
)

const (
	headThreads = 256 // HEAD_THREADS of head.cuh
	headClasses = 16  // HEAD_CLASSES
	headRows    = 24  // HEAD_ROWS
	// multiprocessors is the number in an H100. The rows of a batch are divided among as many
	// blocks.
	multiprocessors = 132
)

// head is the calls of a network that depend on one row of the batch only, from the last hidden
// layer to its gradient. One kernel computes them: each alone would be too short for a phase of its
// own.
type head struct {
	code  *device.Code
	first int // the call of the layer before, if its summands are added here, else -1
	last  int // the call of the last dense layer; the loss follows
	back  int // the call of the gradient of the last hidden layer
}

// findHead returns the head of a network, or nil where it has none: a dense layer, a softmax cross
// entropy, and the gradient of the hidden layer before. Between the last two, calls may neither
// write the operands that this gradient reads nor touch its result, since it moves to the front.
func findHead(code *device.Code) *head {
	for i := range max(0, len(code.Calls)-2) {
		c, loss := &code.Calls[i], &code.Calls[i+1]
		if c.Kernel != device.Linear || loss.Kernel != device.SoftmaxCrossEntropy || loss.In[0] != c.Out[0] ||
			isReadBesidesDecay(code, i+2, c.Out[0]) {
			continue
		}
		h := &head{code: code, first: -1, last: i}
		if c.Dims[1] > headClasses || !h.findBack() || !h.isAligned() {
			return nil
		}
		if i == 1 && code.Calls[0].In[0].Space == device.Input && code.Calls[0].Out[0] == c.In[0] &&
			code.Calls[0].Dims[2] > chunk && products[code.Calls[0].Kernel].epilogue != AddBias {
			h.first = 0
		}
		return h
	}
	return nil
}

func (h *head) findBack() bool {
	c, loss := &h.code.Calls[h.last], &h.code.Calls[h.last+1]
	for j := h.last + 2; j < len(h.code.Calls); j++ {
		back := &h.code.Calls[j]
		if back.Kernel != device.LinearGradXSigmoid && back.Kernel != device.LinearGradXReLU {
			continue
		}
		h.back = j
		return back.In[0] == loss.Out[1] && back.In[1] == c.In[1] && back.In[2] == c.In[0] && h.moves(back)
	}
	return false
}

// moves reports whether a call may move to the place after the loss.
func (h *head) moves(back *device.Call) bool {
	for i := h.last + 2; i < h.back; i++ {
		if n := countDecays(h.code, i); n > 0 { // their sums of squares lie elsewhere
			i += 2*n - 1
			continue
		}
		c := &h.code.Calls[i]
		for _, r := range c.Out {
			if r.OverlapsAny(back.In) || r.OverlapsAny(back.Out) {
				return false
			}
		}
		for _, r := range c.In {
			if r.OverlapsAny(back.Out) {
				return false
			}
		}
	}
	return !back.Out[0].OverlapsAny(back.In) && !back.Out[0].OverlapsAny(h.code.Calls[h.last+1].Out)
}

// isAligned reports whether the operands of which a thread loads four numbers at once allow it.
// Vectors and arenas are aligned.
func (h *head) isAligned() bool {
	c, back := &h.code.Calls[h.last], &h.code.Calls[h.back]
	return c.Dims[2]%4 == 0 && c.In[0].Off%4 == 0 && c.In[1].Off%4 == 0 && back.Out[0].Off%4 == 0
}

// rows returns how many rows of each agent a block computes. Fewer than headRows would not be
// faster, and leave no multiprocessors to a call for other agents.
func (h *head) rows(agents int) int {
	m, rows := h.code.Calls[h.last].Dims[0], headRows
	for rows < m && agents*((m+rows-1)/rows) > multiprocessors {
		rows += headRows
	}
	return rows
}

// partNumbers returns the numbers of float64 that the summands of an agent take at most.
func (h *head) partNumbers() int {
	d := h.code.Calls[h.first].Dims
	return (bytesParts*chunksOf(d[2])*d[0]*d[1] + 1) / 2
}

// adds reports whether the head adds the summands of a call.
func (h *head) adds(i int) bool { return h != nil && i == h.first }

// parts lowers the product of a call to its summands, in the scratch at offset at.
func (f Group) parts(c *device.Call, at int) ([]task, error) {
	g, err := f.gemm(c)
	if err != nil {
		return nil, err
	}
	return []task{{g.PartsCall(f.Scratch), c.In[:2], []device.Ref{{Space: scratch, Off: at, Len: 1}}}}, nil
}

// headTasks lowers the calls of a head, and the mean of the rows' losses, which lie in the scratch
// at offset at.
func (f Group) headTasks(h *head, at int) ([]task, error) {
	c, loss, back := &h.code.Calls[h.last], &h.code.Calls[h.last+1], &h.code.Calls[h.back]
	mean, err := f.loss(loss)
	if err != nil {
		return nil, err
	}
	o, err := f.operands(c.In[0], c.In[1], c.In[2], loss.Out[1], back.Out[0])
	if err != nil {
		return nil, err
	}
	var aux Operand
	part, parts, epilogue, first := Address(0), 0, NoEpilogue, h.first == 0 && f.Bytes != nil
	reads, writes := []device.Ref{c.In[1], c.In[2], loss.In[1]}, []device.Ref{loss.Out[1], back.Out[0]}
	if first {
		layer := &h.code.Calls[h.first]
		bias, err := f.operands(layer.In[2])
		if err != nil {
			return nil, err
		}
		product, err := f.gemm(layer)
		if err != nil {
			return nil, err
		}
		// the layer is the first call, so that its summands are at the start of all scratch
		aux, part = bias[0], f.Scratch-8*Address(f.Agents*at)
		parts, epilogue = product.Parts(), products[layer.Kernel].epilogue
		reads = append(reads, layer.In[2], device.Ref{Space: scratch, Len: 1})
		writes = append(writes, c.In[0])
	} else {
		reads = append(reads, c.In[0])
	}
	d, rows := c.Dims, h.rows(f.Agents)
	l := Launch{Grid: [3]uint32{tiles(d[0], rows), 1, uint32(f.Agents)}, Block: [3]uint32{headThreads, 1, 1}}
	args := []any{part, parts, aux.List, aux.At, aux.Offset, int(epilogue)}
	for _, x := range o[:3] {
		args = append(args, x.List, x.At, x.Offset)
	}
	args = append(args, f.Labels, f.Bad, f.Scratch)
	for _, x := range o[3:] {
		args = append(args, x.List, x.At, x.Offset)
	}
	args = append(args, int(products[back.Kernel].epilogue), d[0], rows, d[2], d[1], loss.Attr)
	sums := []device.Ref{{Space: scratch, Off: at, Len: d[0]}}
	return []task{{call("head", l, args...), reads, append(writes, sums...)}, {mean[1], sums, loss.Out[:1]}}, nil
}

// gradientsW lowers the gradients of a dense layer's weights and bias. add, if any, adds weight
// decay to the latter.
func (f Group) gradientsW(c, add *device.Call) ([]task, error) {
	g, err := f.gemm(c)
	if err != nil {
		return nil, err
	}
	o, err := f.operands(c.Out[1], c.In[1])
	if err != nil {
		return nil, err
	}
	var b Operand
	factor, reads := 0.0, []device.Ref{c.In[1]}
	if add != nil {
		with, err := f.operands(add.In[1])
		if err != nil {
			return nil, err
		}
		b, factor, reads = with[0], add.Attr, append(reads, add.In[1])
	}
	sums := BiasGradient(f.Agents, o[0], o[1], b, float32(factor), c.Dims[0], c.Dims[1])
	return []task{{g.Call(), c.In, c.Out[:1]}, {sums, reads, c.Out[1:2]}}, nil
}
