package train

import (
	"errors"
	"math"
	"slices"

	"fspda/device"
	"fspda/dist"
	"fspda/internal/rng"
	"fspda/train/algo"
)

// codec is an agent's memory for compressing and quantizing on the host. The results are copied to
// vectors of the device, and travel in them within the process; message encodes them between
// processes.
type codec struct {
	message dist.Codec     // message writes the agent's messages; nil: float32.
	active  []int          // active lists the agents that broadcast.
	own     []device.Index // own has the coordinates of the agent's own broadcasts of an iteration.
	parts   []device.Vector
	payload dist.Payload
	x, y, z []float32
	decodes dist.DecodeStats
}

// broadcast sets the round's links for an algorithm of broadcasts: the links on which an end
// broadcasts. Messages bring their coordinates.
func (x *exchange) broadcast(t int) {
	s := x.run.setup
	broadcasts := x.broadcasters(t)
	x.round.Active = broadcasts(x.id)
	for k, peer := range s.Graph.Neighbours(x.id) {
		silent := !broadcasts(peer)
		if silent && !x.round.Active || !s.Members.Present(peer, t) {
			continue
		}
		fixed := 0.0
		if s.Mixing != nil {
			fixed = s.Mixing.Edge(s.Graph.Incident(x.id)[k])
		}
		l := x.link(peer, nil, s.Dim, fixed, fixed)
		l.PeerInactive, l.Mute = silent, !x.round.Active
	}
	if !s.Members.Elastic() && s.Graph.Degree(x.id) == s.Graph.N-1 && len(s.Graph.Edges) == s.Graph.N*(s.Graph.N-1)/2 {
		x.round.Shared = x.sharedVector
	}
}

// locate adds the coordinates of a message that was received over a link without a mask.
// Coordinates that follow from a seed do not travel and are the same for all messages of an
// iteration; other coordinates came with the values.
func (x *exchange) locate(link int, b *dist.Buffer) {
	l := &x.round.Links[link]
	which := len(l.Coords)
	var coords device.Index
	mask := x.run.setup.Compressor.Picked()
	switch {
	case mask != nil && which > 0:
		coords = l.Coords[0]
	case x.coming != nil:
		coords, x.coming = x.coming, nil
	case mask != nil && !mask.Dense():
		coords = x.broadcastMask(x.round.T, l.Peer)
	case mask == nil && len(b.Coords) > 0:
		at := link*x.total + which
		x.growMasks(at)
		x.masks[at] = x.dev.NewIndex(b.Coords, x.masks[at])
		coords = x.masks[at]
	}
	l.Coords = append(l.Coords, coords)
}

// broadcasters tells which agents broadcast at iteration t: the agents that a broadcast process
// names, or all agents if another process has edges.
func (x *exchange) broadcasters(t int) func(i int) bool {
	s := x.run.setup
	if s.Process.Broadcasts() {
		x.codec.active = x.run.broadcasters(x.codec.active, t)
		return func(i int) bool { _, found := slices.BinarySearch(x.codec.active, i); return found }
	}
	all := x.run.hasEdges(t)
	return func(int) bool { return all }
}

// broadcasters lists the agents that broadcast at iteration t, ascending.
func (r *run) broadcasters(dst []int, t int) []int {
	if p := r.setup.Process; p.Broadcasts() {
		dst = p.Senders(dst, t)
	} else if dst = dst[:0]; r.hasEdges(t) {
		for i := range r.setup.Graph.N {
			dst = append(dst, i)
		}
	}
	return slices.DeleteFunc(dst, func(i int) bool { return !r.setup.Members.Present(i, t) })
}

// hasEdges reports whether the edge process has edges at iteration t. If it is not a broadcast
// process, all agents broadcast then.
func (r *run) hasEdges(t int) bool {
	now := r.edgesAt(t)
	defer r.edges.Put(now)
	return len(now.events) > 0
}

func (x *exchange) growMasks(at int) {
	for at >= len(x.masks) {
		x.masks = append(x.masks, nil)
	}
}

// initiates reports whether the agent is the initiator of an event.
func (x *exchange) initiates(t int, e dist.Event) bool {
	s := x.run.setup
	// This rule of the released program may name both ends, or neither, at agents of different degree.
	if s.Config.Initiator == "degree" {
		return x.id == t%(s.Graph.Degree(x.id)+1)
	}
	from := e.From
	if dist.InitiatorByCoin(s.Process.String()) {
		if coin := rng.New(s.Config.Seed, "initiator", uint64(t), uint64(e.Edge)); coin.Uint64()>>63 == 1 {
			from = e.To
		}
	}
	return x.id == from
}

// pack is Round.Compress. Compressors that only pick coordinates leave the values on the device.
// Others compute on the host, from which the values are copied back.
func (x *exchange) pack(v device.Vector, which int) (algo.Compressed, error) {
	s, p := x.run.setup, &x.codec
	p.parts = p.parts[:0]
	for which >= len(p.own) {
		p.own = append(p.own, nil)
	}
	t := x.awaited
	if at := x.picks(which); at != nil {
		return x.packPart(v, at), nil
	}
	if s.Compressor.Picked() != nil {
		return x.packWhole(v), nil
	}
	p.x = x.read(p.x, v)
	by := s.Compressor
	if which > 0 && x.reduce.now && x.reduce.parts.Pieces != nil { // It is the sum of the agent's part.
		by = x.reduce.parts.Pieces[x.id]
	}
	if err := by.Compress(&p.payload, p.x, t, x.id, which); err != nil {
		return algo.Compressed{}, x.diverging(err)
	}
	first := len(x.own)
	for _, values := range p.payload.Vectors {
		b := x.acquire(len(values))
		x.dev.Write(b, values)
		p.parts = append(p.parts, b)
	}
	made := algo.Compressed{Vectors: p.parts}
	if coords := p.payload.Coords; coords != nil {
		p.own[which] = x.dev.NewIndex(coords, p.own[which])
		made.Index = p.own[which]
		b := x.own[first] // Coordinates travel with the values.
		b.Coords = append(b.Coords[:0], coords...)
	}
	return made, nil
}

// picks is Round.Picks. All messages of an iteration have the coordinates of the first one.
func (x *exchange) picks(which int) device.Index {
	if mask := x.run.setup.Compressor.Picked(); mask == nil || mask.Dense() {
		return nil
	}
	if len(x.codec.own) == 0 {
		x.codec.own = append(x.codec.own, nil)
	}
	if which == 0 {
		x.codec.own[0] = x.broadcastMask(x.round.T, x.id)
	}
	return x.codec.own[0]
}

func (x *exchange) packWhole(v device.Vector) algo.Compressed {
	b := x.acquire(v.Len())
	x.dev.Do(device.Gather(b, v, nil))
	x.codec.parts = append(x.codec.parts, b)
	return algo.Compressed{Vectors: x.codec.parts}
}

// inverse returns Round.Inverse of a transform.
func (x *exchange) inverse(c dist.Inverter) func(dst, coefficients device.Vector) {
	return func(dst, coefficients device.Vector) {
		p := &x.codec
		p.x = x.read(p.x, coefficients)
		p.y = slices.Grow(p.y[:0], dst.Len())[:dst.Len()]
		c.Inverse(p.y, p.x)
		x.dev.Write(dst, p.y)
	}
}

// signs returns Round.Signs of a transform.
func (x *exchange) signs(c dist.Inverter) func(dst, sums, counts device.Vector) {
	return func(dst, sums, counts device.Vector) {
		p := &x.codec
		p.x, p.y = x.read(p.x, sums), x.read(p.y, counts)
		p.z = slices.Grow(p.z[:0], dst.Len())[:dst.Len()]
		c.Signs(p.z, p.x, p.y)
		x.dev.Write(dst, p.z)
	}
}

// packPart takes coordinates of v.
func (x *exchange) packPart(v device.Vector, at device.Index) algo.Compressed {
	p := &x.codec
	b := x.acquire(at.Len())
	x.dev.Do(device.Gather(b, v, at))
	p.parts = append(p.parts, b)
	return algo.Compressed{Vectors: p.parts, Index: at}
}

// encode is Round.Encode.
func (x *exchange) encode(dst, v device.Vector, which int) error {
	p := &x.codec
	p.x = x.read(p.x, v)
	if err := x.run.setup.Lattice.Encode(p.x, p.x, x.round.T, x.id, which); err != nil {
		return x.diverging(err)
	}
	x.dev.Write(dst, p.x)
	return nil
}

// decode is Round.Decode. The lattice's indices are integers, which the device multiplies by the
// side.
func (x *exchange) decode(dst, codes, ref device.Vector) error {
	p, l := &x.codec, x.run.setup.Lattice
	p.x, p.y = x.read(p.x, codes), x.read(p.y, ref)
	p.decodes.Add(l.Decode(p.x, p.x, p.y))
	x.dev.Write(dst, p.x)
	x.dev.Do(device.Combine(dst, device.Term{A: l.Side, V: dst}))
	return nil
}

func (x *exchange) read(host []float32, v device.Vector) []float32 {
	host = slices.Grow(host[:0], v.Len())[:v.Len()]
	x.dev.Read(host, v)
	return host
}

// diverging turns the error of a codec about values that are not finite into a divergence.
func (x *exchange) diverging(err error) error {
	if _, ok := errors.AsType[*dist.NotFiniteError](err); !ok {
		return err
	}
	return &DivergedError{Agent: x.id, T: x.round.T, Loss: math.NaN(), Cause: err}
}

// accountCoded enters the messages of a link that went through a codec.
func (x *exchange) accountCoded(link int) {
	l := &x.round.Links[link]
	each := len(l.Sent) / x.posts[link]
	for which := range x.posts[link] {
		x.accountOne(l, which, l.Sent[which*each:(which+1)*each])
	}
}

// accountOne enters message number which of a link. Coordinates that follow from a seed are the
// same in all messages of an iteration, and would be sent with the first.
func (x *exchange) accountOne(l *algo.Link, which int, sent []device.Vector) {
	s := x.run.setup
	values := totalLen(sent)
	wire := 4 * values
	m := s.CodedMessage(x.codec.message, x.round.T, values, sent[0].Len())
	m.Indices = which == 0 || m.DataDependent
	if m.DataDependent {
		wire += 4 * m.Mask
	}
	before := x.ledger.Reference
	x.ledger.Send(m)
	x.ledger.WireBytes += uint64(wire)
	if s.Config.ReferenceBits == "published" && s.Compressor != nil {
		x.ledger.Reference = before + x.publishedBits(l, m)
	}
}

// messageBits is the size of a message on a simulated link, by the shared-seed accounting.
func (x *exchange) messageBits(vectors []device.Vector) float64 {
	values := totalLen(vectors)
	if x.codec.message == nil {
		return float64(x.run.setup.WireFormat().Bits()) * float64(values)
	}
	var one dist.Ledger
	one.Send(x.run.setup.CodedMessage(x.codec.message, x.round.T, values, vectors[0].Len()))
	return float64(one.SharedSeed)
}

// publishedBits returns the bits that the released program counts for a message: for a broadcast
// one message more, to the broadcasting agent itself; and without broadcast one message per agent,
// whatever its degree.
func (x *exchange) publishedBits(l *algo.Link, m dist.Sent) uint64 {
	var one dist.Ledger
	one.Send(x.run.setup.PublishedMessage(m))
	first := l.Peer == x.round.Links[0].Peer
	broadcasts := x.run.setup.Process.Broadcasts()
	switch {
	case broadcasts && first:
		return 2 * one.Reference
	case broadcasts || first:
		return one.Reference
	}
	return 0
}
