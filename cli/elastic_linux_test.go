package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fspda/internal/rng"
	"fspda/internal/testing/disttest"
)

// dividedRun is an elastic run in which each pair of agents has a proxy of its own between them.
type dividedRun struct {
	*elasticRun
	between map[[2]int]*faultyProxy // By lower and higher agent.
}

// newDividedRun prepares a run whose agents reach each other through proxies only. The higher agent
// of a pair connects to the lower one.
func newDividedRun(t *testing.T, agents int, more ...string) *dividedRun {
	d := &dividedRun{newElasticRun(t, agents, more...), map[[2]int]*faultyProxy{}}
	own := make([]string, agents)
	for i := range own {
		own[i] = fmt.Sprint("127.0.0.1:", disttest.UnusedPort(t))
	}
	dir := t.TempDir()
	peers := func(agent int) string { return filepath.Join(dir, fmt.Sprintf("peers%d.yaml", agent)) }
	d.found = func(agent int) []string { return []string{"--peers", peers(agent)} }
	for i := range agents {
		at := slices.Clone(own)
		for low := range i {
			l := fmt.Sprint("127.0.0.1:", disttest.UnusedPort(t))
			p, err := newFaultyProxy(l, own[low], uint64(i))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.close)
			d.between[[2]int{low, i}], at[low] = p, l
		}
		writePeers(t, peers(i), func(agent int) string { return at[agent] }, agents)
	}
	return d
}

// across does something to each proxy between agents of a part and others.
func (d *dividedRun) across(part []int, do func(p *faultyProxy)) {
	for pair, p := range d.between {
		if slices.Contains(part, pair[0]) != slices.Contains(part, pair[1]) {
			do(p)
		}
	}
}

// onward waits until agents are at later iterations than now.
func (e *elasticRun) onward(agents []int) {
	e.t.Helper()
	for _, i := range agents {
		e.awaitIteration(i, e.iteration(i)+5)
	}
}

const undecided = "no majority of the members"

// Networks are divided into parts of three and five, and of four and four, and agents and links pause
// 200 times for at most 10 s. A majority goes on, a minority waits and says so, and after the network
// is whole again all are members. Nobody leaves for a pause.
func TestElasticPartitions(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes minutes; set FSPDA_LONG=1")
	}
	d := newDividedRun(t, 8, "--hidden", "6", "--algo", "dsgd", "--graph", "ring", "--iterations", "8000",
		"--eval-points", "20")
	d.own = elastic("15", "--gradient-time", "0.01", "--checkpoint-every", "5")
	d.startAll()
	all := d.others(-1)
	d.awaitIteration(0, 300)
	d.three(all)
	d.four(all)
	changes := d.count(0, members)
	d.pauses()
	if n := d.count(0, members); n != changes {
		t.Errorf("the members change %d times by pauses", n-changes)
	}
	d.onward(all)
	d.end()
}

// three divides the network into three and five.
func (d *dividedRun) three(all []int) {
	few, many := []int{1, 4, 6}, []int{0, 2, 3, 5, 7}
	begin := time.Now()
	d.across(few, func(p *faultyProxy) { p.stall(true) })
	d.poll("five members", func() bool { return len(d.present()) == 5 })
	d.onward(many)
	d.t.Logf("3|5: five go on %.1f s after the division", time.Since(begin).Seconds())
	for _, i := range few {
		d.poll("the three say that they wait", func() bool { return strings.Contains(d.page(i, "/readyz"), undecided) })
	}
	for _, i := range few {
		if t := d.iteration(i); t > d.iteration(0) {
			d.t.Errorf("agent %d of three is at iteration %d", i, t)
		}
	}
	begin = time.Now()
	d.across(few, func(p *faultyProxy) { p.stall(false) })
	d.poll("eight members", func() bool { return len(d.present()) == 8 })
	d.onward(all)
	d.t.Logf("3|5: all are members and go on %.1f s after the network is whole", time.Since(begin).Seconds())
}

// four divides the network into two halves.
func (d *dividedRun) four(all []int) {
	half := []int{0, 1, 4, 6}
	changes := d.count(0, members)
	d.across(half, func(p *faultyProxy) { p.cut(true) })
	for _, i := range all {
		d.poll("all say that they wait", func() bool { return strings.Contains(d.page(i, "/readyz"), undecided) })
	}
	var at, later []int
	for _, i := range all {
		at = append(at, d.iteration(i))
	}
	time.Sleep(20 * time.Second) // longer than members may be silent
	for _, i := range all {
		later = append(later, d.iteration(i))
	}
	if !slices.Equal(at, later) {
		d.t.Errorf("4|4: iterations %v, and 20 s later %v", at, later)
	}
	begin := time.Now()
	d.across(half, func(p *faultyProxy) { p.cut(false) })
	d.onward(all)
	d.t.Logf("4|4: all go on %.1f s after the network is whole", time.Since(begin).Seconds())
	if n := d.count(0, members); n != changes {
		d.t.Errorf("4|4: %d changes of the members", n-changes)
	}
}

// pauses stops processes, and the links of agents, 200 times in all, three agents at a time. A
// majority hears each agent at least every ten seconds.
func (d *dividedRun) pauses() {
	begin := time.Now()
	var work sync.WaitGroup
	for k := range 3 {
		work.Go(func() {
			draw := rng.New(uint64(k), "pauses")
			for n := k; n < 200; n += 3 {
				i := (n-k)%(3*((d.agents-k+2)/3)) + k // Each agent is one of the same three.
				wait := time.Duration(100+draw.IntN([]int{1900, 9900}[draw.IntN(2)])) * time.Millisecond
				if draw.IntN(2) == 0 {
					_ = d.cmds[i].Process.Signal(syscall.SIGSTOP)
					time.Sleep(wait)
					_ = d.cmds[i].Process.Signal(syscall.SIGCONT)
				} else {
					d.across([]int{i}, func(p *faultyProxy) { p.stall(true) })
					time.Sleep(wait)
					d.across([]int{i}, func(p *faultyProxy) { p.stall(false) })
				}
				time.Sleep(time.Second) // All hear it again.
			}
		})
	}
	work.Wait()
	d.t.Logf("200 pauses in %.0f s, at iteration %d then", time.Since(begin).Seconds(), d.iteration(0))
}
