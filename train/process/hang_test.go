package process_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"fspda/dist"
	"fspda/train/process"
)

// positions is a Network whose agents have not advanced since a time.
type positions struct {
	*memory
	start  time.Time
	agents []dist.Advance
	silent map[int]bool
}

func (p positions) Position(agent int) dist.Advance {
	a := p.agents[agent]
	a.Since += time.Since(p.start)
	return a
}

func (p positions) SilentFor(agent int) time.Duration {
	if p.silent[agent] {
		return time.Hour
	}
	return 0
}

func at(t int, phase dist.Phase, awaits int, since, pace time.Duration) dist.Advance {
	return dist.Advance{Position: dist.Position{T: t, Phase: phase, Awaits: awaits}, Since: since, Pace: pace}
}

// The agents that hold up a run are those that work and do not advance, however many wait for them.
// Where none works, all that wait are named, if nobody can end their waits.
func TestHanging(t *testing.T) {
	const long, short, quick = time.Minute, time.Second, time.Millisecond
	for name, c := range map[string]struct {
		agents []dist.Advance
		silent map[int]bool
		want   []int
	}{
		"one hangs, the others wait": {agents: []dist.Advance{at(9, dist.Waiting, 1, long, quick),
			at(7, dist.Working, 0, long, quick), at(8, dist.Waiting, 0, long, quick)}, want: []int{1}},
		"all advance": {agents: []dist.Advance{at(9, dist.Waiting, 1, long, quick),
			at(7, dist.Working, 0, short, quick)}},
		"its steps are slow": {agents: []dist.Advance{at(9, dist.Waiting, 1, long, quick),
			at(7, dist.Working, 0, long, long/4)}},
		"each waits for the other": {agents: []dist.Advance{at(9, dist.Waiting, 1, long, quick),
			at(7, dist.Waiting, 0, long, quick)}, want: []int{0, 1}},
		"one waits for one that has ended": {agents: []dist.Advance{at(9, dist.Waiting, 1, long, quick),
			at(7, dist.Idle, 0, long, quick)}, want: []int{0}},
		"one waits for a short time": {agents: []dist.Advance{at(9, dist.Waiting, 1, short, quick),
			at(7, dist.Waiting, 0, long, quick)}},
		"they wait for one that is not heard": {agents: []dist.Advance{at(9, dist.Waiting, 1, long, quick),
			at(7, dist.Working, 0, long, quick)}, silent: map[int]bool{1: true}},
		"all have ended": {agents: []dist.Advance{at(9, dist.Idle, 0, long, quick), at(9, dist.Idle, 0, long, quick)}},
	} {
		p := positions{start: time.Now(), agents: c.agents, silent: c.silent}
		var got []int
		for _, s := range process.Hanging(p, 0, len(c.agents), 0) {
			got = append(got, s.Agent)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: agents %v hang, want %v", name, got, c.want)
		}
	}
}

// An agent whose process has just ended is silent, and does not hang, also if the time is short.
func TestEndedIsSilent(t *testing.T) {
	const limit = 6 * time.Second
	for _, phase := range []dist.Phase{dist.Idle, dist.Working, dist.Waiting} {
		synctest.Test(t, func(t *testing.T) {
			core, _ := observer.New(zapcore.WarnLevel)
			ctx, fail := context.WithCancelCause(t.Context())
			defer fail(nil)
			net := ending{positions{memory: newMemory(3)[0], start: time.Now(), agents: []dist.Advance{
				at(400, dist.Waiting, 2, 0, 0), at(400, dist.Waiting, 2, 0, 0), at(400, phase, 0, 0, 0)}}}
			n := process.New(process.Options{Rank: 0, Agents: 3, Network: net, Store: process.NoStore{},
				Run: newLocal(3, nil), Schedule: schedule{}, Log: zap.New(core), Timeout: limit})
			n.Serve(ctx, fail)
			time.Sleep(3 * limit)
			silent, ok := errors.AsType[*process.SilentError](context.Cause(ctx))
			if !ok || silent.Agent != 2 {
				t.Errorf("phase %v: the run ends with %v, want that agent 2 is silent", phase, context.Cause(ctx))
			}
			n.Wait(ctx, t.Context())
		})
	}
}

// ending is a Network of which agent 2 does not advance from the start on, and is silent from a
// little later on.
type ending struct{ positions }

func (e ending) SilentFor(agent int) time.Duration {
	if agent != 2 {
		return 0
	}
	return max(0, time.Since(e.start)-1200*time.Millisecond)
}

// An agent whose process lives and that does not advance is named in the log within 30 seconds, and
// ends the run after the timeout. The process of the agent itself is abandoned then.
func TestHungAgentEndsTheRun(t *testing.T) {
	for _, rank := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			core, lines := observer.New(zapcore.WarnLevel)
			ctx, fail := context.WithCancelCause(t.Context())
			defer fail(nil)
			net := positions{memory: newMemory(2)[rank], start: time.Now(),
				agents: []dist.Advance{at(300, dist.Waiting, 1, 0, 0), at(300, dist.Working, 0, 0, 0)}}
			var abandoned atomic.Int32
			n := process.New(process.Options{Rank: rank, Agents: 2, Network: net, Store: process.NoStore{},
				Run: newLocal(2, nil), Schedule: schedule{}, Log: zap.New(core), Timeout: time.Minute,
				Abandon: func(error) { abandoned.Add(1) }})
			n.Serve(ctx, fail)
			time.Sleep(30 * time.Second)
			said := lines.All()
			if len(said) != 1 || !strings.Contains(said[0].ContextMap()["where"].(string), "agent 1 ") ||
				ctx.Err() != nil {
				t.Errorf("after 30 s: %v, %v", said, context.Cause(ctx))
			}
			time.Sleep(60 * time.Second)
			hung, ok := errors.AsType[*process.HangError](context.Cause(ctx))
			if !ok || len(hung.Stalls) != 1 || hung.Stalls[0].Agent != 1 || int(abandoned.Load()) != rank {
				t.Errorf("agent %d: after 90 s %v, abandoned %d times", rank, context.Cause(ctx), abandoned.Load())
			}
			n.Wait(ctx, ctx)
		})
	}
}

// A process is abandoned when its run has failed for another reason than the silence of an agent,
// and its own agent then hangs in its next iteration.
func TestFailedRunIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, fail := context.WithCancelCause(t.Context())
		net := positions{memory: newMemory(2)[0], start: time.Now().Add(4 * time.Second),
			agents: []dist.Advance{at(300, dist.Working, 0, 0, 0), at(300, dist.Working, 0, 0, 0)}}
		var abandoned atomic.Pointer[error]
		n := process.New(process.Options{Rank: 0, Agents: 2, Network: net, Store: process.NoStore{},
			Run: newLocal(2, nil), Schedule: schedule{}, Log: zap.NewNop(), Timeout: time.Minute,
			Abandon: func(err error) { abandoned.Store(&err) }})
		n.Serve(ctx, fail)
		failed := errors.New("the others have ended")
		fail(failed)
		time.Sleep(time.Minute)
		if abandoned.Load() != nil {
			t.Error("abandoned although the agent had worked for 56 s")
		}
		time.Sleep(12 * time.Second)
		if err := abandoned.Load(); err == nil || !errors.Is(*err, failed) {
			t.Errorf("abandoned for %v", err)
		}
		n.Wait(ctx, ctx)
	})
}
