package train

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Watch shows a run in motion to onlookers: where each agent is, its latest loss, and the edges
// that spoke. Agents leave single numbers in it and wait for nobody, so an onlooker can neither
// slow a run nor change it. Make one with NewWatch; a nil Watch sees nothing.
type Watch struct {
	agents []watched
	spoken atomic.Uint64 // exchanges so far
	edges  [recentEdges]atomic.Uint64

	mu     sync.Mutex
	models []modelSight // by agent, of the latest evaluation
}

// recentEdges is how many exchanges a Watch remembers. A power of two.
const recentEdges = 512

// watched is what an agent tells of itself. It has a cache line of its own, so that agents do not
// slow each other.
type watched struct {
	iteration atomic.Int64
	loss      atomic.Uint64 // bits of a float64
	sent      atomic.Uint64 // bits, in the accounting of the run
	_         [40]byte
}

// modelSight is what an evaluation says of an agent's model; NaN where it did not look.
type modelSight struct{ distance, accuracy float64 }

// AgentSight is what an onlooker sees of an agent.
type AgentSight struct {
	Iteration int     // that it has entered
	Loss      float64 // of its latest batch; NaN before the first
	Distance  float64 // squared, from the mean model, at the latest evaluation; NaN before the first
	Accuracy  float64 // on the test set, at the latest evaluation; NaN where that did not look at it
	Sent      uint64  // bits, in the accounting of the run
}

// NewWatch makes a Watch of a run with n agents.
func NewWatch(n int) *Watch {
	w := &Watch{agents: make([]watched, n), models: make([]modelSight, n)}
	for i := range w.agents {
		w.agents[i].loss.Store(math.Float64bits(math.NaN()))
		w.models[i] = modelSight{math.NaN(), math.NaN()}
	}
	return w
}

// Agents returns what is to be seen of every agent, in dst where that has room.
func (w *Watch) Agents(dst []AgentSight) []AgentSight {
	dst = slices.Grow(dst[:0], len(w.agents))
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.agents {
		a, m := &w.agents[i], w.models[i]
		dst = append(dst, AgentSight{Iteration: int(a.iteration.Load()), Loss: math.Float64frombits(a.loss.Load()),
			Distance: m.distance, Accuracy: m.accuracy, Sent: a.sent.Load()})
	}
	return dst
}

// Edges returns the exchanges after the first since, oldest first, as pairs of agents, and how many
// there were in all. Where more came than a Watch remembers, the oldest are missing.
func (w *Watch) Edges(since uint64) (pairs [][2]int, total uint64) {
	total = w.spoken.Load()
	if total > recentEdges/2 { // the older half may be overwritten while it is read
		since = max(since, total-recentEdges/2)
	}
	for k := since; k < total; k++ {
		if e := w.edges[k%recentEdges].Load(); e != 0 { // 0: counted, but not yet written
			pairs = append(pairs, [2]int{int(e >> 32), int(uint32(e)) - 1})
		}
	}
	return pairs, total
}

// enter notes that an agent is at the head of iteration t.
func (w *Watch) enter(agent, t int) {
	if w != nil {
		w.agents[agent].iteration.Store(int64(t))
	}
}

// gradient notes the loss of an agent's batch.
func (w *Watch) gradient(agent int, loss float64) {
	if w != nil {
		w.agents[agent].loss.Store(math.Float64bits(loss))
	}
}

// exchanged notes what an agent sent so far and whom it heard in this round. One end of an exchange
// tells of it, or each of a broadcast.
func (w *Watch) exchanged(a *agent) {
	if w == nil {
		return
	}
	s := a.run.setup
	w.agents[a.id].sent.Store(s.Bits(a.ledger))
	for i := range a.round.Links {
		if l := &a.round.Links[i]; l.Received != nil && (a.id < l.Peer || s.Compressor != nil) {
			w.edges[(w.spoken.Add(1)-1)%recentEdges].Store(uint64(a.id)<<32 | uint64(l.Peer+1))
		}
	}
}

// met notes what an agent of a run in real time sent so far, and an exchange with a peer.
func (w *Watch) met(a *agent, peer int) {
	if w == nil {
		return
	}
	w.agents[a.id].sent.Store(a.run.setup.Bits(a.ledger))
	if a.id < peer {
		w.edges[(w.spoken.Add(1)-1)%recentEdges].Store(uint64(a.id)<<32 | uint64(peer+1))
	}
}

// evaluated notes distances from the mean for all models, and the test accuracy of those that were
// looked at.
func (w *Watch) evaluated(models [][]float32, mean []float64, points []*point) {
	if w == nil {
		return
	}
	sights := make([]modelSight, len(models))
	for i, m := range models {
		sights[i] = modelSight{squaredDistance(m, mean), math.NaN()}
	}
	for k, p := range points {
		sights[k*len(models)/len(points)].accuracy, _ = p.test.rates()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.models = sights
}

// squaredDistance is |x - mean|².
func squaredDistance(x []float32, mean []float64) float64 {
	sq := 0.0
	for k, v := range x {
		d := float64(v) - mean[k]
		sq += float64(d * d)
	}
	return sq
}
