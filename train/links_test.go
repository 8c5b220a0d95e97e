package train

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/internal/rng"
	"fspda/internal/testing/disttest"
	"fspda/train/metric"
)

// WithLinks writes a file of links and returns its path.
func withLinks(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "wan.yaml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

const wan = "{gradient_ms: 10, gradient_law: exp, slowness: 'straggler(3)', uplink_mbit: 2, default: {latency_ms: " +
	"50, bandwidth_mbit: 1, loss: 0.2}}"

// Compares the clocks of three agents on a path, each with another compute time, with times
// computed by hand. At t = 0 the messages leave at 0 and arrive at 1.1; agent 0 is done after 5 s,
// agent 1 after 1.1 s, agent 2 after 2 s. At t = 1 agent 0 posts at 5, agent 1 receives it at 6.1,
// and so on.
func TestTimelineByHand(t *testing.T) {
	c := small()
	c.Agents, c.Graph, c.Edges, c.Algo, c.Density, c.Gamma = 3, "path", "full", "fspda-sa", 1, 0.3
	c.Iterations, c.EvalPoints = 3, 3
	s, _ := resolve(t, c)
	bandwidth := 32 * float64(s.Dim) / 1e6 // a message takes a second
	c.Links = withLinks(t, fmt.Sprintf("{gradient_ms: 1000, default: {latency_ms: 100, bandwidth_mbit: %.17g}, "+
		"agents: [{agents: 0, gradient_ms: 5000}, {agents: 2, gradient_ms: 2000}]}", bandwidth))
	want := [][3]float64{{0, 0, 0}}
	for range 3 {
		b := want[len(want)-1]
		want = append(want, [3]float64{math.Max(b[0]+5, b[1]+1.1), math.Max(b[1]+1, math.Max(b[0], b[2])+1.1),
			math.Max(b[2]+2, b[1]+1.1)})
	}
	if want[2] != [3]float64{10, 6.1, 4} {
		t.Fatalf("the hand is wrong: %v", want)
	}
	for k, r := range play(t, c, Options{}).Rows {
		w := want[k]
		if !near(float64(r.Time), slices.Max(w[:])) || !near(float64(r.TimeMean), (w[0]+w[1]+w[2])/3) {
			t.Errorf("iteration %d: %v, mean %v; want those of %v", k, r.Time, r.TimeMean, w)
		}
	}
	c.Algo, c.Order = "dsgd", "atc" // posts after the gradient
	b := [3]float64{5, 1, 2}
	first := math.Max(math.Max(b[0], b[1]+1.1), math.Max(math.Max(b[1], b[0]+1.1), b[2]))
	if got := play(t, c, Options{}).Rows[1]; !near(float64(got.Time), first) {
		t.Errorf("adapt then combine: %v, want %v", got.Time, first)
	}
}

// An iteration of central SGD takes the slowest gradient and then 2(n-1) steps over the slowest
// link.
func TestTimelineOfAllReduce(t *testing.T) {
	c := small()
	c.Agents, c.Algo, c.Iterations, c.EvalPoints = 4, "sgd", 2, 2
	s, _ := resolve(t, c)
	chunk := math.Ceil(float64(s.Dim)/4) * 32
	c.Links = withLinks(t, "{gradient_ms: 100, slowness: straggler(3), default: {latency_ms: 20, bandwidth_mbit: "+
		"1}, pairs: [{pair: [3, 0], bandwidth_mbit: 0.25, loss: 0.2}, {pair: [0, 2], latency_ms: 9000}]}")
	tx := chunk / 0.25e6
	one := 0.3 + 6*(tx+0.25*(0.04+tx)+0.02)
	for k, r := range play(t, c, Options{}).Rows {
		if !near(float64(r.Time), float64(k)*one) || !near(float64(r.TimeMean), float64(k)*one) {
			t.Errorf("iteration %d at %v, mean %v, want %v", k, r.Time, r.TimeMean, float64(k)*one)
		}
	}
}

// An all-reduce comes in the last iteration of a round only, and one of some coordinates takes as
// long as its chunks are.
func TestTimelineOfRounds(t *testing.T) {
	for _, l := range []struct {
		algo    string
		steps   int
		density float64
	}{{"diloco", 3, 1}, {"sparta", 1, 0.1}, {"sparta", 2, 0.1}} {
		c := small()
		c.Agents, c.Algo, c.Iterations, c.EvalPoints, c.LocalSteps, c.Density = 4, l.algo, 6, 1, l.steps, l.density
		c.Links = withLinks(t, "{gradient_ms: 100, default: {latency_ms: 20, bandwidth_mbit: 1}}")
		s, _ := resolve(t, c)
		chunk := math.Ceil(float64(s.Mask.Len())/4) * 32
		want := 6*0.1 + float64(6/l.steps)*6*(chunk/1e6+0.02)
		if got := play(t, c, Options{}).Rows[1].Time; !near(float64(got), want) {
			t.Errorf("%s in rounds of %d: %v s, want %v", l.algo, l.steps, got, want)
		}
		if l.algo != "sparta" {
			continue
		}
		// two of the iterations have all coordinates
		c.Algo, c.Params = "sparta-diloco", Params{"outer_steps": 3 * l.steps}
		c.Iterations = 6 * l.steps
		all := math.Ceil(float64(s.Dim)/4) * 32
		want = float64(c.Iterations)*0.1 + 6*(4*(chunk/1e6+0.02)+2*(all/1e6+0.02))
		if got := play(t, c, Options{}).Rows[1].Time; !near(float64(got), want) {
			t.Errorf("%s in rounds of %d: %v s, want %v", c.Algo, l.steps, got, want)
		}
	}
}

// Two steps of coded vectors take as long as an all-reduce of their bits, and coded vectors to all
// others as long as they take on each link.
func TestTimelineOfQuantizedRounds(t *testing.T) {
	for collective, bits := range map[string]func(d, blocks int) float64{
		"two-step": func(d, blocks int) float64 {
			return 6 * (math.Ceil(float64(4*d+32*blocks)/4)/1e6 + 0.02)
		},
		"gather": func(d, blocks int) float64 { return float64(4*d+32*blocks)/1e6 + 0.02 },
	} {
		c := small()
		c.Agents, c.Algo, c.Iterations, c.EvalPoints, c.LocalSteps = 4, "diloco", 6, 1, 3
		c.Params = Params{"quantize": "int4", "block": 100, "collective": collective}
		c.Links = withLinks(t, "{gradient_ms: 100, default: {latency_ms: 20, bandwidth_mbit: 1}}")
		s, m := resolve(t, c)
		blocks := 0
		for _, size := range m.Describe().Sizes() {
			blocks += (size + 99) / 100
		}
		want := 6*0.1 + 2*bits(s.Dim, blocks)
		last := play(t, c, Options{}).Rows[1]
		if !near(float64(last.Time), want) {
			t.Errorf("%s: %v s, want %v", collective, last.Time, want)
		}
		if expected := s.ExpectedBits() * 6; !near(expected, float64(last.BitsSharedSeed)) {
			t.Errorf("%s: %v bits, the forecast is %v", collective, last.BitsSharedSeed, expected)
		}
	}
}

// untimed returns a trace without the columns of virtual time.
func untimed(t *testing.T, r *Result) string {
	out := *r
	out.Rows = slices.Clone(r.Rows)
	for k := range out.Rows {
		out.Rows[k].Time, out.Rows[k].TimeMean = 0, 0
	}
	return trace(t, &out)
}

// Links change only the columns of virtual time. Virtual time grows, does not depend on threads or
// on the order in which messages are delivered, and continues exactly after a stop.
func TestTableUnderLinks(t *testing.T) {
	name := withLinks(t, wan)
	forSomeLines(t, 0, func(t *testing.T, l line, c Config) {
		c.EvalPoints, c.Iterations, c.Batch = 2, 40, min(c.Batch, 4)
		plain := play(t, c, Options{})
		s, _ := resolve(t, c)
		if s.Asynchronous() {
			base := Default()
			c.ComputeTime, c.Slowness = base.ComputeTime, base.Slowness
		}
		c.Links = name
		timed := play(t, c, Options{Transport: disttest.NewSim(c.Agents, 9,
			disttest.Faults{MaxDelay: 5, Reorder: true})})
		if !s.Asynchronous() && untimed(t, timed) != untimed(t, plain) {
			t.Error("the links changed the trajectory")
		}
		if again := play(t, c, Options{}); trace(t, again) != trace(t, timed) {
			t.Error("with another transport virtual time differs")
		}
		last := timed.Rows[2]
		if !(last.Time > timed.Rows[1].Time && timed.Rows[1].Time > 0) || last.TimeMean > last.Time*(1+1e-12) {
			t.Errorf("virtual times %v, %v, mean %v", timed.Rows[1].Time, last.Time, last.TimeMean)
		}
		checkResumed(t, c, l.name, trace(t, timed))
	})
}

// checkResumed stops a run up to three times, at least once, and compares its result with want.
func checkResumed(t *testing.T, c Config, name, want string) {
	t.Helper()
	s := rng.New(3, "stops "+name)
	for range 20 {
		stops, got := stoppedRun(t, c, s)
		if got != want {
			t.Fatalf("stopped %d times, and the result differs", stops)
		}
		if stops > 0 {
			return
		}
		// Agents that do not wait for agent 0 were at the end before it asked for the stop.
	}
	t.Error("20 runs ended before they could be stopped")
}

// stoppedRun stops a run up to three times and resumes it, until it ends. It returns how often the
// run stopped, and its trace.
func stoppedRun(t *testing.T, c Config, s rng.Stream) (stops int, got string) {
	t.Helper()
	for part := runFolder(t); ; stops++ {
		ctx, stop := context.WithCancel(context.Background())
		at := -1
		if stops < 3 {
			at = s.IntN(c.Iterations / 4)
		}
		r, err := inFolder(t, ctx, c, part, stopping(at, stop))
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != Stopped {
			return stops, trace(t, r)
		}
	}
}

// A run cannot be resumed with other links.
func TestResumeUnderOtherLinks(t *testing.T) {
	c, part := long(), runFolder(t)
	c.Links = withLinks(t, wan)
	stopAt(t, c, part, 20)
	for _, other := range []string{"", withLinks(t, "gradient_ms: 3")} {
		c.Links = other
		if _, err := inFolder(t, context.Background(), c, part, Options{}); err == nil || !strings.Contains(err.Error(),
			"other simulated links") {
			t.Errorf("links %q: error %v", other, err)
		}
	}
}

// In an asynchronous run an exchange takes virtual time: on slow links agents decline more calls
// and meet less often. A gradient takes as long as the file says.
func TestAsyncUnderLinks(t *testing.T) {
	c := small()
	c.Algo, c.Contacts, c.Iterations, c.EvalPoints = "fspda-async", 2, 400, 1
	meet := func(links string) (bits uint64, time Num) {
		c.Links = withLinks(t, links)
		r := play(t, c, Options{})
		last := r.Rows[1]
		if last.DualSum > 1e-4 {
			t.Errorf("|sum of duals| = %v", last.DualSum)
		}
		return last.BitsTotal * 1000 / uint64(last.GradsTotal), last.Time
	}
	fast, short := meet("{gradient_ms: 20, gradient_law: exp}")
	slow, _ := meet("{gradient_ms: 20, gradient_law: exp, default: {latency_ms: 200}}")
	if !(fast > 2*slow && slow > 0) {
		t.Errorf("%d bits in 1000 gradients, on slow links %d", fast, slow)
	}
	if _, long := meet("{gradient_ms: 200, gradient_law: exp}"); !near(float64(long), 10*float64(short)) {
		t.Errorf("%v s of gradients of 20 ms, %v s of 200 ms", short, long)
	}
}

// An evaluation of some of the agents measures the same mean model.
func TestEvalAgents(t *testing.T) {
	c := small()
	all := play(t, c, Options{}).Rows[2]
	c.EvalAgents = 2
	some := play(t, c, Options{}).Rows[2]
	if some.TestAccAvg != all.TestAccAvg || some.TrainLossAvg != all.TrainLossAvg || some.Consensus != all.Consensus ||
		some.DualTrack != all.DualTrack || some.BitsTotal != all.BitsTotal {
		t.Errorf("%+v\n%+v", some, all)
	}
	if some.TrainLossWorst > all.TrainLossWorst || some.TestAccMin < all.TestAccMin || some.TestAccMax == 0 {
		t.Errorf("%+v\n%+v", some, all)
	}
}

// The time to a share of the best accuracy is the time of the first row that reaches it.
func TestTimeTo(t *testing.T) {
	row := func(accuracy, time Num) (r Row) {
		r.TestAccAvg, r.Time = accuracy, time
		return r
	}
	rows := []Row{row(0.1, 0), row(0.72, 2), row(Num(math.NaN()), 3), row(0.9, 4), row(0.8, 5)}
	for share, want := range map[float64]Num{0.1: 0, 0.5: 2, 0.8: 2, 0.81: 4, 1: 4} {
		if got := metric.TimeTo(rows, share); got != want {
			t.Errorf("%v of the best at %v, want %v", share, got, want)
		}
	}
	if got := metric.TimeTo(nil, 0.5); !math.IsNaN(float64(got)) {
		t.Errorf("without rows %v", got)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }
