package algo

import (
	"slices"

	"fspda/device"
)

// Algorithm is a decentralized optimization method. It is immutable and shared by all agents.
type Algorithm interface {
	// Name is the name of the recursion, in checkpoints and errors: "fspda-sa".
	Name() string
	// Traits are its facts: what it keeps and sends, and what it needs of a run.
	Traits() Traits
	// Local is the first half of an iteration, before communication. It reads s.X, posts messages
	// to the round's links, and calls r.Grad.
	Local(s *State, r *Round) error
	// Mix is the second half, after communication. Links without received vectors are inactive.
	Mix(s *State, r *Round) error
}

// Stage is a part of an iteration that posts messages.
type Stage func(s *State, r *Round) error

// Stages lists the parts of an iteration that each precede an exchange, Local first. Mix follows
// the last exchange.
func Stages(a Algorithm) []Stage { return append([]Stage{a.Local}, a.Traits().Between...) }

// MessagesPerLink returns how many messages an agent posts on a link before an exchange.
func (e Exchange) MessagesPerLink() int { return max(1, e.Messages) }

// MessagesPerIteration returns how many messages an agent posts on a link in an iteration.
func (e Exchange) MessagesPerIteration() int { return e.MessagesPerLink() * (1 + len(e.Between)) }

// VectorsPerLink returns how many vectors a message consists of.
func (e Exchange) VectorsPerLink() int { return max(1, e.Vectors) }

// RoundLength returns the number of iterations of a round; 1 for algorithms without rounds.
func (r Rounds) RoundLength() int { return max(1, r.Period) }

// AllScratchVectors returns the number of vectors of the length of the model in the working memory
// of an agent and its optimizer.
func (t Traits) AllScratchVectors() int {
	n := t.Work + t.ScratchVectors
	if o, ok := t.Descent.Optimizer().(interface{ ScratchVectors() int }); ok {
		n += o.ScratchVectors()
	}
	return n
}

// State is one agent: its persistent vectors and its working memory. X, Aux, Count, Scalars and
// Edges are all that a checkpoint stores: with them restored, the agent continues with the same
// bits.
type State struct {
	Dev     device.Device
	X       device.Vector   // the model, length d
	Aux     []device.Vector // named by Names, each of length d
	Opt     []device.Vector // the part of Aux that is the optimizer's
	Count   int             // the number of directions that an optimizer with a count gave
	Scalars []float64       // the numbers of Memory.Scalars
	Edges   []*EdgeMemory   // the memory of Memory.EdgeVectors, by peer, ascending
	Workspace

	g device.Vector // gradient of the current iteration

	exceptions
	ones device.Vector // A vector of ones, which GTAdam needs.

	// operand lists, reused so that an iteration allocates none
	input []device.Term // the gradient as the optimizer gets it
	terms []device.Term
	base  []device.Term
	to    []device.Term
	parts []device.SparseTerm
	old   device.Vector // to which a shared vector adds the parts
	operations
	layout

	fill fillers
}

// Workspace is the working memory of an agent, which no checkpoint stores.
type Workspace struct {
	Work    []device.Vector // the vectors of Memory.Work
	Scratch any             // the value of Memory.NewScratch
}

// exceptions are the coordinates without decoupled weight decay.
type exceptions struct {
	except device.Index  // the coordinates; nil: none
	few    device.Vector // a vector of as many numbers
}

// layout says which of the vectors in Aux belong to whom.
type layout struct {
	own     int           // the number of vectors of the algorithm's own, which are first
	average device.Vector // the last vector, of an [Averaged] algorithm; else nil
}

// EdgeMemory is what an agent keeps for one of its edges.
type EdgeMemory struct {
	Peer    int
	Count   int             // the number of exchanges, messages or the like
	Vectors []device.Vector // vectors of the lengths in Memory.EdgeVectors
}

// NewState returns the state of an agent that starts at x^0. It takes ownership of x.
func NewState(a Algorithm, dev device.Device, x device.Vector) *State {
	s := NewPooledState(a, dev, x)
	s.g = dev.NewVector(x.Len())
	for _, k := range a.Traits().Mailbox {
		s.Aux[k] = dev.NewVector(x.Len())
	}
	return s
}

// NewPooledState is NewState without the vectors for gradients and of a mailbox, which
// are nil. [State.SetGradient] sets the first, the caller the others.
func NewPooledState(a Algorithm, dev device.Device, x device.Vector) *State {
	newVector := func() device.Vector { return dev.NewVector(x.Len()) }
	t := a.Traits()
	s := &State{Dev: dev, X: x, Aux: make([]device.Vector, len(t.names())), Scalars: slices.Clone(t.Scalars)}
	s.fill = fillers{s.sumTerms, s.sumDiffs, s.meanTerms, s.addParts}
	for k := range s.Aux {
		if !slices.Contains(t.Mailbox, k) {
			s.Aux[k] = newVector()
		}
	}
	s.own = len(t.Aux)
	s.Opt = s.Aux[s.own : s.own+len(t.Descent.Optimizer().Vectors())]
	if t.Averages {
		s.average = s.Aux[len(s.Aux)-1]
	}
	if d := t.Descent.Decay; d != nil && len(d.Except) > 0 {
		s.except, s.few = dev.NewIndex(d.Except, nil), dev.NewVector(len(d.Except))
	}
	for range t.Work {
		s.Work = append(s.Work, newVector())
	}
	if t.NewScratch != nil {
		s.Scratch = t.NewScratch()
	}
	return s
}

// Connect allocates the memory for the agent's edges of the graph, to the given peers, ascending,
// and starts an average. The first model of the run is in X.
func (s *State) Connect(a Algorithm, peers []int) {
	if s.average != nil {
		s.copy(s.average, s.X)
	}
	s.Edges = NewEdges(a, s.Dev, s.X.Len(), peers)
	if t := a.Traits(); t.EdgesFromModel {
		for _, m := range s.Edges {
			for k, n := range t.EdgeVectors {
				if n == ModelLength {
					s.copy(m.Vectors[k], s.X)
				}
			}
		}
	}
}

// NewEdges allocates the memory for the edges of an agent with a model of length d, to the given
// peers, ascending. It returns nil if the algorithm keeps nothing for an edge.
func NewEdges(a Algorithm, dev device.Device, d int, peers []int) (edges []*EdgeMemory) {
	t := a.Traits()
	if t.EdgeVectors == nil {
		return nil
	}
	for _, peer := range peers {
		m := &EdgeMemory{Peer: peer}
		for _, n := range t.EdgeLengths(d) {
			m.Vectors = append(m.Vectors, dev.NewVector(n))
		}
		edges = append(edges, m)
	}
	return edges
}

func (m Memory) EdgeLengths(d int) []int {
	lengths := slices.Clone(m.EdgeVectors)
	for k, n := range lengths {
		if n == ModelLength {
			lengths[k] = d
		}
	}
	return lengths
}

// CopyTo copies the memory of an edge to the same edge of a copy of the agent.
func (m *EdgeMemory) CopyTo(dev device.Device, to *EdgeMemory) {
	to.Count = m.Count
	for k, v := range m.Vectors {
		dev.Do(device.Gather(to.Vectors[k], v, nil))
	}
}

// Edge returns the memory of the edge to a peer; nil: there is none.
func (s *State) Edge(peer int) *EdgeMemory {
	at, ok := slices.BinarySearchFunc(s.Edges, peer, func(m *EdgeMemory, peer int) int { return m.Peer - peer })
	if !ok {
		return nil
	}
	return s.Edges[at]
}

// Gradient returns the agent's gradient vector. Algorithms may use it as scratch memory within an
// iteration.
func (s *State) Gradient() device.Vector { return s.g }

// SetGradient sets the agent's gradient vector; nil: it has none until the next call.
func (s *State) SetGradient(g device.Vector) { s.g = g }

func (s *State) copy(dst, src device.Vector) { s.do(device.Gather(dst, src, nil)) }

// Aux returns the auxiliary vector with the given name, or nil.
func Aux(a Algorithm, s *State, name string) device.Vector {
	if i := slices.Index(Names(a), name); i >= 0 {
		return s.Aux[i]
	}
	return nil
}

// Gradients changes how a Round's gradients are made.
type Gradients struct {
	// NextBatch makes Grad use a new batch, for several steps in one iteration.
	NextBatch func()
	// Clip shortens the mean v of the agents' gradients at x to the limit of the run, for an
	// algorithm with Updates.ClipsMean. It is nil if there is no limit.
	Clip func(v, x device.Vector)
}

// Round is an agent's input in iteration T: step sizes, edges, gradient and messages.
type Round struct {
	T, Self    int     // iteration, agent
	Alpha, Eta float64 // step sizes of this iteration; Alpha/Eta is constant over a schedule
	Links      []Link  // this iteration's edges of the agent, ordered by peer

	// Grad writes the gradient of this iteration's batch at x, including the L2 term unless weight
	// decay is decoupled, to dst. The first call of an iteration counts as its training step; later
	// calls, at other points, use the same batch.
	Grad func(dst, x device.Vector) error
	// Acquire returns a pooled vector of length n with undefined contents. It is released after the
	// iteration.
	Acquire func(n int) device.Vector
	// Swap exchanges v for a pooled vector of its length with undefined contents: v may then be
	// posted without a copy. If Swap is nil, copy instead.
	Swap func(v device.Vector) device.Vector
	// Post sends vectors over Links[link] and stores there as Sent what the other end receives: they,
	// or copies of them, rounded to short values. The vectors keep their numbers, and must not change
	// afterwards.
	Post func(link int, values ...device.Vector)

	// Retain returns v, a received or shared vector, which then keeps its contents after the
	// iteration and may not be written to, and takes old in exchange: a vector of the agent's own,
	// or one that it returned. If Retain is nil, copy instead.
	Retain func(v, old device.Vector) device.Vector

	Gradients

	// Shared returns vector number which, written by fill, and shared by all agents of this process
	// that call it in Mix. The first caller fills it, so fill must depend only on posted vectors
	// and on vectors that are equal at all agents, and must sum in the order of the agents. Shared
	// is nil unless each agent receives from all others in this iteration, either all coordinates
	// or those that the sender selected. In an all-reduce between processes, Sent and Received of the
	// links are one part of the vectors, and dst is too: it may depend on numbers at its place alone.
	// The result has the length of the posted vectors.
	Shared func(which int, fill func(dst device.Vector)) device.Vector

	SelfWeight float64 // weight W_ii of the agent itself in the run's fixed mixing matrix
	Keep       float64 // p_ii, the share of its own vector that the agent keeps on a directed graph
	Active     bool    // the agent sends to all its links; set with Broadcast edges only
	// Compress returns a compressed copy of v, with a [CompressedCode]; which numbers the vectors that
	// the agent compresses in an iteration from 0. The list of vectors is valid until the next call.
	Compress func(v device.Vector, which int) (Compressed, error)
	// Picks returns the coordinates that Compress takes of any vector; nil: they depend on the
	// vector, or are all. Picks may be nil.
	Picks func(which int) device.Index
	// Encode writes the quantization codes of x to dst; which numbers the agent's vectors. Decode
	// writes the decoded vector closest to ref. Both are nil if vectors are sent uncompressed.
	Encode func(dst, x device.Vector, which int) error
	Decode func(dst, codes, ref device.Vector) error
	Transform
}

// Transform belongs to a compressor that sends coefficients of a transform. Inverse sets dst to the
// vector whose coefficients are given. Signs sets it to the signs of the vector whose coefficients
// are sums divided by counts, and overwrites sums.
type Transform struct {
	Inverse func(dst, coefficients device.Vector)
	Signs   func(dst, sums, counts device.Vector)
}

// Compressed is a compressed vector as its receivers get it. Its memory is released after the
// iteration.
type Compressed struct {
	Vectors []device.Vector // vectors to post: the values, then what the codec adds
	Index   device.Index    // the coordinates of the values; nil means all
}

// Link is an active edge as seen by one of its ends.
type Link struct {
	Peer int
	Mask device.Index // coordinates exchanged, equal at both ends; nil means all
	Len  int          // number of coordinates exchanged
	// weight in this iteration's active graph: that of the edge process, else the Metropolis weight
	ActiveWeight float64
	Initiator    bool    // this end initiates the exchange
	PeerInactive bool    // the link is one-way: the other end sends nothing
	Mute         bool    // the link is one-way: this end sends nothing
	Share        float64 // p_ij, the share of the other end's vector on a directed graph
	// weight W_ij in the run's fixed mixing matrix; 0 if the algorithm uses none
	FixedWeight float64
	Sent        []device.Vector // vectors posted by this end
	Received    []device.Vector // vectors posted by the other end; nil: the exchange failed
	// with a [CompressedCode]: the coordinates of the values of each received message; nil means all
	Coords []device.Index
	// numbers at the end of what this end has sent that are no payload: the ledger counts them as
	// overhead
	Overhead int
}

// Send posts copies of the masked coordinates of each v over every link. Links without a mask share
// one copy.
func (s *State) Send(r *Round, vs ...device.Vector) { s.send(r, device.Gather, vs...) }

// send is Send with a kind of gather.
func (s *State) send(r *Round, gather func(dst, src device.Vector, idx device.Index) device.Op, vs ...device.Vector) {
	var dense []device.Vector
	for i := range r.Links {
		l := &r.Links[i]
		own := dense
		if l.Mask != nil || own == nil {
			own = make([]device.Vector, len(vs))
			for k, v := range vs {
				own[k] = r.Acquire(l.Len)
				s.do(gather(own[k], v, l.Mask))
			}
		}
		if l.Mask == nil {
			dense = own
		}
		r.Post(i, own...)
	}
}

// SendModel is Send of s.X for algorithms that compute a gradient at s.X next, and overwrite all of
// it in this iteration. It returns the model that was sent. Links without a mask get it without a
// copy.
func (s *State) SendModel(r *Round) (x device.Vector) {
	if len(r.Links) == 0 || r.Links[0].Mask != nil || r.Swap == nil {
		s.send(r, device.GatherWithGradient, s.X)
		return s.X
	}
	sent, x := s.handOver(r)
	s.post(r, sent)
	return x
}

// handOver returns the model in a vector that may be posted, without a copy if it can: then s.X has
// undefined contents, and the algorithm overwrites all of it in this iteration. It also returns the
// model with all its bits: a short wire format rounds the vector that is posted.
func (s *State) handOver(r *Round) (sent, x device.Vector) {
	if r.Swap == nil {
		return s.copied(r, s.X), s.X
	}
	x = s.X
	s.X = r.Swap(x)
	return x, x
}

// targets stores the terms of an AddDiff in the agent's reused operand list.
func (s *State) targets(terms ...device.Term) []device.Term {
	s.to = append(s.to[:0], terms...)
	return s.to
}

// operations is memory that an agent reuses for its operations on vectors.
type operations struct {
	ops   []device.Op
	plans []device.Op // The operations that the next flush computes.
	sum   float64     // The result of the last inner product.
}

// do computes operations on the agent's device. They are copied to a list that is reused, so that
// an iteration allocates none.
func (s *State) do(ops ...device.Op) {
	s.ops = append(s.ops[:0], ops...)
	s.Dev.Do(s.ops...)
}

// dot returns the inner product of two vectors.
func (s *State) dot(a, b device.Vector) float64 {
	s.do(device.Dot(&s.sum, a, b))
	return s.sum
}

// combine computes a combination, with the agent's reused operand list.
func (s *State) combine(dst device.Vector, terms ...device.Term) {
	s.terms = append(s.terms[:0], terms...)
	s.do(device.Combine(dst, s.terms...))
}

// plan adds a combination to the operations that the next [State.flush] computes. Nothing may read
// dst before.
func (s *State) plan(dst device.Vector, terms ...device.Term) {
	op := s.planned()
	*op = device.Combine(dst, append(op.Terms[:0], terms...)...)
}

// planAdamW plans AdamW of the gradient g at x.
func (s *State) planAdamW(a device.Adam, g, x device.Vector) {
	op := s.planned()
	list := op.Terms[:0]
	*op = device.AdamW(a, g, s.Opt[0], s.Opt[1], x)
	op.Terms = list // the next combination uses its memory
}

// planned adds an operation to the planned ones. It has the operand list of an earlier one.
func (s *State) planned() *device.Op {
	n := len(s.plans)
	if n < cap(s.plans) {
		s.plans = s.plans[:n+1]
	} else {
		s.plans = append(s.plans, device.Op{})
	}
	return &s.plans[n]
}

// flush computes what is planned, in one call, so that the device may do so in one pass.
func (s *State) flush() {
	if len(s.plans) > 0 {
		s.Dev.Do(s.plans...)
		s.plans = s.plans[:0]
	}
}
