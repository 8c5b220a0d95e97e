package cpu

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// Each part of each job runs once, whether helpers are awake, asleep or in between.
func TestTeamRunsEveryPartOnce(t *testing.T) {
	team := newTeam(3)
	defer team.stop()
	o := &operands{out: [][]float32{make([]float32, 40)}, lent: &lent{team}}
	for job := range 3000 {
		parts := job%40 + 1
		clear(o.out[0])
		o.parallel(parts, func(o *operands, part, of int) { o.out[0][part] += float32(of) })
		for i, v := range o.out[0] {
			if i < parts && v != float32(parts) || i >= parts && v != 0 {
				t.Fatalf("job %d of %d parts: part %d was done %v/%d times", job, parts, i, v, parts)
			}
		}
		if job%500 == 0 {
			time.Sleep(2 * watch) // they fall asleep
		}
	}
}

// Helpers do take part: parts that wait for one another end only if they run at the same time.
func TestHelpersHelp(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	team := newTeam(2)
	defer team.stop()
	o := &operands{lent: &lent{team}}
	meeting = &sync.WaitGroup{}
	meeting.Add(3)
	o.parallel(3, func(*operands, int, int) { meeting.Done(); meeting.Wait() })
	if n := o.threads(); n != 3 {
		t.Errorf("%d threads, want 3", n)
	}
}

var meeting *sync.WaitGroup

// Helpers that have nothing to do sleep.
func TestHelpersSleep(t *testing.T) {
	team := newTeam(2)
	defer team.stop()
	for range 1000 {
		time.Sleep(watch)
		asleep := 0
		for _, h := range team.helpers {
			if h.asleep.Load() {
				asleep++
			}
		}
		if asleep == len(team.helpers) {
			return
		}
	}
	t.Error("helpers without work are awake")
}
