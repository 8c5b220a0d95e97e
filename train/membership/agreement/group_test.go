package agreement

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fspda/internal/testing/disttest"
	"fspda/train/membership"
)

// walker is an agent that enters an iteration every step, unless it is held.
type walker struct {
	alone   bool // It is not linked.
	mu      sync.Mutex
	entered int
	held    bool
	dropped bool
	err     error
	log     []membership.Epoch
	writer  int
}

func (w *walker) Leave(int, int) membership.Exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return membership.Exchange{T: w.entered, K: w.entered % 2}
}

func (w *walker) Hold() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = true
	return w.entered + 1
}

func (w *walker) Lead() int { return 0 }

func (w *walker) Linked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.alone
}

func (w *walker) Seen() map[int]membership.Exchange { return nil }

func (w *walker) Change(v membership.View) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log, w.writer, w.held = v.Epochs, v.Writer, false
}

func (w *walker) Dropped() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped = true
}

func (w *walker) Failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// enter has the agent begin at an iteration or a later one.
func (w *walker) enter(t int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entered = max(w.entered, t)
}

// walk moves the agent until ctx ends.
func (w *walker) walk(ctx context.Context, step time.Duration) {
	for ctx.Err() == nil {
		w.mu.Lock()
		if !w.held {
			w.entered++
		}
		w.mu.Unlock()
		select {
		case <-time.After(step):
		case <-ctx.Done():
		}
	}
}

// cluster is processes of one run in a bubble.
type cluster struct {
	t      *testing.T
	net    *disttest.Network
	n      int
	dir    string
	groups []*Group
	nodes  []*disttest.Node
	agents []*walker
	quit   []context.CancelFunc
	life   []int
}

const dropAfter = 15 * time.Second

func newCluster(t *testing.T, n int) *cluster {
	c := &cluster{t: t, net: disttest.NewNetwork(n, 1, 20*time.Millisecond), n: n, groups: make([]*Group, n),
		nodes: make([]*disttest.Node, n), agents: make([]*walker, n), quit: make([]context.CancelFunc, n),
		life: make([]int, n)}
	for i := range n {
		c.start(i)
	}
	return c
}

// start starts the process of an agent. A later life than the first begins when the others let it.
func (c *cluster) start(i int) {
	c.t.Helper()
	ctx, quit := context.WithCancel(context.Background())
	c.nodes[i], c.quit[i], c.agents[i] = c.net.Start(i), quit, &walker{}
	file := ""
	if c.dir != "" {
		file = filepath.Join(c.dir, fmt.Sprintf("%d-%d", i, c.life[i]))
	}
	g, err := Open(Options{Rules: membership.Rules{Agents: c.n}, Self: i, Life: c.life[i], DropAfter: dropAfter,
		Sessions: c.nodes[i], File: file})
	if err != nil {
		c.t.Fatal(err)
	}
	c.groups[i] = g
	w := c.agents[i]
	go func() {
		at, _, err := g.Joined(ctx)
		if err != nil {
			return
		}
		w.enter(at)
		if g.Start(ctx, w) == nil {
			w.walk(ctx, 20*time.Millisecond+time.Duration(i)*50*time.Microsecond)
		}
	}()
}

func (c *cluster) kill(i int) {
	c.quit[i]()
	c.groups[i].Close()
	c.nodes[i].Kill()
}

func (c *cluster) close() {
	for i := range c.n {
		c.quit[i]()
		c.groups[i].Close()
	}
	synctest.Wait()
}

// await waits until a condition holds for these agents, and returns the time that it took.
func (c *cluster) await(what string, agents []int, holds func(g *Group, w *walker) bool) time.Duration {
	c.t.Helper()
	begin := time.Now()
	for ; time.Since(begin) < 2*time.Minute; time.Sleep(tick) {
		if !slices.ContainsFunc(agents, func(i int) bool {
			w := c.agents[i]
			w.mu.Lock()
			defer w.mu.Unlock()
			return !holds(c.groups[i], w)
		}) {
			return time.Since(begin)
		}
	}
	for _, i := range agents {
		c.t.Logf("agent %d: %+v; entered %d", i, c.groups[i].Status(), c.agents[i].entered)
	}
	c.t.Fatalf("%s: not within two minutes", what)
	return 0
}

// members waits until agents agree that these are the members, and that their log is valid.
func (c *cluster) members(agents ...int) time.Duration {
	c.t.Helper()
	took := c.await(fmt.Sprintf("members %v", agents), agents, func(g *Group, w *walker) bool {
		if w.held || w.dropped {
			return false
		}
		l, err := membership.Parse(membership.Text(w.log), c.n)
		if err != nil {
			c.t.Fatalf("log %s: %v", membership.Text(w.log), err)
		}
		return slices.Equal(l.Members(w.entered), agents)
	})
	first := c.agents[agents[0]]
	for _, i := range agents[1:] {
		if a := c.agents[i]; !reflect.DeepEqual(a.log, first.log) || a.writer != first.writer {
			c.t.Fatalf("agents %d and %d have different logs: %s%s", agents[0], i, membership.Text(first.log),
				membership.Text(a.log))
		}
	}
	return took
}

func others(n int, without ...int) (all []int) {
	for i := range n {
		if !slices.Contains(without, i) {
			all = append(all, i)
		}
	}
	return all
}

// The members go on without one that was killed, and let a new one into its slot.
func TestDeathAndBirth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 5)
		defer c.close()
		time.Sleep(10 * time.Second)
		for _, victim := range []int{3, 0} {
			c.kill(victim)
			if took := c.members(others(5, victim)...); took > 25*time.Second {
				t.Errorf("the others went on without agent %d after %v", victim, took)
			}
			c.life[victim]++
			c.start(victim)
			if took := c.members(0, 1, 2, 3, 4); took > 10*time.Second {
				t.Errorf("agent %d has joined after %v", victim, took)
			}
		}
		if w := c.agents[1].writer; w != 1 {
			t.Errorf("the writer is agent %d, want 1", w)
		}
	})
}

// Two that die one after the other, the second while the first one's leaving is being agreed upon.
func TestTwoDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 7)
		defer c.close()
		time.Sleep(5 * time.Second)
		c.kill(2)
		time.Sleep(300 * time.Millisecond)
		c.kill(5)
		c.members(0, 1, 3, 4, 6)
	})
}

// The larger part of a partition goes on. Of two equal parts none does, and both go on when it ends.
func TestPartition(t *testing.T) {
	for _, part := range []int{3, 4} {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 8)
				defer c.close()
				time.Sleep(5 * time.Second)
				cut := func(on bool) {
					for i := range part {
						for j := part; j < 8; j++ {
							c.net.Cut(i, j, on)
						}
					}
				}
				cut(true)
				small := others(8, 3, 4, 5, 6, 7)
				if part == 3 {
					c.members(3, 4, 5, 6, 7)
				} else {
					time.Sleep(2 * time.Minute)
					small = others(8)
				}
				for _, i := range small {
					if s := c.groups[i].Status(); len(s.Members) != 8 || s.Leader >= 0 {
						t.Errorf("agent %d knows members %v and leader %d in a minority", i, s.Members, s.Leader)
					}
				}
				cut(false)
				if part == 4 {
					time.Sleep(time.Minute)
					c.members(others(8)...)
					return
				}
				c.await("agents of the smaller part know", small, func(_ *Group, w *walker) bool { return w.dropped })
				for _, i := range small {
					c.kill(i)
					c.life[i]++
					c.start(i)
				}
				if took := c.members(others(8)...); took > 30*time.Second {
					t.Errorf("all were members again after %v", took)
				}
			})
		})
	}
}

// Pauses that are shorter than drop_after cost no member.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4)
		defer c.close()
		for k := range 200 {
			for j := range 4 {
				if j != k%4 {
					c.net.Cut(k%4, j, true)
				}
			}
			time.Sleep(time.Duration(1+k%10) * time.Second)
			for j := range 4 {
				if j != k%4 {
					c.net.Cut(k%4, j, false)
				}
			}
			time.Sleep(time.Second)
		}
		c.members(0, 1, 2, 3)
		if log := c.agents[0].log; len(log) > 0 {
			t.Errorf("the members have changed: %s", membership.Text(log))
		}
	})
}

// A user drops a member, unless too few would remain.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		defer c.close()
		time.Sleep(5 * time.Second)
		if err := c.groups[0].Drop(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		c.members(0, 1)
		c.await("agent 2 knows", []int{2}, func(_ *Group, w *walker) bool { return w.dropped })
		if err := c.groups[0].Drop(t.Context(), 2); err == nil {
			t.Error("an agent that is no member was dropped")
		}
	})
}

// A process that waits to join ends with an error when it fails, though no entry comes any more.
func TestFailureOfJoiner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := time.Now().Add(time.Minute)
		want := errors.New("no links")
		g, err := Open(Options{Rules: membership.Rules{Agents: 3}, Self: 1, Life: 1, DropAfter: dropAfter,
			Sessions: disttest.NewNetwork(3, 1, 20*time.Millisecond).Start(1), Failure: func() error {
				if time.Now().Before(failed) {
					return nil
				}
				return want
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if _, _, err := g.Joined(t.Context()); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	})
}

// A process whose disk fails ends with an error that names the file, and the others go on without it.
func TestLogCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, net: disttest.NewNetwork(4, 1, 0), n: 4, dir: dir, groups: make([]*Group, 4),
			nodes: make([]*disttest.Node, 4), agents: make([]*walker, 4), quit: make([]context.CancelFunc, 4),
			life: make([]int, 4)}
		for i := range 4 {
			if c.dir = filepath.Join(dir, strconv.Itoa(i)); os.Mkdir(c.dir, 0o755) != nil {
				t.Fatal(c.dir)
			}
			c.start(i)
		}
		defer c.close()
		time.Sleep(5 * time.Second)
		broken := filepath.Join(dir, "1")
		if err := errors.Join(os.RemoveAll(broken), os.WriteFile(broken, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		if err := c.groups[0].Drop(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		c.await("agent 1 ends", []int{1}, func(g *Group, w *walker) bool {
			_, err := g.View(t.Context())
			return w.err != nil && errors.Is(err, w.err) && strings.Contains(err.Error(), filepath.Join(broken, "1-0"))
		})
		c.kill(1)
		c.members(0, 2)
	})
}

// Nothing is agreed before all members are linked.
func TestNotLinked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4)
		defer c.close()
		time.Sleep(5 * time.Second)
		cut := func(on bool) {
			c.agents[1].mu.Lock()
			defer c.agents[1].mu.Unlock()
			c.agents[1].alone = on
		}
		cut(true)
		c.kill(3)
		time.Sleep(time.Minute)
		if v, err := c.groups[0].View(t.Context()); err != nil || v.Pending != 1 || len(v.Epochs) != 0 {
			t.Errorf("%+v, %v; want a change that is not agreed", v, err)
		}
		cut(false)
		c.members(0, 1, 2)
	})
}

// A member that was started again has no note where others know that its earlier process was
// further.
func TestNotesOfMemberBehind(t *testing.T) {
	pairs := func(t int) iter.Seq2[int, int] {
		return func(yield func(from, to int) bool) { _ = yield(3, t%3) && yield(t%3, 3) }
	}
	type idle = map[int]membership.Exchange
	for _, c := range []struct {
		joint bool
		seen  idle // By agent 0.
		want  idle
	}{
		{want: idle{0: {T: 21}, 1: {T: 16}, 2: {T: 17}}},
		{seen: idle{1: {T: 17}, 9: {T: 20}, -1: {T: 20}}, want: idle{0: {T: 21}, 2: {T: 17}}},
		{seen: idle{1: {T: 16}, 2: {T: 20}}, want: idle{0: {T: 21}, 1: {T: 16}}},
		{joint: true, seen: idle{1: {T: 17}}, want: idle{0: {T: 20}, 1: {T: 20}, 2: {T: 20}}},
	} {
		s := newState(membership.Rules{Agents: 4, Joint: c.joint, Sends: pairs})
		s.apply(entry{Kind: leave, Agent: 3})
		for by, t := range []int{20, 14, 17} {
			s.apply(entry{Kind: progress, By: by, Revision: 1}) // Too early: it has no effect.
			s.apply(entry{Kind: reach, By: by, Revision: 1, T: 23, Idle: idle{3: {T: t}}})
		}
		s.apply(entry{Kind: progress, Revision: 1, Seen: c.seen})
		s.apply(entry{Kind: progress, By: 1, Revision: 1})
		o := s.apply(entry{Kind: progress, By: 2, Revision: 1})
		if !o.formed || !reflect.DeepEqual(o.epochs[0].Idle, c.want) ||
			!reflect.DeepEqual(s.view().Epochs[0].Idle, c.want) {
			t.Errorf("%+v: notes %v", c, o.epochs)
		}
	}
}

// A change does not begin before an earlier one, though the member that was furthest then has left.
func TestChangeAfterEarlierOne(t *testing.T) {
	s := newState(membership.Rules{Agents: 4})
	for k, gone := range []int{3, 2} {
		s.apply(entry{Kind: leave, Agent: gone})
		tell(s, k+1, map[int]int{0: 7, 1: 8, 2: 20}, nil)
	}
	if got := s.view().Epochs; len(got) != 2 || got[0].At != 20 || got[1].At != 20 {
		t.Errorf("the changes are %s", membership.Text(got))
	}
}

// A change does not begin before the end of the round of an exchange to which a process has come
// that has ended: others have its messages of it.
func TestChangeAfterSeen(t *testing.T) {
	for _, c := range []struct {
		round int
		seen  membership.Exchange
		want  int
	}{
		{0, membership.Exchange{T: 3}, 20}, {0, membership.Exchange{T: 20}, 21}, {0, membership.Head(21), 21},
		{5, membership.Exchange{T: 19}, 20}, {5, membership.Exchange{T: 22}, 25}, {5, membership.Head(25), 25},
		{5, membership.Head(26), 30}, {5, membership.Head(0), 20},
	} {
		s := newState(membership.Rules{Agents: 3, Round: c.round})
		s.apply(entry{Kind: leave, Agent: 2})
		for by := range 2 {
			s.apply(entry{Kind: reach, By: by, Revision: 1, T: 20 * by})
		}
		s.apply(entry{Kind: progress, By: 1, Revision: 1, Seen: map[int]membership.Exchange{0: c.seen, 2: {T: 90}}})
		if o := s.apply(entry{Kind: progress, Revision: 1}); !o.formed || o.epochs[0].At != c.want {
			t.Errorf("%+v: the changes are %s", c, membership.Text(o.epochs))
		}
	}
}

// The donor's state is of the iteration at which the members hold, and the new agent a member later,
// by the most iterations that a member has said. Where others leave, or a member has not passed the
// earlier change, the change comes at once.
func TestLead(t *testing.T) {
	join := func(s *state, lead, holds int, leaves ...int) membership.Epoch {
		for i := range s.Agents {
			if !s.present[i] {
				s.apply(entry{Kind: join, Agent: i, Life: s.lives[i]})
				break
			}
		}
		for _, i := range leaves {
			s.apply(entry{Kind: leave, Agent: i})
		}
		for _, by := range s.members() {
			s.apply(entry{Kind: reach, By: by, Life: s.lives[by], Revision: s.revision, T: 40, Lead: lead * by})
		}
		s.apply(entry{Kind: reach, Process: 1, Revision: s.revision, T: holds}) // Of a later process of agent 0.
		for _, by := range s.members() {
			s.apply(entry{Kind: progress, By: by, Life: s.lives[by], Revision: s.revision})
		}
		return s.epochs[len(s.epochs)-1-len(leaves)]
	}
	for _, c := range []struct {
		rules       membership.Rules
		lead, holds int
		leaves      []int
		donated, at int
	}{
		{membership.Rules{Ahead: true}, 3, 40, nil, 40, 46},
		{membership.Rules{Ahead: true}, 3, 31, nil, 40, 46},
		{membership.Rules{Ahead: true, Round: 5}, 3, 40, nil, 40, 50},
		{membership.Rules{Ahead: true}, 1 << 40, 40, nil, 40, 40 + maxLead},
		{membership.Rules{Ahead: true}, 3, 30, nil, 0, 40}, // Agent 0 has not passed the earlier change.
		{membership.Rules{Ahead: true}, 0, 40, nil, 0, 40},
		{membership.Rules{Ahead: true}, -1, 40, nil, 0, 40},
		{membership.Rules{}, 3, 40, nil, 0, 40},
		{membership.Rules{Ahead: true}, 3, 40, []int{2}, 0, 40},
	} {
		c.rules.Agents = 5
		s := newState(c.rules)
		s.apply(entry{Kind: leave, Agent: 3})
		s.apply(entry{Kind: leave, Agent: 4})
		tell(s, s.revision, map[int]int{0: 30, 1: 30, 2: 30}, nil)
		if e := join(s, c.lead, c.holds, c.leaves...); e.Donated != c.donated || e.At != c.at {
			t.Errorf("%+v: the change is %+v", c, e)
		}
	}
}

// tell lets members say how far they go on, and then how far they have seen others.
func tell(s *state, revision int, reached map[int]int, idle map[int]map[int]membership.Exchange) (o outcome) {
	members := s.members()
	for _, by := range members {
		s.apply(entry{Kind: reach, By: by, Life: s.lives[by], Revision: revision, T: reached[by], Idle: idle[by]})
	}
	for _, by := range members {
		o = s.apply(entry{Kind: progress, By: by, Life: s.lives[by], Revision: revision})
	}
	return o
}

// Exchanges among all with an agent that leaves end at the latest of the notes of the members that
// stay, at all of them.
func TestJointNotes(t *testing.T) {
	s := newState(membership.Rules{Agents: 4, Joint: true})
	type idle = map[int]membership.Exchange
	note := func(by, revision, t int, from idle) {
		s.apply(entry{Kind: reach, By: by, Revision: revision, T: t, Idle: from})
	}
	s.apply(entry{Kind: leave, Agent: 3})
	note(2, 1, 26, idle{3: {T: 25}})
	note(0, 1, 25, idle{3: {T: 24}})
	s.apply(entry{Kind: leave, Agent: 2})
	note(1, 2, 25, idle{3: {T: 23, K: 1}, 2: {T: 23, K: 1}})
	note(0, 2, 25, idle{3: {T: 24}, 2: {T: 23}})
	s.apply(entry{Kind: progress, By: 1, Revision: 2})
	if o := s.apply(entry{Kind: progress, By: 0, Revision: 2}); !o.formed {
		t.Fatal("all have told how far they are, and nothing is agreed")
	}
	want := []membership.Epoch{{Epoch: 1, At: 25, Left: []int{3}, Idle: idle{0: {T: 24}, 1: {T: 24}}},
		{Epoch: 2, At: 25, Left: []int{2}, Idle: idle{0: {T: 23, K: 1}, 1: {T: 23, K: 1}}}}
	if got := s.view().Epochs; !reflect.DeepEqual(got, want) {
		t.Errorf("the changes are %s, want %s", membership.Text(got), membership.Text(want))
	}
}

// The iteration at which the writer changes stays that of its change when an agent joins there.
func TestWriterMoves(t *testing.T) {
	s := newState(membership.Rules{Agents: 3})
	for k, e := range []entry{{Kind: leave, Agent: 0}, {Kind: join, Agent: 0, Life: 1}, {Kind: leave, Agent: 2}} {
		s.apply(e)
		at := 25 + k/2
		tell(s, k+1, map[int]int{0: at, 1: at, 2: at}, nil)
		if v := s.view(); len(v.Epochs) != k+1 || v.Writer != 1 || v.Moved != 25 {
			t.Errorf("after change %d: %+v, want agent 1 to evaluate from iteration 25 on", k+1, v)
		}
	}
}

// An agent that has just joined has had no exchange with one that leaves at the same iteration: it has
// no say in which exchange was the last one.
func TestJointNotesOfJoiner(t *testing.T) {
	s := newState(membership.Rules{Agents: 4, Joint: true})
	type idle = map[int]membership.Exchange
	at := map[int]int{0: 25, 1: 25, 2: 25, 3: 25}
	s.apply(entry{Kind: leave, Agent: 3})
	tell(s, 1, at, map[int]idle{0: {3: {T: 25}}, 1: {3: {T: 25}}, 2: {3: {T: 25}}})
	s.apply(entry{Kind: join, Agent: 3, Life: 1})
	tell(s, 2, at, nil)
	s.apply(entry{Kind: leave, Agent: 2})
	tell(s, 3, at, map[int]idle{0: {2: {T: 23}}, 1: {2: {T: 22}}, 3: {2: {T: 25}}})
	want := []membership.Epoch{{Epoch: 3, At: 25, Left: []int{2}, Idle: idle{0: {T: 23}, 1: {T: 23}}}}
	if got := s.view().Epochs; len(got) != 3 || !reflect.DeepEqual(got[2:], want) {
		t.Errorf("the changes are %s, want the last one %s", membership.Text(got), membership.Text(want))
	}
}

// Processes that all end go on with the log that they have kept, and one whose file is damaged says so.
func TestKeptLog(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, net: disttest.NewNetwork(4, 1, 0), n: 4, dir: dir, groups: make([]*Group, 4),
			nodes: make([]*disttest.Node, 4), agents: make([]*walker, 4), quit: make([]context.CancelFunc, 4),
			life: make([]int, 4)}
		for i := range 4 {
			c.start(i)
		}
		defer c.close()
		time.Sleep(5 * time.Second)
		c.kill(1)
		c.members(0, 2, 3)
		log := c.agents[0].log
		for _, i := range []int{0, 2, 3} {
			c.kill(i)
		}
		for _, i := range []int{0, 2, 3} {
			c.start(i)
			c.agents[i].enter(log[0].At)
		}
		c.members(0, 2, 3)
		c.life[1] = 1
		c.start(1)
		c.members(0, 1, 2, 3)
		if !reflect.DeepEqual(c.agents[0].log[:1], log) {
			t.Errorf("the log was %s and is %s", membership.Text(log), membership.Text(c.agents[0].log))
		}
	})
	life, v := Kept(filepath.Join(dir, "1-1"), membership.Rules{Agents: 4})
	if life != 1 || v.Lives[1] != 1 || len(v.Epochs) != 2 {
		t.Errorf("life %d was kept, and %+v; want 1 and two changes", life, v)
	}
	if _, err := openStore(filepath.Join(dir, "0-0"), 3); err == nil {
		t.Error("the log of another life was read")
	}
	s := &store{life: 0}
	if err := s.read([]byte{0, 200, 1}); !errors.Is(err, errStore) {
		t.Errorf("a damaged log: %v", err)
	}
}
