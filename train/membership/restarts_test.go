package membership

import (
	"context"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// restarts is a run of agents whose processes die and are started again from checkpoints, and
// some of which leave. The state of an agent is a digest of all that it has used.
type restarts struct {
	t      *testing.T
	draw   *rand.Rand
	rules  Rules
	epochs []Epoch
	now    *Log            // Of the epochs.
	starts func(agent int) // A process of it begins.
	agents []*restarted
	rows   map[int]map[int]uint64 // The states that agent 0 has, by iteration and agent.
}

// restarted is an agent.
type restarted struct {
	member, up bool
	resigned   bool
	saved      point
	point
	first   int
	links   []bool // It has been connected to another agent.
	shut    int    // It does not enter this iteration.
	entered bool   // It has sent the messages of iteration t.
	sent    []map[int]uint64
	arrived []map[int]uint64
	Departures
}

// point is the head of an iteration and the state there.
type point struct {
	t     int
	state uint64
}

func mix(a, b uint64) uint64 {
	a = (a ^ b) * 0x9e3779b97f4a7c15
	return a ^ a>>29
}

// chance is true with a probability of one in n.
func (r *restarts) chance(n int) bool { return r.draw.IntN(n) == 0 }

// senders lists the agents that send to another one in an iteration, ascending.
func (r *restarts) senders(to, t int) (all []int) {
	for i, j := range r.rules.Sends(t) {
		if j == to {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return all
}

// start starts the process of an agent from its checkpoint. It asks for the messages again that
// it had later.
func (r *restarts) start(i int) {
	a := r.agents[i]
	a.up, a.entered, a.point, a.first, a.links = true, false, a.saved, a.saved.t, make([]bool, len(r.agents))
	r.starts(i)
	a.Departures = Separate(i, r.rules)
	a.Enter(Exchange{T: a.t})
	if a.shut < never {
		a.shut = a.t + 1
	}
	for j := range r.agents {
		maps.DeleteFunc(a.sent[j], func(t int, _ uint64) bool { return t >= a.t })
		maps.DeleteFunc(a.arrived[j], func(t int, _ uint64) bool { return t >= a.t })
	}
	a.resigned = slices.ContainsFunc(r.epochs, func(e Epoch) bool { return r.lacks(i, e) })
}

// lacks reports whether an agent needs messages of one that has left.
func (r *restarts) lacks(i int, e Epoch) bool {
	a := r.agents[i]
	return a.Lacks(e.Left[0], e.At, e.IdleAt(i), a.first)
}

// step moves an agent on, if it has the messages that it needs.
func (r *restarts) step(i int) {
	a := r.agents[i]
	if !a.member || !a.up || a.resigned || !a.entered && a.t >= a.shut {
		return
	}
	if !a.entered {
		if a.t%7 == 0 {
			if r.rows[a.t] == nil {
				r.rows[a.t] = map[int]uint64{}
			}
			if _, has := r.rows[a.t][i]; !has {
				r.rows[a.t][i] = a.state
			}
		}
		a.Enter(Exchange{T: a.t})
		a.entered = true
		for from, to := range r.rules.Sends(a.t) {
			if from == i {
				a.sent[to][a.t] = a.state
			}
		}
		return
	}
	next := mix(a.state, uint64(a.t))
	for _, j := range r.senders(i, a.t) {
		if r.now.Idle(i, j, Exchange{T: a.t}) {
			continue
		}
		m, has := a.arrived[j][a.t]
		if !has {
			return
		}
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if !a.Uses(over, j, Exchange{T: a.t}) {
			return // It waits until the change is agreed.
		}
		next = mix(next, m)
	}
	a.point, a.entered = point{a.t + 1, next}, false
	if r.chance(9) {
		a.saved = a.point
	}
}

// deliver takes the next message from one agent to another over a link.
func (r *restarts) deliver(from, to int) {
	a, b := r.agents[from], r.agents[to]
	if from == to || !a.up || !b.up || !a.member || !b.member {
		return
	}
	a.links[to], b.links[from] = true, true
	for _, t := range slices.Sorted(maps.Keys(a.sent[to])) {
		if _, has := b.arrived[from][t]; !has {
			b.arrived[from][t] = a.sent[to][t]
			return
		}
	}
}

// linked reports whether an agent has been connected to all other members.
func (r *restarts) linked(i int) bool {
	return !slices.ContainsFunc(r.members(), func(j int) bool { return j != i && !r.agents[i].links[j] })
}

// see adds the exchanges to which agents have come as one of them knows.
func (r *restarts) see(i int, seen map[int]Exchange) {
	add := func(j, t int) { seen[j] = seen[j].Later(Exchange{T: t}) }
	add(i, r.agents[i].Now().T)
	for j, arrived := range r.agents[i].arrived {
		for t := range arrived {
			add(j, t)
		}
	}
	for t, row := range r.rows {
		for j := range row {
			if i == 0 && r.agents[j].member {
				add(j, t)
			}
		}
	}
}

func (r *restarts) log() *Log {
	l := Elastic(len(r.agents))
	if err := l.Replace(r.epochs); err != nil {
		r.t.Fatal(err)
	}
	return l
}

// act does something to an agent.
func (r *restarts) act() {
	i, n := r.draw.IntN(len(r.agents)), len(r.agents)
	a := r.agents[i]
	switch what := r.draw.IntN(400); {
	case what < 200:
		r.step(i)
	case what < 390:
		r.deliver(i, r.draw.IntN(n))
	case what < 393 && i > 0:
		a.up = false
	case a.member && !a.up:
		r.start(i)
	}
}

// leave lets agents leave while the others go on, some of which are started again.
func (r *restarts) leave(gone ...int) {
	for _, i := range gone {
		r.agents[i].member, r.agents[i].up = false, false
	}
	pending, seen, at := make([]Epoch, len(gone)), map[int]Exchange{}, 0
	for k := range gone {
		pending[k] = Epoch{Left: gone[k : k+1], Idle: map[int]Exchange{}}
	}
	told, saw := map[int]bool{}, map[int]bool{}
	r.starts = func(i int) { // All look anew for its messages when the new process has told.
		delete(told, i)
		clear(saw)
	}
	for len(saw) < len(r.members()) {
		for range r.draw.IntN(30) {
			r.act()
		}
		members := r.members()
		i := members[r.draw.IntN(len(members))]
		a := r.agents[i]
		switch {
		case !a.up:
			r.start(i)
		case !told[i] && r.linked(i):
			for k := range pending {
				if pending[k].Idle[i] = a.Close(gone[k], 0); a.resigned {
					pending[k].Idle[i] = Exchange{T: never}
				}
			}
			a.shut = a.t + 1
			at, told[i] = max(at, a.shut), true
		case len(told) == len(members):
			r.see(i, seen)
			saw[i] = true
		}
	}
	r.starts = func(int) {}
	for _, i := range r.members() {
		at = max(at, r.rules.After(seen[i]))
	}
	if n := len(r.epochs); n > 0 {
		at = max(at, r.epochs[n-1].At)
	}
	for k := range pending {
		pending[k].Epoch, pending[k].At = len(r.epochs)+1, at
		maps.DeleteFunc(pending[k].Idle, func(_ int, e Exchange) bool { return e.T >= at })
		r.epochs = append(r.epochs, pending[k])
	}
	r.rules.Settle(r.epochs, len(gone), seen)
	r.now = r.log()
	for _, i := range r.members() {
		a := r.agents[i]
		a.shut = never
		a.resigned = a.resigned || slices.ContainsFunc(pending, func(e Epoch) bool { return r.lacks(i, e) })
		a.EndWaits()
	}
}

func (r *restarts) members() (all []int) {
	for i, a := range r.agents {
		if a.member {
			all = append(all, i)
		}
	}
	return all
}

// A run in which processes die, are started again and leave ends with the states that its log
// gives. FSPDA_LONG=1 plays more of them.
func TestRestarts(t *testing.T) {
	const n, end = 6, 60
	total, runs := 0, uint64(150)
	if os.Getenv("FSPDA_LONG") != "" {
		runs = 3000
	}
	for seed := range runs {
		draw := rand.New(rand.NewPCG(seed, 1))
		sends := func(t int) iter.Seq2[int, int] {
			return func(yield func(from, to int) bool) {
				d := rand.New(rand.NewPCG(seed, uint64(t)+2))
				i := d.IntN(n)
				j := (i + 1) % n
				if seed%3 == 0 { // One way
					_ = yield(i, j)
				} else if yield(i, j) && yield(j, i) && seed%3 == 1 {
					_ = yield((i+3)%n, (j+3)%n) && yield((j+3)%n, (i+3)%n)
				}
			}
		}
		r := &restarts{t: t, draw: draw, rules: Rules{Agents: n, Exchanges: 1, Sends: sends}, now: Elastic(n),
			starts: func(int) {}, rows: map[int]map[int]uint64{}}
		goesOn := func(i int) bool { return r.agents[i].t < end && !r.agents[i].resigned }
		for i := range n {
			a := &restarted{member: true, shut: never, saved: point{0, uint64(i)}}
			for range n {
				a.sent, a.arrived = append(a.sent, map[int]uint64{}), append(a.arrived, map[int]uint64{})
			}
			r.agents = append(r.agents, a)
		}
		for i := range n {
			r.start(i)
		}
		for k := 1; slices.ContainsFunc(r.members(), goesOn); k++ {
			r.act()
			var gone []int
			for _, i := range r.members() {
				if r.agents[i].resigned {
					gone = []int{i}
					total++
				}
			}
			if others := r.members(); k%400 == 0 && len(others) > 3 && len(gone) == 0 {
				draw.Shuffle(len(others), func(a, b int) { others[a], others[b] = others[b], others[a] })
				gone = slices.DeleteFunc(others[:1+draw.IntN(2)], func(i int) bool { return i == 0 })
			}
			if len(gone) > 0 && len(gone) < len(r.members()) {
				r.leave(gone...)
			}
			if k > 1e5 {
				t.Fatalf("seed %d: no progress: %s", seed, Text(r.epochs))
			}
		}
		r.replay(seed, end)
	}
	t.Logf("%d members could not go on", total)
}

// replay plays the run by its log.
func (r *restarts) replay(seed uint64, end int) {
	log, n := r.log(), len(r.agents)
	state := make([]uint64, n)
	for i := range state {
		state[i] = uint64(i)
	}
	for t := range end {
		for _, i := range r.members() {
			if row, has := r.rows[t][i]; has && row != state[i] {
				r.t.Fatalf("seed %d: the report of agent %d in iteration %d is of another state: %s", seed, i, t,
					Text(r.epochs))
			}
			if a := r.agents[i]; a.t == t && a.state != state[i] {
				r.t.Fatalf("seed %d: agent %d ends at iteration %d in another state: %s", seed, i, t, Text(r.epochs))
			}
		}
		next := slices.Clone(state)
		for i := range n {
			next[i] = mix(state[i], uint64(t))
			for _, j := range r.senders(i, t) {
				if !log.Idle(i, j, Exchange{T: t}) {
					next[i] = mix(next[i], state[j])
				}
			}
		}
		state = next
	}
}
