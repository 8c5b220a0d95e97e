package train

import (
	"slices"

	"fspda/device"
	"fspda/dist"
)

// checking is the knowledge of an exchange about the message that it checks.
type checking struct {
	checked int          // the link that it came over
	coming  device.Index // its coordinates, if they do not come with it
	shape   []int        // the lengths of the vectors of the message posted last
	lengths []int        // scratch
}

// checkMessage checks that a message of another process has the shape that the algorithm can use
// over the link. Operations on vectors fail if lengths do not fit.
func (x *exchange) checkMessage(m dist.Message) error {
	s, l := x.run.setup, &x.round.Links[x.checked]
	want := x.shape // An agent that sends nothing over this link knows the shape from its other messages.
	if n := len(l.Received); n < len(l.Sent) {
		want = x.lengths[:0]
		for _, v := range l.Sent[n : n+len(l.Sent)/x.posts[x.checked]] {
			want = append(want, v.Len())
		}
		x.lengths = want
	}
	if x.reduce.now && x.Joint() && givesUp(m) {
		return nil
	}
	if len(m.Values) == 0 || len(want) > 0 && len(m.Values) != len(want) {
		return dist.Invalidf("%d vectors, expected %d", len(m.Values), max(1, len(want)))
	}
	for i, b := range m.Values {
		n, fits := b.V.Len(), []int{s.Dim, l.Len}
		if i > 0 && s.Directed() != nil && len(s.Traits.Scalars) > 0 { // The weight of the model before it.
			fits = []int{1}
		}
		if i < len(want) {
			fits = append(fits, want[i])
			if s.Compressor == nil || x.reduce.now {
				fits = want[i : i+1]
			}
		}
		if s.Compressor != nil && i == 0 {
			if mask := s.Compressor.Picked(); mask != nil && !mask.Dense() && len(l.Coords) == 0 {
				x.coming = x.broadcastMask(x.round.T, l.Peer)
				fits = []int{x.coming.Len()}
			} else if mask == nil && len(b.Coords) > 0 {
				fits = []int{len(b.Coords)}
			}
		}
		if !slices.Contains(fits, n) {
			return dist.Invalidf("a vector of %d values, expected %d", n, fits[len(fits)-1])
		}
	}
	return nil
}
