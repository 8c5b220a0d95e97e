package train

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"fspda/train/evaluate"
)

// observer receives the progress of a run.
type observer interface {
	// enter tells that an agent is at the head of iteration t.
	enter(agent, t int)
	// gradient tells the loss of an agent's batch.
	gradient(agent int, loss float64)
	// exchanged reports a round of an agent: the bits it has sent so far, and the links it received
	// messages over.
	exchanged(a *agent)
	// met reports one exchange of an agent in real time.
	met(a *agent, peer int)
	// evaluating tells that a part of an evaluation is done. Several goroutines call it.
	evaluating()
	// evaluated reports an evaluation of all agents.
	evaluated(agents []evaluate.AgentScore)
}

// noObserver ignores the progress of a run.
type noObserver struct{}

func (noObserver) enter(int, int)                  {}
func (noObserver) gradient(int, float64)           {}
func (noObserver) exchanged(*agent)                {}
func (noObserver) met(*agent, int)                 {}
func (noObserver) evaluating()                     {}
func (noObserver) evaluated([]evaluate.AgentScore) {}

// LiveState is the current state of a run for observers: the iteration of each agent, its latest
// loss, and the most recent exchanges. Agents store single numbers in it and wait for nobody, so an
// observer can neither slow a run nor change it. Make one with NewLiveState.
type LiveState struct {
	agents    []agentCounters
	exchanges atomic.Uint64 // exchanges so far
	recent    [recentEdges]atomic.Uint64

	mu     sync.Mutex
	models []evaluate.AgentScore // scores of the latest evaluation, by agent
}

// recentEdges is the number of exchanges that a LiveState remembers, a power of two.
const recentEdges = 512

// agentCounters is the part of an agent's status that the agent stores. It fills a cache line, so
// that agents do not slow each other.
type agentCounters struct {
	iteration atomic.Int64
	loss      atomic.Uint64 // bits of a float64
	sent      atomic.Uint64 // bits, in the accounting of the run
	gradients atomic.Int64
	_         [32]byte
}

// AgentStatus is the current state of an agent.
type AgentStatus struct {
	Iteration int     // the iteration that the agent has entered
	Loss      float64 // loss of its latest batch; NaN before the first
	Distance  float64 // squared distance from the mean model at the latest evaluation; NaN before the first
	Accuracy  float64 // test accuracy at the latest evaluation; NaN if that did not include it
	Sent      uint64  // bits, in the accounting of the run
}

// NewLiveState makes the LiveState of a run with n agents.
func NewLiveState(n int) *LiveState {
	l := &LiveState{agents: make([]agentCounters, n), models: make([]evaluate.AgentScore, n)}
	for i := range l.agents {
		l.agents[i].loss.Store(math.Float64bits(math.NaN()))
		l.models[i] = evaluate.AgentScore{Distance: math.NaN(), Accuracy: math.NaN()}
	}
	return l
}

// Agents returns the status of every agent, in dst if its capacity suffices.
func (l *LiveState) Agents(dst []AgentStatus) []AgentStatus {
	dst = slices.Grow(dst[:0], len(l.agents))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.agents {
		a, m := &l.agents[i], l.models[i]
		dst = append(dst, AgentStatus{Iteration: int(a.iteration.Load()), Loss: math.Float64frombits(a.loss.Load()),
			Distance: m.Distance, Accuracy: m.Accuracy, Sent: a.sent.Load()})
	}
	return dst
}

// Gradients returns the number of gradients that this process has computed in the run.
func (l *LiveState) Gradients() (total int) {
	for i := range l.agents {
		total += int(l.agents[i].gradients.Load())
	}
	return total
}

// Edges returns the exchanges after the first since, oldest first, as pairs of agents, and their
// total number. The oldest are missing if there were more than a LiveState remembers.
func (l *LiveState) Edges(since uint64) (pairs [][2]int, total uint64) {
	total = l.exchanges.Load()
	if total > recentEdges/2 { // the older half may be overwritten while it is read
		since = max(since, total-recentEdges/2)
	}
	for k := since; k < total; k++ {
		if e := l.recent[k%recentEdges].Load(); e != 0 { // 0: counted, but not yet written
			pairs = append(pairs, [2]int{int(e >> 32), int(uint32(e)) - 1})
		}
	}
	return pairs, total
}

func (l *LiveState) enter(agent, t int) { l.agents[agent].iteration.Store(int64(t)) }

func (l *LiveState) gradient(agent int, loss float64) {
	l.agents[agent].loss.Store(math.Float64bits(loss))
	l.agents[agent].gradients.Add(1)
}

// exchanged records an exchange at one of its ends, or each message of a broadcast.
func (l *LiveState) exchanged(a *agent) {
	s := a.run.setup
	l.agents[a.id].sent.Store(s.Bits(a.exchange.ledger))
	for i := range a.round.Links {
		k := &a.round.Links[i]
		if k.Received != nil && (a.id < k.Peer || s.Broadcasts()) {
			l.record(a.id, k.Peer)
		}
	}
}

// record adds an exchange to the recent ones.
func (l *LiveState) record(agent, peer int) {
	l.recent[(l.exchanges.Add(1)-1)%recentEdges].Store(uint64(agent)<<32 | uint64(peer+1))
}

func (l *LiveState) met(a *agent, peer int) {
	l.agents[a.id].sent.Store(a.run.setup.Bits(a.exchange.ledger))
	if a.id < peer {
		l.record(a.id, peer)
	}
}

func (l *LiveState) evaluating() {}

func (l *LiveState) evaluated(agents []evaluate.AgentScore) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.models = agents
}
