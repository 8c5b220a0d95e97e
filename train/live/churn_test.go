package live

import (
	"testing"
	"testing/synctest"
	"time"

	"fspda/internal/rng"
)

// run starts all agents, runs the events, and waits for the end.
func (l *testNetwork) run(events func()) {
	for i := range l.last {
		l.start(i)
	}
	events()
	l.finish()
}

// A killed agent continues from its checkpoint, and its edges catch up with its neighbours.
func TestKilledAgentRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestNetwork(t, 4, 2500)
		l.run(func() {
			for k := range 12 {
				time.Sleep(time.Second)
				l.kill(k % 4)
				time.Sleep(500 * time.Millisecond)
				l.start(k % 4)
			}
		})
		l.check(0.6, upTo(4)...)
	})
}

// Two agents are killed at once, with checkpoints of different times.
func TestTwoAgentsAreKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestNetwork(t, 4, 1500)
		l.run(func() {
			for k := range 5 {
				time.Sleep(time.Second)
				i, j := k%4, (k+1)%4
				l.kill(i)
				time.Sleep(150 * time.Millisecond)
				l.kill(j)
				l.start(j)
				l.start(i)
			}
		})
		l.check(0.6, upTo(4)...)
	})
}

// An agent that never returns is dropped. The duals of the others sum to zero without it, and they
// converge to their own optimum.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestNetwork(t, 4, 3000)
		l.dropAfter = 4 * time.Second
		l.run(func() {
			time.Sleep(5 * time.Second)
			l.kill(2)
		})
		l.check(0.6, 0, 1, 3)
	})
}

// A dropped agent that returns, with or without its checkpoint, is part of the sum again.
func TestDroppedAgentReturns(t *testing.T) {
	for name, forgets := range map[string]bool{"from its checkpoint": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newTestNetwork(t, 4, 3500)
				l.dropAfter = 3 * time.Second
				l.run(func() {
					time.Sleep(4 * time.Second)
					l.kill(2)
					time.Sleep(6 * time.Second)
					if forgets {
						l.saved[2] = nil
					}
					l.start(2)
					time.Sleep(time.Second)
					if got, others := l.last[2].time(), l.last[0].time(); got < others-50 {
						t.Errorf("it is at %d, the others at %d", got, others)
					}
				})
				l.check(0.6, upTo(4)...)
			})
		})
	}
}

// An agent that has lost its checkpoint, and was not dropped yet, starts from the mean of the
// others with a zero dual.
func TestRejoinsWithoutCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestNetwork(t, 4, 3000)
		l.run(func() {
			time.Sleep(5 * time.Second)
			l.kill(1)
			l.saved[1] = nil
			l.start(1)
			time.Sleep(20 * time.Millisecond)
			p := l.last[1]
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.joining || p.clock.T < 200 {
				t.Errorf("it is at %d after 20 ms", p.clock.T)
			}
			if far := l.distanceOf(p); far > 1 {
				t.Errorf("it starts at a distance of %g", far)
			}
		})
		l.check(0.6, upTo(4)...)
	})
}

// An agent that is missing at the start joins later.
func TestJoinsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestNetwork(t, 4, 3000)
		for i := range 3 {
			l.start(i)
		}
		time.Sleep(6 * time.Second)
		l.start(3)
		l.finish()
		l.check(0.6, upTo(4)...)
	})
}

// Both halves of a partitioned network continue to train. When the link is restored, they are one
// network again. short ends the partition before any edge is dropped.
func TestPartition(t *testing.T) {
	for name, cut := range map[string]time.Duration{"short": 2 * time.Second, "long": 9 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newTestNetwork(t, 4, 4000)
				l.dropAfter = 5 * time.Second
				l.run(func() {
					time.Sleep(4 * time.Second)
					l.partition(true)
					time.Sleep(cut)
					for i, p := range l.last {
						if p.time() < 600 {
							t.Errorf("agent %d has stopped at %d", i, p.time())
						}
					}
					l.partition(false)
				})
				l.check(0.6, upTo(4)...)
			})
		})
	}
}

// partition cuts or restores the links between agents 0 and 1 and the others.
func (l *testNetwork) partition(cut bool) {
	for i := range 2 {
		for j := 2; j < l.graph.N; j++ {
			l.net.Cut(i, j, cut)
		}
	}
}

func (a *Agent) time() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clock.T
}

func (l *testNetwork) distanceOf(p *testAgent) float64 {
	was := l.last
	defer func() { l.last = was }()
	l.last = []*testAgent{p}
	return l.distance(upTo(4)...)
}

// After any sequence of faults, both ends of all edges agree and the duals sum to zero. The seed
// reproduces a failure.
func TestRandomChurn(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			const n, events = 6, 40
			l := newTestNetwork(t, n, 3500)
			l.dropAfter, l.exchangeTimeout = 3*time.Second, 200*time.Millisecond
			s := rng.New(seed, "churn")
			l.slow[5] = 50 * time.Millisecond
			l.run(func() {
				cuts := map[[2]int]bool{}
				for range events {
					time.Sleep(time.Duration(s.IntN(700)) * time.Millisecond)
					i, j := s.IntN(n), s.IntN(n)
					switch what := s.IntN(6); {
					case what == 0 && l.last[i] != nil:
						l.kill(i)
					case what == 1 && l.last[i] != nil: // its checkpoint is lost with it
						l.kill(i)
						l.saved[i] = nil
					case what <= 3 && l.last[i] == nil:
						l.start(i)
					case i != j:
						e := [2]int{min(i, j), max(i, j)}
						cuts[e] = !cuts[e]
						l.net.Cut(i, j, cuts[e])
					}
				}
				for e := range cuts {
					l.net.Cut(e[0], e[1], false)
				}
				for i, p := range l.last {
					if p == nil {
						l.start(i)
					}
				}
			})
			l.check(1, upTo(n)...)
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

// Agents are killed while some have reached the end of the run and others have not.
func TestKilledAtTheEnd(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			const n = 4
			l := newTestNetwork(t, n, 800)
			s := rng.New(seed, "end")
			l.run(func() {
				for l.last[0].time() < 700 {
					time.Sleep(50 * time.Millisecond)
				}
				for range 30 {
					time.Sleep(time.Duration(s.IntN(100)) * time.Millisecond)
					i := s.IntN(n)
					if l.last[i].frozenNow() { // it may have reported its final state
						continue
					}
					l.kill(i)
					time.Sleep(time.Duration(s.IntN(100)) * time.Millisecond)
					l.start(i)
				}
			})
			l.check(1, upTo(n)...)
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

// An agent at the end of the run waits for its neighbours. If it is stopped there, it ends at once,
// and does not report a final state.
func TestStopAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const until = 60
		l := newTestNetwork(t, 2, until)
		l.start(0)
		l.start(1)
		p := l.last[0]
		for p.time() < until/2 {
			time.Sleep(time.Millisecond)
		}
		l.kill(1)
		for p.time() < until {
			time.Sleep(time.Millisecond)
		}
		p.mu.Lock()
		p.stop = true
		p.advanced()
		final := p.final
		p.mu.Unlock()
		began := time.Now()
		if err := <-p.done; err != nil || final || p.final {
			t.Errorf("%v, final %v before the stop and %v after it", err, final, p.final)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the agent ended %v after the stop", took)
		}
		p.Close()
	})
}

func (a *Agent) frozenNow() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.frozen
}
