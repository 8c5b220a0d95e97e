package kernels

import (
	"fmt"
	"slices"
	"strings"

	"fspda/device"
)

// maxDecays is the number of tensors whose weight decay one call adds to a loss.
const maxDecays = 8

// decayTerms returns the parameters of the terms: the partial sums of squares and their number.
func decayTerms() string {
	var s strings.Builder
	for i := range maxDecays {
		fmt.Fprintf(&s, "part%d:p parts%d:l ", i, i)
	}
	return s.String()
}

// countDecays returns how many pairs of calls starting at i are weight decay: a half square that is
// added to the loss and read by nothing else. All pairs add to the same loss.
func countDecays(code *device.Code, i int) int {
	n := 0
	for ; n < maxDecays && i+2*n+1 < len(code.Calls); n++ {
		square, add := &code.Calls[i+2*n], &code.Calls[i+2*n+1]
		if square.Kernel != device.HalfSquare || add.Kernel != device.Add || add.Dims[0] != 1 ||
			add.In[1] != square.Out[0] || add.In[0] != add.Out[0] {
			break
		}
		if square.Attr != code.Calls[i].Attr || add.Out[0] != code.Calls[i+1].Out[0] ||
			square.Out[0].OverlapsAny(add.Out) || isRead(code, i+2*n+2, square.Out[0]) {
			break
		}
	}
	return n
}

// isRead reports whether a call starting at i, or a result, reads the current value of an operand.
func isRead(code *device.Code, i int, r device.Ref) bool {
	return reads(code, i, r, func(int) int { return 0 })
}

// isReadBesidesDecay is isRead, where the sums of squares of weight decay are not in the arena.
func isReadBesidesDecay(code *device.Code, i int, r device.Ref) bool {
	return reads(code, i, r, func(i int) int { return 2 * countDecays(code, i) })
}

func reads(code *device.Code, i int, r device.Ref, skip func(i int) int) bool {
	for ; i < len(code.Calls); i++ {
		if n := skip(i); n > 0 {
			i += n - 1
			continue
		}
		c := &code.Calls[i]
		if r.OverlapsAny(c.In) {
			return true
		}
		for _, o := range c.Out {
			if o.Space == r.Space && o.Off <= r.Off && r.Off+r.Len <= o.Off+o.Len {
				return false
			}
		}
	}
	return slices.ContainsFunc(code.Results, func(x device.Result) bool { return r.Overlaps(x.Ref) })
}

// decay lowers pairs of calls: first all sums of squares, then one call that adds them to the
// losses in order, or to the means of the rows' losses.
func (f Group) decay(pairs []device.Call, at int, rows *rowLosses) ([]task, error) {
	loss, err := f.inArena(pairs[1].Out[0])
	if err != nil {
		return nil, err
	}
	args := []any{loss, f.Stride, Address(0), 0, pairs[0].Attr / 2, len(pairs) / 2}
	var all []task
	reads := []device.Ref{pairs[1].Out[0]}
	if rows != nil {
		args[2], args[3], reads[0] = rows.at, rows.ref.Len, rows.ref
	}
	for i := 0; i < len(pairs); i += 2 {
		c := &pairs[i]
		square, err := f.squares(c)
		if err != nil {
			return nil, err
		}
		parts := DotParts(c.Dims[0])
		sum := device.Ref{Space: scratch, Off: at, Len: parts}
		all, reads = append(all, task{square, c.In, []device.Ref{sum}}), append(reads, sum)
		args = append(args, f.Scratch, parts)
		at, f.Scratch = at+parts, f.Scratch+8*Address(f.Agents*parts)
	}
	for len(args) < 6+2*maxDecays {
		args = append(args, Address(0), 0)
	}
	add := call("add_decay", blocks(f.Agents*64, 64), args...)
	return append(all, task{add, reads, pairs[1].Out[:1]}), nil
}
