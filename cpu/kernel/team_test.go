package kernel

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// Each part of each job runs once, whether workers are awake, asleep or in between.
func TestTeamRunsEveryPartOnce(t *testing.T) {
	team := NewTeam(3)
	defer team.Stop()
	o := &Args{Out: [][]float32{make([]float32, 40)}, Workers: &Workers{team}}
	for job := range 3000 {
		parts := job%40 + 1
		clear(o.Out[0])
		o.Parallel(parts, func(o *Args, part, of int) { o.Out[0][part] += float32(of) })
		for i, v := range o.Out[0] {
			if i < parts && v != float32(parts) || i >= parts && v != 0 {
				t.Fatalf("job %d of %d parts: part %d ran %v/%d times", job, parts, i, v, parts)
			}
		}
		if job%500 == 0 {
			time.Sleep(2 * spinTime) // they fall asleep
		}
	}
}

// Workers do take part: parts that wait for one another end only if they run at the same time.
func TestHelpersHelp(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	team := NewTeam(2)
	defer team.Stop()
	o := &Args{Workers: &Workers{team}}
	meeting = &sync.WaitGroup{}
	meeting.Add(3)
	o.Parallel(3, func(*Args, int, int) { meeting.Done(); meeting.Wait() })
	if n := o.Threads(); n != 3 {
		t.Errorf("%d threads, want 3", n)
	}
}

var meeting *sync.WaitGroup

// Workers that have nothing to do sleep.
func TestHelpersSleep(t *testing.T) {
	team := NewTeam(2)
	defer team.Stop()
	for range 1000 {
		time.Sleep(spinTime)
		asleep := 0
		for _, h := range team.workers {
			if h.asleep.Load() {
				asleep++
			}
		}
		if asleep == len(team.workers) {
			return
		}
	}
	t.Error("workers without work are awake")
}
