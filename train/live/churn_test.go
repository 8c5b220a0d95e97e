package live

import (
	"testing"
	"testing/synctest"
	"time"

	"fspda/internal/rng"
)

// play starts all agents of a lab, lets events happen, and waits for the end.
func (l *lab) play(events func()) {
	for i := range l.last {
		l.start(i)
	}
	events()
	l.finish()
}

// An agent that is killed goes on from its checkpoint, and its edges are where its neighbours are.
func TestKilledAgentComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 4, 2500)
		l.play(func() {
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

// Two are killed at once, each with a checkpoint of its own time.
func TestTwoAreKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 4, 1500)
		l.play(func() {
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

// One that never comes back is dropped: the others' duals sum to zero without it, and they come to
// the optimum of those who are left.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 4, 3000)
		l.dropped = 4 * time.Second
		l.play(func() {
			time.Sleep(5 * time.Second)
			l.kill(2)
		})
		l.check(0.6, 0, 1, 3)
	})
}

// Where it does come back after all, from its checkpoint or without, all of it is in the sum again.
func TestDroppedComesBack(t *testing.T) {
	for name, forgets := range map[string]bool{"from its checkpoint": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 4, 3500)
				l.dropped = 3 * time.Second
				l.play(func() {
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

// An agent that has lost its checkpoint, though nobody has dropped it yet, starts from the mean of
// the others with a zero dual.
func TestJoinsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 4, 3000)
		l.play(func() {
			time.Sleep(5 * time.Second)
			l.kill(1)
			l.saved[1] = nil
			l.start(1)
			time.Sleep(20 * time.Millisecond)
			p := l.last[1]
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.joining || p.desk.T < 200 {
				t.Errorf("it is at %d after 20 ms", p.desk.T)
			}
			if far := l.distanceOf(p); far > 1 {
				t.Errorf("it starts at a distance of %g", far)
			}
		})
		l.check(0.6, upTo(4)...)
	})
}

// A place that is empty from the start is taken later.
func TestJoinsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 4, 3000)
		for i := range 3 {
			l.start(i)
		}
		time.Sleep(6 * time.Second)
		l.start(3)
		l.finish()
		l.check(0.6, upTo(4)...)
	})
}

// Both halves of a network that is cut train on; where it heals, they are one again. short is
// before anybody is dropped.
func TestPartition(t *testing.T) {
	for name, cut := range map[string]time.Duration{"short": 2 * time.Second, "long": 9 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 4, 4000)
				l.dropped = 5 * time.Second
				l.play(func() {
					time.Sleep(4 * time.Second)
					l.split(true)
					time.Sleep(cut)
					for i, p := range l.last {
						if p.time() < 600 {
							t.Errorf("agent %d stands still at %d", i, p.time())
						}
					}
					l.split(false)
				})
				l.check(0.6, upTo(4)...)
			})
		})
	}
}

// split cuts agents 0 and 1 off from the others.
func (l *lab) split(cut bool) {
	for i := range 2 {
		for j := 2; j < l.graph.N; j++ {
			l.board.Cut(i, j, cut)
		}
	}
}

func (a *Agent) time() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.desk.T
}

func (l *lab) distanceOf(p *player) float64 {
	was := l.last
	defer func() { l.last = was }()
	l.last = []*player{p}
	return l.distance(upTo(4)...)
}

// Whatever happens, in whatever order, the edges agree in the end and the duals sum to zero. The
// seed repeats a failure.
func TestRandomChurn(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			const n, events = 6, 40
			l := newLab(t, n, 3500)
			l.dropped, l.giveUp = 3*time.Second, 200*time.Millisecond
			s := rng.New(seed, "churn")
			l.slow[5] = 50 * time.Millisecond
			l.play(func() {
				cuts := map[[2]int]bool{}
				for range events {
					time.Sleep(time.Duration(s.IntN(700)) * time.Millisecond)
					i, j := s.IntN(n), s.IntN(n)
					switch what := s.IntN(6); {
					case what == 0 && l.last[i] != nil:
						l.kill(i)
					case what == 1 && l.last[i] != nil: // its disk is lost with it
						l.kill(i)
						l.saved[i] = nil
					case what <= 3 && l.last[i] == nil:
						l.start(i)
					case i != j:
						e := [2]int{min(i, j), max(i, j)}
						cuts[e] = !cuts[e]
						l.board.Cut(i, j, cuts[e])
					}
				}
				for e := range cuts {
					l.board.Cut(e[0], e[1], false)
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

// The end of a run is no better time to be killed: agents die while some are at the end and others
// are not.
func TestKilledAtTheEnd(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			const n = 4
			l := newLab(t, n, 800)
			s := rng.New(seed, "end")
			l.play(func() {
				for l.last[0].time() < 700 {
					time.Sleep(50 * time.Millisecond)
				}
				for range 30 {
					time.Sleep(time.Duration(s.IntN(100)) * time.Millisecond)
					i := s.IntN(n)
					if l.last[i].frozenNow() { // it may have told what it came to
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

func (a *Agent) frozenNow() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.frozen
}
