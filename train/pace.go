package train

import (
	"math"
	"slices"
	"sync"
)

// pace knows where the agents are and tells each, at the head of an iteration, whether to leave a
// checkpoint there or to stop. There is no barrier: a request names an iteration that nobody has
// reached yet, and everybody meets it in their own time.
type pace struct {
	mu     sync.Mutex
	at     []int // the iteration each agent has entered
	stop   int   // nobody goes on from here
	last   int   // the end of the run
	saves  []int // iterations to be saved that some agent has still to reach, ascending
	broken int   // the iteration inside which the run diverged
	lone   bool  // there is one agent in this process: the others count as being where it is
}

func newPace(agents, first, last int) *pace {
	p := &pace{at: make([]int, agents), stop: last, last: last, broken: math.MaxInt}
	for i := range p.at {
		p.at[i] = first - 1
	}
	return p
}

// order is what an agent is told at the head of an iteration.
type order struct {
	stop  bool // it ends here
	save  bool // it leaves its state for a checkpoint
	count bool // the iteration's head still belongs to the run: false only beyond a divergence
	alone bool // the run diverged inside this iteration: the agent finds out whether it does, too, and waits for nobody
}

// enter records that agent i is at the head of iteration t.
func (p *pace) enter(i, t int) order {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[i] = t
	if p.lone {
		for k := range p.at {
			p.at[k] = t
		}
	}
	if t >= p.broken {
		return order{stop: t > p.broken, count: t == p.broken, alone: true}
	}
	return order{stop: t >= p.stop, save: t == p.stop || slices.Contains(p.saves, t), count: true}
}

// cross records that agent i has gone beyond logical time t, in a run in which times are passed
// over. A request to save is met by whoever first gets as far.
func (p *pace) cross(i, t int) order {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[i] = t
	if p.lone {
		for k := range p.at {
			p.at[k] = t
		}
	}
	if t >= p.broken {
		return order{stop: true, alone: true}
	}
	waiting := len(p.saves)
	p.saves = slices.DeleteFunc(p.saves, func(at int) bool { return at <= t })
	stop := p.stop < p.last && t >= p.stop
	return order{stop: stop, save: stop || len(p.saves) < waiting, count: true}
}

// request asks for a checkpoint at the first iteration that nobody has reached; with stop, for the
// end of the run there. It returns that iteration. A request to save returns the earlier one while
// that is still on its way.
func (p *pace) request(stop bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, last := slices.Min(p.at), slices.Max(p.at)
	p.saves = slices.DeleteFunc(p.saves, func(t int) bool { return t < first })
	if len(p.saves) > 0 && !stop {
		return p.saves[0]
	}
	t := min(last+1, p.stop)
	if stop {
		p.stop = t
	} else {
		p.saves = append(p.saves, t)
	}
	return t
}

// diverge says that an agent broke inside iteration t. What stands at the head of t is whole, and
// the same in every run: agents that are behind still go there, and through their own half of it,
// so that all who break in it are known. Those it returns are inside t or beyond it, perhaps
// waiting for somebody who will not come.
func (p *pace) diverge(t int) (beyond []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = min(p.broken, t)
	for i, at := range p.at {
		if at >= t {
			beyond = append(beyond, i)
		}
	}
	return beyond
}

// beyond tells whether the head of iteration t lies behind the iteration inside which the run
// diverged: not all agents will get there.
func (p *pace) beyond(t int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return t > p.broken
}
