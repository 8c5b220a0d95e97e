package agreement

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"fspda/dist"
	"fspda/train/membership"
)

// Options configure a [Group].
type Options struct {
	membership.Rules
	Self int
	// Life counts the agents that this slot has had before. A process of a later life than 0 asks the
	// members to let it join.
	Life      int
	DropAfter time.Duration // The silence after which an agent leaves.
	Sessions  dist.SessionOpener
	// Stuck reports whether an agent does not advance although its process is heard. nil: none is.
	Stuck func(agent int) bool
	// Failure returns why this process hears nobody any more; nil: it has not failed, or never fails.
	Failure func() error
	// File keeps the log; empty: it is lost with the process.
	File string
	Log  *zap.Logger
}

// Group is the part of a process in the agreement.
type Group struct {
	opt   Options
	id    uint64
	node  *raft.RawNode
	store *store
	inbox chan record
	calls chan func()
	out   []chan []byte

	mu     sync.Mutex
	status Status

	// The goroutine of run alone uses these.
	state *state
	local membership.Local
	told  proposals
	began time.Time // Silence counts from here: before, this process may have slept.
	asks  map[int]entry
	ripe  map[int]time.Time // Since when a majority has not heard an agent.

	news chan struct{} // Closed and replaced after each entry. The goroutine of run alone uses it.
	quit context.CancelFunc
	over chan struct{} // Closed when run has ended.
	err  error         // Why it has ended; nil: it was closed.
	work sync.WaitGroup
}

// proposals are the times of the latest ones.
type proposals struct {
	process uint64 // A number that tells this process from others of the agent.
	silent  []time.Time
	member  time.Time
	reach   time.Time
	own     entry // The latest reach.
}

// record is one that another process has sent.
type record struct {
	from int
	text []byte
}

const (
	tick           = 100 * time.Millisecond
	heartbeatTicks = 5
	electionTicks  = 30
	retryAfter     = time.Second // A proposal that has no effect is made again after this time.
	// secondThought is the time for which a majority must not hear an agent before it leaves. After a
	// partition the accusations of its parts come late.
	secondThought = 2 * time.Second
)

// The first byte of a record is its kind.
const (
	recordRaft = 'r' // A message of Raft.
	recordAsk  = 'a' // The entry by which the sender, who is no member, wants to join.
	recordLeft = 'l' // The entry by which the receiver has left, as the sender knows.
)

// Open reads the log that is kept, or begins it, and takes part in the agreement.
func Open(o Options) (*Group, error) {
	g := &Group{opt: o, inbox: make(chan record, 256), calls: make(chan func()), news: make(chan struct{}),
		over:  make(chan struct{}),
		state: newState(o.Rules), asks: map[int]entry{}, ripe: map[int]time.Time{},
		began: time.Now(),
		id:    nodeID(o.Self, o.Life, o.Agents), told: proposals{process: rand.Uint64() | 1}}
	g.told.silent = make([]time.Time, o.Agents)
	if g.opt.Log == nil {
		g.opt.Log = zap.NewNop()
	}
	if g.opt.Stuck == nil {
		g.opt.Stuck = func(int) bool { return false }
	}
	if g.opt.Failure == nil {
		g.opt.Failure = func() error { return nil }
	}
	var err error
	if g.store, err = openStore(o.File, o.Life); err != nil {
		return nil, err
	}
	g.node, err = raft.NewRawNode(&raft.Config{ID: g.id, ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks,
		Storage: g.store.MemoryStorage, MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 64, CheckQuorum: true, PreVote: true,
		StepDownOnRemoval: true, Logger: quiet{}})
	if err != nil {
		return nil, err
	}
	if g.store.empty && o.Life == 0 {
		var first []raft.Peer
		for i := range o.Agents {
			first = append(first, raft.Peer{ID: nodeID(i, 0, o.Agents)})
		}
		if err := g.node.Bootstrap(first); err != nil {
			return nil, err
		}
	}
	for g.node.HasReady() { // The entries that are kept come before all others.
		if err := g.ready(); err != nil {
			return nil, err
		}
	}
	ctx, quit := context.WithCancel(context.Background())
	g.quit = quit
	for range o.Agents {
		g.out = append(g.out, make(chan []byte, 64))
	}
	for i := range o.Agents {
		if i != o.Self {
			g.work.Go(func() { g.talk(ctx, i) })
		}
	}
	g.publish()
	g.work.Go(func() { g.run(ctx) })
	return g, nil
}

// nodeID is the number of an agent in Raft. A later agent of the same slot has another one, so that
// promises of an earlier one bind nobody.
func nodeID(slot, life, agents int) uint64 { return uint64(life*agents+slot) + 1 }

// slot is the slot of the agent with a number in Raft.
func (g *Group) slot(id uint64) int { return int(id-1) % g.opt.Agents }

// Close ends the part of this process.
func (g *Group) Close() {
	g.quit()
	g.work.Wait()
}

// do runs f in the goroutine of the group.
func (g *Group) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case g.calls <- func() { defer close(done); f() }:
		<-done
		return nil
	case <-g.over:
		return cmp.Or(g.err, ErrClosed)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Start tells the local agent of the changes so far, and from then on of each further one.
func (g *Group) Start(ctx context.Context, l membership.Local) error {
	return g.do(ctx, func() {
		g.local = l
		l.Change(g.state.view())
		g.follow(g.state.leaving())
	})
}

// View implements [membership.Agreement].
func (g *Group) View(ctx context.Context) (v membership.View, err error) {
	err = g.do(ctx, func() { v = g.state.view() })
	return v, err
}

// Drop lets an agent leave, as if it were silent, and returns once a majority has agreed.
func (g *Group) Drop(ctx context.Context, agent int) error {
	for proposed := (time.Time{}); ; {
		var over bool
		var refused error
		var news <-chan struct{}
		if err := g.do(ctx, func() { over, refused = g.dropped(agent, &proposed); news = g.news }); err != nil {
			return err
		}
		if over || refused != nil {
			return refused
		}
		select {
		case <-news:
		case <-time.After(retryAfter):
		case <-g.over:
		case <-ctx.Done():
			return fmt.Errorf("dropping agent %d: no majority of the members has agreed: %w", agent, context.Cause(ctx))
		}
	}
}

// dropped proposes that an agent leaves, and reports whether that is agreed. Without a leader the
// proposal is lost, and one that is under way to a leader may be: it is made again after a time.
func (g *Group) dropped(agent int, proposed *time.Time) (over bool, refused error) {
	switch s := g.state; {
	case !proposed.IsZero() && (!s.present[agent] || s.dropped[agent]):
		return true, nil
	case !s.present[agent]:
		return false, fmt.Errorf("agent %d is no member", agent)
	case !s.mayLeave(agent, s.lives[agent]):
		return false, fmt.Errorf("agent %d may not leave: the run has %d members, and min_agents is %d", agent,
			len(s.members()), s.MinAgents)
	}
	if time.Since(*proposed) >= retryAfter &&
		g.propose(entry{Kind: drop, Agent: agent, Life: g.state.lives[agent]}) == nil {
		*proposed = time.Now()
	}
	return false, nil
}

// Joined waits until the local agent is a member, and returns the iteration from which on it is.
func (g *Group) Joined(ctx context.Context) (at int, v membership.View, err error) {
	for {
		member, gone := false, false
		var news <-chan struct{}
		if err := g.do(ctx, func() {
			s := g.state
			news = g.news
			gone = s.lives[g.opt.Self] > g.opt.Life
			member = s.present[g.opt.Self] && !s.joins(g.opt.Self) && s.lives[g.opt.Self] == g.opt.Life
			v = g.state.view()
		}); err != nil {
			return 0, v, err
		}
		if gone {
			return 0, v, membership.ErrDropped
		}
		if member {
			for _, e := range v.Epochs {
				if slices.Contains(e.Joined, g.opt.Self) {
					at = e.At
				}
			}
			return at, v, nil
		}
		if err := g.opt.Failure(); err != nil {
			return 0, v, err
		}
		select {
		case <-news:
		case <-time.After(retryAfter): // No entry comes any more if this process has failed.
		case <-g.over:
		case <-ctx.Done():
			return 0, v, context.Cause(ctx)
		}
	}
}

// run is the goroutine that owns the state.
func (g *Group) run(ctx context.Context) {
	defer close(g.over)
	t := time.NewTicker(tick)
	defer t.Stop()
	latest := time.Now()
	for {
		select {
		case <-t.C:
			if now := time.Now(); now.Sub(latest) > max(retryAfter, g.opt.DropAfter/4) {
				g.began = now // This process has slept: the others were not silent.
			}
			latest = time.Now()
			g.node.Tick()
			g.decide()
		case r := <-g.inbox:
			g.take(r)
		case f := <-g.calls:
			f()
		case <-ctx.Done():
			return
		}
		for g.node.HasReady() {
			if err := g.ready(); err != nil {
				g.fail(err)
				return
			}
		}
		g.publish()
	}
}

// fail ends the part of this process: it must not say to the others what it would not know after a
// restart.
func (g *Group) fail(err error) {
	g.err = fmt.Errorf("agreement: the log of the members in %s cannot be kept: %w: see that the disk has room and "+
		"can be written, and start the same command again", g.opt.File, err)
	if g.local != nil {
		g.local.Failed(g.err)
	}
}

// ready keeps entries, sends messages and applies entries that Raft has ready.
func (g *Group) ready() error {
	rd := g.node.Ready()
	if err := g.store.keep(rd); err != nil {
		return err
	}
	for _, m := range rd.Messages {
		text, err := proto.Marshal(m)
		if err != nil {
			return err
		}
		g.send(g.slot(m.GetTo()), append([]byte{recordRaft}, text...))
	}
	for _, e := range rd.CommittedEntries {
		if err := g.commit(e); err != nil {
			return err
		}
	}
	g.node.Advance(rd)
	return nil
}

// send sends a record, unless many wait: Raft repeats lost ones.
func (g *Group) send(to int, text []byte) {
	if to == g.opt.Self || to >= len(g.out) {
		return
	}
	select {
	case g.out[to] <- text:
	default:
	}
}

// talk exchanges records with another process, whatever process it is.
func (g *Group) talk(ctx context.Context, with int) {
	for ctx.Err() == nil {
		s, err := g.opt.Sessions.OpenSession(ctx, with)
		if err != nil {
			select {
			case <-time.After(tick):
			case <-ctx.Done():
			}
			continue
		}
		session, over := context.WithCancel(ctx)
		var sending sync.WaitGroup
		sending.Go(func() {
			defer over()
			for {
				select {
				case text := <-g.out[with]:
					if s.Send(session, text) != nil {
						return
					}
				case <-session.Done():
					return
				}
			}
		})
		for {
			text, err := s.Recv(session)
			if err != nil {
				break
			}
			select {
			case g.inbox <- record{with, text}:
			case <-session.Done():
			}
		}
		over()
		sending.Wait()
	}
}

// take takes a record of another process.
func (g *Group) take(r record) {
	if len(r.text) == 0 {
		return
	}
	switch r.text[0] {
	case recordRaft:
		m := &raftpb.Message{}
		if proto.Unmarshal(r.text[1:], m) != nil || m.GetTo() != g.id || g.slot(m.GetFrom()) != r.from {
			return
		}
		if life := g.state.lives[r.from]; int(m.GetFrom()-1)/g.opt.Agents < life { // It has not heard that it has left.
			g.sendEntry(r.from, recordLeft, entry{Kind: leave, Agent: r.from, Life: life})
			return
		}
		_ = g.node.Step(m) // A message that it refuses is of an earlier time.
	case recordAsk:
		var e entry
		if json.Unmarshal(r.text[1:], &e) != nil || e.Kind != join || e.Agent != r.from {
			return
		}
		g.asks[e.Agent] = e
		if s := g.state; s.present[e.Agent] && e.Life > s.lives[e.Agent] && !s.dropped[e.Agent] {
			// The agent does not go on as the member that it was: it need not be awaited.
			_ = g.propose(entry{Kind: drop, Agent: e.Agent, Life: s.lives[e.Agent]})
		}
	case recordLeft:
		var e entry
		if json.Unmarshal(r.text[1:], &e) == nil && e.Agent == g.opt.Self && e.Life > g.opt.Life && g.local != nil {
			g.local.Dropped()
			g.local = nil
		}
	}
}

// sendEntry sends a record that holds an entry.
func (g *Group) sendEntry(to int, how byte, e entry) {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // an entry is numbers
	}
	g.send(to, append([]byte{how}, text...))
}

// read decodes an entry of Raft's log. ok is false if it says nothing of the members. voters is the
// change of the voters that goes with it; nil: none.
func read(raw *raftpb.Entry) (e entry, voters *raftpb.ConfChange, ok bool, err error) {
	text := raw.Data
	if raw.GetType() != raftpb.EntryNormal {
		voters = &raftpb.ConfChange{}
		err = proto.Unmarshal(raw.Data, voters)
		text = voters.Context
	}
	if ok = len(text) > 0; ok && err == nil { // Entries of a new leader and of the first members are empty.
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		err = fmt.Errorf("agreement: entry %d of the log cannot be read: %w", raw.GetIndex(), err)
	}
	return e, voters, ok, err
}

// commit applies an entry.
func (g *Group) commit(raw *raftpb.Entry) error {
	e, voters, ok, err := read(raw)
	if err != nil {
		return err
	}
	applies := !ok
	if ok {
		o := g.enter(e)
		applies = o.left >= 0 || o.joins
	}
	if voters != nil && applies {
		g.node.ApplyConfChange(voters)
	}
	return nil
}

// enter applies an entry to the state, and tells the local agent.
func (g *Group) enter(e entry) outcome {
	o := g.state.apply(e)
	close(g.news)
	g.news = make(chan struct{})
	if o.joins {
		delete(g.asks, e.Agent)
	}
	if o.left >= 0 || o.joins {
		g.opt.Log.Info("the members change", zap.String("how", string(e.Kind)), zap.Int("agent", e.Agent),
			zap.Ints("members", g.state.members()))
	}
	if g.local == nil {
		return o
	}
	switch {
	case o.left == g.opt.Self && e.Life == g.opt.Life:
		g.local.Dropped()
		g.local = nil
		return o
	case o.left >= 0:
		g.follow([]int{o.left})
	case o.joins:
		g.follow(nil)
	}
	switch {
	case o.formed:
		g.local.Change(g.state.view())
	case e.Kind == reach && g.state.told():
		g.told.reach = time.Time{}
		g.remind()
	}
	return o
}

// follow takes the local agent to the latest revision of the pending change.
func (g *Group) follow(left []int) {
	p := g.state.pending
	if p == nil {
		return
	}
	own := entry{Kind: reach, By: g.opt.Self, Life: g.opt.Life, Revision: g.state.revision,
		Process: g.told.process, Idle: map[int]membership.Exchange{}}
	for agent, t := range g.told.own.Idle {
		own.Idle[agent] = t
	}
	for _, agent := range left {
		own.Idle[agent] = g.local.Leave(agent, g.state.lives[agent])
	}
	if !slices.Contains(g.state.members(), g.opt.Self) {
		return
	}
	own.T, own.Lead = max(g.local.Hold(), p.reached[g.opt.Self]), g.local.Lead()
	g.told.own, g.told.reach = own, time.Time{}
	g.remind()
}

// remind proposes the entries that the log lacks of the local agent about the pending change:
// reach, and progress when all members have said reach.
func (g *Group) remind() {
	p := g.state.pending
	if g.local == nil || p == nil || g.told.own.Revision != g.state.revision || time.Since(g.told.reach) < retryAfter {
		return
	}
	e := g.told.own
	switch {
	case g.state.told() && p.current[g.opt.Self] == g.told.process && !p.answered[g.opt.Self]:
		e = entry{Kind: progress, By: e.By, Life: e.Life, Revision: e.Revision, Seen: g.local.Seen()}
	case p.current[g.opt.Self] == g.told.process || !g.local.Linked():
		return
	}
	if g.propose(e) == nil {
		g.told.reach = time.Now()
	}
}

// propose proposes an entry. The leader's process adds it to the log.
func (g *Group) propose(e entry) error {
	if e.Kind != reach && e.Kind != progress {
		e.By = g.opt.Self
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // an entry is numbers
	}
	return g.node.Propose(text)
}

// decide proposes entries about agents that are silent, leave or want to join.
func (g *Group) decide() {
	s := g.state
	if !s.present[g.opt.Self] || s.lives[g.opt.Self] != g.opt.Life {
		g.ask()
		return
	}
	g.remind()
	for i := range s.Agents {
		if i == g.opt.Self || !s.present[i] || s.joins(g.opt.Self) || time.Since(g.told.silent[i]) < retryAfter {
			continue
		}
		silence := min(g.opt.Sessions.SilentFor(i), time.Since(g.began))
		quiet, said := silence > g.opt.DropAfter || g.opt.Stuck(i), s.accused[i][g.opt.Self]
		e := entry{Kind: heard, Agent: i, Life: s.lives[i]}
		if quiet {
			e.Kind = silent
		}
		if quiet != said && g.propose(e) == nil {
			g.told.silent[i] = time.Now()
		}
	}
	if g.node.BasicStatus().RaftState != raft.StateLeader || time.Since(g.told.member) < retryAfter {
		return
	}
	all := s.silenced()
	maps.DeleteFunc(g.ripe, func(i int, _ time.Time) bool { return !slices.Contains(all, i) })
	for _, i := range all {
		if since, waits := g.ripe[i]; !waits {
			g.ripe[i] = time.Now()
		} else if time.Since(since) >= secondThought || s.dropped[i] {
			g.proposeMember(entry{Kind: leave, Agent: i, Life: s.lives[i]}, raftpb.ConfChangeRemoveNode)
			return // Raft has one change at a time under way.
		}
	}
	for i, e := range g.asks {
		if s.pending == nil && !s.present[i] && e.Life == s.lives[i] {
			g.proposeMember(e, raftpb.ConfChangeAddNode)
			return
		}
	}
}

// proposeMember proposes an entry that changes the voters of Raft, too.
func (g *Group) proposeMember(e entry, how raftpb.ConfChangeType) {
	e.By = g.opt.Self
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // an entry is numbers
	}
	c := &raftpb.ConfChange{Type: how.Enum(), NodeId: new(nodeID(e.Agent, e.Life, g.opt.Agents)), Context: text}
	if g.node.ProposeConfChange(c) == nil {
		g.told.member = time.Now()
	}
}

// ask asks all processes to let the local agent join.
func (g *Group) ask() {
	if time.Since(g.told.member) < retryAfter {
		return
	}
	g.told.member = time.Now()
	for i := range g.opt.Agents {
		g.sendEntry(i, recordAsk, entry{Kind: join, Agent: g.opt.Self, Life: g.opt.Life})
	}
}

// Status is the knowledge of this process about the members.
type Status struct {
	Members []int // Ascending, without those that are about to join.
	Lives   []int // How often each slot has got a new agent.
	Leader  int   // -1: none is known, so that nothing can be decided.
	Writer  int
	Silent  []int // Agents that this process accuses.
	Changes []membership.Epoch
}

// Status returns the knowledge of this process.
func (g *Group) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.status
}

// publish makes the state known to other goroutines.
func (g *Group) publish() {
	s := Status{Members: g.state.members(), Lives: slices.Clone(g.state.lives), Leader: -1, Writer: g.state.writer,
		Changes: slices.Clip(g.state.epochs)}
	if lead := g.node.BasicStatus().Lead; lead != raft.None {
		s.Leader = g.slot(lead)
	}
	for i := range g.opt.Agents {
		if g.state.accused[i][g.opt.Self] {
			s.Silent = append(s.Silent, i)
		}
	}
	g.mu.Lock()
	before := g.status
	g.status = s
	g.mu.Unlock()
	if before.Leader != s.Leader && s.Leader < 0 && len(before.Members) > 0 {
		g.opt.Log.Warn("no majority of the members is heard; nothing can be decided", zap.Ints("members", s.Members))
	}
}

// ErrClosed is the error of calls after Close.
var ErrClosed = errors.New("agreement: closed")
