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

// packer is an agent's memory for compressing and quantizing on the host. What it makes goes into
// vectors of the device, which is how it travels inside the process; the message's codec says how
// it would travel outside.
type packer struct {
	speakers []int
	own      device.Index // coordinates of what the agent itself broadcasts
	parts    []device.Vector
	payload  dist.Payload
	x, y     []float32
	decodes  dist.DecodeStats
	codec    dist.Codec // of the agent's messages; nil: float32
}

// prepare sets what does not change over the iterations.
func (a *agent) prepare() {
	s := a.run.setup
	if s.Mixing != nil {
		a.round.SelfWeight = s.Mixing.Self(a.id)
	}
	a.round.NextBatch = a.next
	if s.Compressor != nil {
		a.round.Compress = a.pack
		a.pk.codec = s.Compressor
	}
	if s.Lattice != nil {
		a.round.Encode, a.round.Decode = a.encode, a.decode
		a.pk.codec = s.Lattice.Codec(s.Algo.(algo.MultiVector).Vectors(), s.Dim)
	}
}

// next is Round.Next.
func (a *agent) next() {
	if a.taken {
		a.loader.Release(a.batch)
		a.taken = false
	}
}

// broadcast sets the round's links for an algorithm of speakers: those over which somebody speaks.
// What is heard brings its coordinates.
func (a *agent) broadcast(t int) {
	s := a.run.setup
	speaks := a.speaking(t)
	a.round.Active = speaks(a.id)
	for k, peer := range s.Graph.Neighbours(a.id) {
		silent := !speaks(peer)
		if silent && !a.round.Active {
			continue
		}
		at := len(a.round.Links)
		a.growMasks(at)
		fixed := s.Mixing.Edge(s.Graph.Incident(a.id)[k])
		a.link(peer, nil, s.Dim, fixed, fixed)
		a.round.Links[at].PeerInactive = silent
	}
	if s.Graph.Degree(a.id) == s.Graph.N-1 && len(s.Graph.Edges) == s.Graph.N*(s.Graph.N-1)/2 {
		a.round.Shared = a.common
	}
}

// locate sets the coordinates of what was heard over a link of a broadcast: those that a seed
// gives, which do not travel, or what lies beside the values.
func (a *agent) locate(l *algo.Link, b *dist.Buffer) {
	if c, ok := a.run.setup.Compressor.(dist.RandK); ok {
		if !c.Mask.Dense() {
			l.Mask = a.spokenMask(a.round.T, l.Peer)
			l.Len = l.Mask.Len()
		}
		return
	}
	if len(b.Coords) == 0 {
		return
	}
	at := slices.IndexFunc(a.round.Links, func(o algo.Link) bool { return o.Peer == l.Peer })
	a.masks[at] = a.dev.NewIndex(b.Coords, a.masks[at])
	l.Mask, l.Len = a.masks[at], len(b.Coords)
}

// speaking tells who speaks at iteration t: those whom a broadcast process names, and everybody
// where another process has edges.
func (a *agent) speaking(t int) func(i int) bool {
	s := a.run.setup
	if _, ok := s.Process.(dist.Broadcaster); ok {
		a.pk.speakers = a.run.speakers(a.pk.speakers, t)
		return func(i int) bool { _, found := slices.BinarySearch(a.pk.speakers, i); return found }
	}
	all := a.run.somebodySpeaks(t)
	return func(int) bool { return all }
}

// speakers lists who speaks at iteration t, ascending.
func (r *run) speakers(dst []int, t int) []int {
	if b, ok := r.setup.Process.(dist.Broadcaster); ok {
		return b.Speakers(dst, t)
	}
	dst = dst[:0]
	if r.somebodySpeaks(t) {
		for i := range r.setup.Graph.N {
			dst = append(dst, i)
		}
	}
	return dst
}

// somebodySpeaks tells whether a process that is no broadcast has edges at iteration t: then
// everybody speaks.
func (r *run) somebodySpeaks(t int) bool {
	now := r.active(t)
	defer r.actives.Put(now)
	return len(now.events) > 0
}

func (a *agent) growMasks(at int) {
	if at == len(a.masks) {
		a.masks = append(a.masks, nil)
	}
}

// begins tells whether the agent is the initiator of an event.
func (a *agent) begins(t int, e dist.Event) bool {
	s := a.run.setup
	// the released program's rule: at agents of different degree it may name both ends, or neither
	if s.Config.Initiator == "degree" {
		return a.id == t%(s.Graph.Degree(a.id)+1)
	}
	from := e.From
	if s.Process.String() == "matching" { // its events are ordered by number: a coin decides
		if coin := rng.New(s.Config.Seed, "initiator", uint64(t), uint64(e.Edge)); coin.Uint64()>>63 == 1 {
			from = e.To
		}
	}
	return a.id == from
}

// pack is Round.Compress. Where coordinates alone are picked, the values never leave the device.
func (a *agent) pack(v device.Vector) (algo.Compressed, error) {
	s, p := a.run.setup, &a.pk
	p.parts = p.parts[:0]
	t := a.round.T
	switch c := s.Compressor.(type) {
	case dist.RandK:
		if c.Mask.Dense() {
			return a.packWhole(v), nil
		}
		return a.packPart(v, a.spokenMask(t, a.id)), nil
	default:
		if c.String() == "identity" {
			return a.packWhole(v), nil
		}
	}
	p.x = a.read(p.x, v)
	if err := s.Compressor.Compress(&p.payload, p.x, t, a.id); err != nil {
		return algo.Compressed{}, a.diverging(err)
	}
	if coords := p.payload.Coords; coords != nil {
		p.own = a.dev.NewIndex(coords, p.own)
		made := a.packPart(v, p.own)
		last := a.own[len(a.own)-1] // coordinates lie beside the values
		last.Coords = append(last.Coords[:0], coords...)
		return made, nil
	}
	for _, values := range p.payload.Vectors {
		b := a.lend(len(values))
		a.dev.Write(b, values)
		p.parts = append(p.parts, b)
	}
	return algo.Compressed{Vectors: p.parts}, nil
}

func (a *agent) packWhole(v device.Vector) algo.Compressed {
	b := a.lend(v.Len())
	a.dev.Gather(b, v, nil)
	a.pk.parts = append(a.pk.parts, b)
	return algo.Compressed{Vectors: a.pk.parts}
}

// packPart takes coordinates of v.
func (a *agent) packPart(v device.Vector, at device.Index) algo.Compressed {
	p := &a.pk
	b := a.lend(at.Len())
	a.dev.Gather(b, v, at)
	p.parts = append(p.parts, b)
	return algo.Compressed{Vectors: p.parts, Index: at}
}

// encode is Round.Encode.
func (a *agent) encode(dst, x device.Vector, which int) error {
	p := &a.pk
	p.x = a.read(p.x, x)
	if err := a.run.setup.Lattice.Encode(p.x, p.x, a.round.T, a.id, which); err != nil {
		return a.diverging(err)
	}
	a.dev.Write(dst, p.x)
	return nil
}

// decode is Round.Decode. The lattice's indices are whole numbers, which the device multiplies by
// the side.
func (a *agent) decode(dst, codes, ref device.Vector) error {
	p, l := &a.pk, a.run.setup.Lattice
	p.x, p.y = a.read(p.x, codes), a.read(p.y, ref)
	p.decodes.Add(l.Decode(p.x, p.x, p.y))
	a.dev.Write(dst, p.x)
	a.dev.Combine(dst, device.Term{A: l.Side, V: dst})
	return nil
}

func (a *agent) read(host []float32, v device.Vector) []float32 {
	if cap(host) < v.Len() {
		host = make([]float32, v.Len())
	}
	host = host[:v.Len()]
	a.dev.Read(host, v)
	return host
}

// diverging is the divergence of an agent whose numbers no codec can carry.
func (a *agent) diverging(err error) error {
	var bad *dist.NotFiniteError
	if !errors.As(err, &bad) {
		return err
	}
	return &DivergedError{Agent: a.id, T: a.round.T, Loss: math.NaN(), Cause: err}
}

// accountOne enters a message that goes through a codec.
func (a *agent) accountOne(l *algo.Link) {
	s := a.run.setup
	values, wire := 0, 0
	for _, v := range l.Sent {
		values += v.Len()
	}
	wire = 4 * values
	m := a.describe(values, l.Sent[0].Len())
	if m.DataDependent {
		wire += 4 * m.Mask
	}
	before := a.ledger.Reference
	a.ledger.Send(m)
	a.ledger.WireBytes += uint64(wire)
	if s.Config.PaperBits == "published" && s.Compressor != nil {
		a.ledger.Reference = before + a.publishedBits(l, m)
	}
}

// describe is a message that goes through a codec, of so many values on a mask, as the ledger wants
// it.
func (a *agent) describe(values, mask int) dist.Sent {
	s := a.run.setup
	m := dist.Sent{Values: values, ValueBits: 32, Mask: mask, Dim: s.Dim}
	if _, ok := s.Compressor.(dist.RandK); !ok {
		m = a.pk.codec.Sent(dist.Payload{Dim: s.Dim})
	}
	m.Indices = true // every message goes by itself
	return m
}

// messageBits is what a message has on a link: that of the shared-seed accounting.
func (a *agent) messageBits(vectors []device.Vector) float64 {
	values := 0
	for _, v := range vectors {
		values += v.Len()
	}
	if a.pk.codec == nil {
		return float64(a.run.setup.WireFormat().Bits()) * float64(values)
	}
	var one dist.Ledger
	one.Send(a.describe(values, vectors[0].Len()))
	return float64(one.SharedSeed)
}

// publishedBits is what the released program counts for a message: no sign and no norm of qsgd, for
// a broadcast a message more, to the speaker itself, and without broadcast one message an agent,
// whatever its degree.
func (a *agent) publishedBits(l *algo.Link, m dist.Sent) uint64 {
	if m.ExtraBits > 0 {
		m.ValueBits, m.ExtraBits = m.ValueBits-1, 0
	}
	var one dist.Ledger
	one.Send(m)
	first := l.Peer == a.round.Links[0].Peer
	_, broadcasts := a.run.setup.Process.(dist.Broadcaster)
	switch {
	case broadcasts && first:
		return 2 * one.Reference
	case broadcasts || first:
		return one.Reference
	}
	return 0
}
