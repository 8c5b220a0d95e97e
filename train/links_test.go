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

	"fspda/dist/disttest"
	"fspda/internal/rng"
)

func mustLinks(t *testing.T, text string, n int) *Links {
	t.Helper()
	l, err := ParseLinks([]byte(text), n, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// withLinks writes a file of links and returns its name.
func withLinks(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "wan.yaml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

const wan = "{gradient_ms: 10, gradient_law: exp, slowness: 'straggler(3)', uplink_mbit: 2, default: {latency_ms: 50, bandwidth_mbit: 1, loss: 0.2}}"

// The more particular entry wins, and both directions are the same.
func TestLinksRoutes(t *testing.T) {
	l := mustLinks(t, `
default: {latency_ms: 50, bandwidth_mbit: 10}
gradient_ms: 4
slowness: linear(3)
zones:
  - {name: eu, agents: 0-2, latency_ms: 1}
  - {name: us, agents: [3, 4], latency_ms: 2, loss: 0.1}
between:
  - {zones: [us, eu], latency_ms: 90, timeout_ms: 500}
agents:
  - {agents: [2, 5], bandwidth_mbit: 4, gradient_ms: 40, uplink_mbit: 8}
  - {agents: 4, bandwidth_mbit: 3}
pairs:
  - {pair: [5, 0], latency_ms: 7}
`, 7)
	for _, c := range []struct {
		i, j int
		want route
	}{
		{0, 1, route{0.001, 0.002, 1e7, 0}},
		{3, 4, route{0.002, 0.004, 3e6, 0.1}},
		{1, 3, route{0.09, 0.5, 1e7, 0}},
		{2, 4, route{0.09, 0.5, 3e6, 0}}, // the slower of both ends
		{0, 5, route{0.007, 0.014, 4e6, 0}},
		{5, 6, route{0.05, 0.1, 4e6, 0}}, // outside all zones
		{0, 6, route{0.05, 0.1, 1e7, 0}},
	} {
		if a, b := l.route(c.i, c.j), l.route(c.j, c.i); a != c.want || b != c.want {
			t.Errorf("between %d and %d: %+v and back %+v, want %+v", c.i, c.j, a, b, c.want)
		}
	}
	for i, want := range []float64{4, 4 + 8./6, 40, 8, 4 + 8.*4/6, 40, 12} {
		if got := 1e3 * l.compute(1, i, 3); !near(got, want) {
			t.Errorf("a gradient of agent %d takes %v ms, want %v", i, got, want)
		}
	}
	if l.uplink[2] != 8e6 || !math.IsInf(l.uplink[0], 1) {
		t.Errorf("uplinks %v", l.uplink)
	}
}

// A port by hand: 1 Mbit over 2 Mbit/s is half a second; a second message waits for the first, in
// this direction alone; an uplink is shared.
func TestPort(t *testing.T) {
	l := mustLinks(t, "{gradient_ms: 0, default: {latency_ms: 100, bandwidth_mbit: 2}, pairs: [{pair: [0, 2], bandwidth_mbit: 0.5}]}", 3)
	p, back := port{id: 0, net: l}, port{id: 1, net: l}
	for k, c := range []struct {
		p    *port
		now  float64
		peer int
		want float64
	}{
		{&p, 1, 1, 1.6},    // 1 + 0.5 + 0.1
		{&p, 1.2, 1, 2.1},  // waits until 1.5
		{&back, 1, 0, 1.6}, // the other direction is free
		{&p, 1.2, 2, 3.3},  // another link: 1.2 + 2 + 0.1
		{&p, 5, 1, 5.6},
	} {
		if got := c.p.send(c.now, 0, c.peer, 1e6); !near(got, c.want) {
			t.Errorf("message %d arrives at %v, want %v", k, got, c.want)
		}
	}
	l = mustLinks(t, "{gradient_ms: 0, uplink_mbit: 1, default: {latency_ms: 100, bandwidth_mbit: 2}, pairs: [{pair: [0, 2], bandwidth_mbit: 0.5}]}", 3)
	p = port{id: 0, net: l}
	// the uplink is the slower; then 1 + 2 over the slow link; then the uplink from 2 to 3
	for k, want := range []float64{1.1, 3.1, 3.1} {
		if got := p.send(0, 0, []int{1, 2, 1}[k], 1e6); !near(got, want) {
			t.Errorf("through the uplink, message %d arrives at %v, want %v", k, got, want)
		}
	}
}

// A loss is a repetition after the time-out; their number is geometric, and the same for the same
// key.
func TestLosses(t *testing.T) {
	const p, rounds = 0.3, 20000
	r := route{loss: p}
	sum := 0.0
	for k := range rounds {
		n := r.losses(5, k, 2, 3)
		if n != r.losses(5, k, 2, 3) || n < 0 || n != math.Trunc(n) {
			t.Fatalf("%v losses of message %d", n, k)
		}
		sum += n
	}
	if mean, want := sum/rounds, p/(1-p); math.Abs(mean-want) > 5*math.Sqrt(p)/(1-p)/math.Sqrt(rounds) {
		t.Errorf("%v losses a message, want %v", mean, want)
	}
	l := mustLinks(t, "{gradient_ms: 0, default: {latency_ms: 100, bandwidth_mbit: 1, loss: 0.5, timeout_ms: 700}}", 2)
	for k := range 50 {
		pt := port{id: 0, net: l, seed: 9}
		lost := l.route(0, 1).losses(9, k, 0, 1)
		if got, want := pt.send(0, k, 1, 1e6), 1+lost*1.7+0.1; !near(got, want) {
			t.Errorf("with %v losses: %v, want %v", lost, got, want)
		}
	}
}

// Three agents on a path, each with a gradient of its own time, by hand. At t = 0 the messages
// leave at 0 and are there at 1.1; agent 0 is done after 5 s, 1 after 1.1, 2 after 2. At t = 1
// agent 0 posts at 5: agent 1 has it at 6.1, and so on.
func TestTimelineByHand(t *testing.T) {
	c := small()
	c.Agents, c.Graph, c.Edges, c.Algo, c.Density, c.Gamma = 3, "path", "full", "fspda-sa", 1, 0.3
	c.Iterations, c.EvalPoints = 3, 3
	s, _ := resolve(t, c)
	bandwidth := 32 * float64(s.Dim) / 1e6 // a message takes a second
	c.Links = withLinks(t, fmt.Sprintf(
		"{gradient_ms: 1000, default: {latency_ms: 100, bandwidth_mbit: %.17g}, agents: [{agents: 0, gradient_ms: 5000}, {agents: 2, gradient_ms: 2000}]}", bandwidth))
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

// Central SGD is a ring all-reduce: the slowest gradient, then 2(n-1) steps of the slowest link.
func TestTimelineOfAllReduce(t *testing.T) {
	c := small()
	c.Agents, c.Algo, c.Iterations, c.EvalPoints = 4, "sgd", 2, 2
	s, _ := resolve(t, c)
	chunk := math.Ceil(float64(s.Dim)/4) * 32
	c.Links = withLinks(t, "{gradient_ms: 100, slowness: straggler(3), default: {latency_ms: 20, bandwidth_mbit: 1}, pairs: [{pair: [3, 0], bandwidth_mbit: 0.25, loss: 0.2}, {pair: [0, 2], latency_ms: 9000}]}")
	tx := chunk / 0.25e6
	one := 0.3 + 6*(tx+0.25*(0.04+tx)+0.02)
	for k, r := range play(t, c, Options{}).Rows {
		if !near(float64(r.Time), float64(k)*one) || !near(float64(r.TimeMean), float64(k)*one) {
			t.Errorf("iteration %d at %v, mean %v, want %v", k, r.Time, r.TimeMean, float64(k)*one)
		}
	}
}

// untimed is a trace without the columns of virtual time.
func untimed(t *testing.T, r *Result) string {
	out := *r
	out.Rows = slices.Clone(r.Rows)
	for k := range out.Rows {
		out.Rows[k].Time, out.Rows[k].TimeMean = 0, 0
	}
	return trace(t, &out)
}

// Links change nothing but the columns of time, which are the same whatever the threads and the
// order of messages, grow, and go on exactly after stops.
func TestTableUnderLinks(t *testing.T) {
	name := withLinks(t, wan)
	forLines(t, func(t *testing.T, l line, c Config) {
		c.EvalPoints, c.Iterations = 2, 60
		plain := play(t, c, Options{})
		if c.Algo == "fspda-async" {
			base := Default()
			c.ComputeTime, c.Slowness = base.ComputeTime, base.Slowness
		}
		c.Links = name
		timed := play(t, c, Options{Transport: disttest.NewSim(c.Agents, 9,
			disttest.Faults{MaxDelay: 5, Reorder: true})})
		if c.Algo != "fspda-async" && untimed(t, timed) != untimed(t, plain) {
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

// checkResumed stops a run three times, and wants it to come to the same.
func checkResumed(t *testing.T, c Config, name, want string) {
	t.Helper()
	part := runFolder(t)
	s := rng.New(3, "stops "+name)
	for stops := 0; ; stops++ {
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
		if r.Status == Stopped {
			continue
		}
		if stops == 0 || trace(t, r) != want {
			t.Errorf("stopped %d times, another result", stops)
		}
		return
	}
}

// A run cannot go on under another network.
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

// In an asynchronous run an exchange takes its time: a slow network declines calls, and so agents
// meet more rarely; a gradient is as long as the file says.
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

// What is wrong is named with its place, all at once.
func TestBadLinks(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unknown key": {"{gradient_ms: 1, defualt: {}}", []string{`key "defualt" does not exist`,
			`did you mean "default"`}},
		"unknown inner key": {"{gradient_ms: 1, zones: [{name: a, agents: 0, latncy_ms: 3}], default: {bandwith_mbit: 1}}", []string{`"zones[0].latncy_ms"`, `"latency_ms"`, `"default.bandwith_mbit"`, `"bandwidth_mbit"`}},
		"no gradient":       {"default: {latency_ms: 1}", []string{"gradient_ms: is missing"}},
		"negative": {"{gradient_ms: -1, default: {latency_ms: -5, bandwidth_mbit: 0, timeout_ms: .nan}}",
			[]string{"gradient_ms: is -1", "default.latency_ms: is -5", "default.bandwidth_mbit: is 0", "leave it out",
				"default.timeout_ms: is NaN"}},
		"total loss": {"{gradient_ms: 1, default: {loss: 1}}", []string{"default.loss: is 1",
			"nothing would arrive"}},
		"negative loss": {"{gradient_ms: 1, pairs: [{pair: [0, 1], loss: -0.1}]}",
			[]string{"pairs[0].loss: is -0.1"}},
		"unknown agent": {"{gradient_ms: 1, agents: [{agents: 0-5}], pairs: [{pair: [1, 9]}]}",
			[]string{"agents[0]: names agent 5", "they are 0 to 4", "pairs[0]: names agent 9"}},
		"unreadable agent": {"{gradient_ms: 1, agents: [{agents: first}]}", []string{`"first" names no agents`}},
		"no agents":        {"{gradient_ms: 1, agents: [{loss: 0.1}]}", []string{"agents[0]: names no agents"}},
		"one agent pair":   {"{gradient_ms: 1, pairs: [{pair: [1, 1]}]}", []string{"pairs[0]: pair is [1 1]"}},
		"two zones": {"{gradient_ms: 1, zones: [{name: a, agents: 0-2}, {name: a, agents: 2-3}]}",
			[]string{"empty or taken", "agent 2 is in zone"}},
		"unknown zone": {"{gradient_ms: 1, zones: [{name: europe, agents: 0-2}, {name: us, agents: 3}], between: [{zones: [europ, us]}]}", []string{`no zone is named "europ"`, `did you mean "europe"`}},
		"law": {"{gradient_ms: 1, gradient_law: gamma(2), slowness: 'linear(0.5)'}",
			[]string{`gradient_law: is "gamma(2)"`, "lognormal", `slowness: is "linear(0.5)"`}},
		"no map":          {"- 3", []string{"key: value"}},
		"text for number": {"{gradient_ms: fast}", []string{"fast"}},
		"empty":           {"", []string{"gradient_ms: is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseLinks([]byte(c.text), 5, 1)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, expected it to say %q", err, want)
				}
			}
		})
	}
	async := func(c *Config) { c.Algo = "fspda-async" }
	for text, edit := range map[string]func(c *Config){
		"gradient_ms: 0": async,
		"gradient_ms: 1": func(c *Config) { async(c); c.ComputeTime = "constant" },
		"gradient_ms: 2": func(c *Config) { async(c); c.Slowness = "linear(2)" },
	} {
		c := small()
		edit(&c)
		c.Links = withLinks(t, text)
		if _, err := c.Resolve(labSet, labModel(t, c)); err == nil {
			t.Errorf("%s was accepted with %s, %s", text, c.ComputeTime, c.Slowness)
		}
	}
	c := small()
	c.Links = "/no/such/wan.yaml"
	if _, err := c.Resolve(labSet, labModel(t, c)); err == nil || !strings.Contains(err.Error(),
		"links /no/such/wan.yaml") {
		t.Errorf("error %v", err)
	}
}

// An evaluation that looks at some agents sees the same mean model.
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

// The example of the documentation is a file of links.
func TestLinksOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/links.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/links.md has no example")
	}
	l := mustLinks(t, example, 10)
	if got, want := l.route(1, 6), (route{0.09, 0.2, 1e7, 0.01}); got != want {
		t.Errorf("from eu to us %+v, want %+v", got, want)
	}
	if got, want := l.route(5, 0).latency, 0.07; got != want {
		t.Errorf("between 0 and 5 %v s, want %v", got, want)
	}
	if got, want := l.route(9, 3).latency, 0.12; got != want || l.gradient[9] != 0.06 || l.uplink[9] != 1e6 ||
		l.uplink[8] != 2e7 {
		t.Errorf("agent 9: latency %v, want %v; gradient %v, uplink %v", got, want, l.gradient[9], l.uplink[9])
	}
	_, err = ParseLinks([]byte(example), 8, 1)
	if err == nil || !strings.Contains(err.Error(), "they are 0 to 7") {
		t.Errorf("with 8 agents: %v", err)
	}
}

// The time to a share of the best accuracy is that of the first row that has it.
func TestTimeTo(t *testing.T) {
	rows := []Row{{TestAccAvg: 0.1}, {TestAccAvg: 0.72, Time: 2}, {TestAccAvg: Num(math.NaN()), Time: 3},
		{TestAccAvg: 0.9, Time: 4}, {TestAccAvg: 0.8, Time: 5}}
	for share, want := range map[float64]Num{0.1: 0, 0.5: 2, 0.8: 2, 0.81: 4, 1: 4} {
		if got := timeTo(rows, share); got != want {
			t.Errorf("%v of the best at %v, want %v", share, got, want)
		}
	}
	if got := timeTo(nil, 0.5); !math.IsNaN(float64(got)) {
		t.Errorf("without rows %v", got)
	}
}

// Links belong to the trajectory of an asynchronous run, and to no other.
func TestLinksFingerprint(t *testing.T) {
	for _, name := range Algorithms() {
		a := small()
		a.Algo = name
		b := a
		b.Links = "wan.yaml"
		if same := a.Fingerprint() == b.Fingerprint(); same == (name == "fspda-async") ||
			same != (len(a.Differences(b)) == 0) {
			t.Errorf("%s: links leave the fingerprint alone: %v", name, same)
		}
	}
}
