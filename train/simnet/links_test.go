package simnet

import (
	"math"
	"os"
	"strings"
	"testing"
)

func mustParse(t *testing.T, text string, n int) *Links {
	t.Helper()
	l, err := Parse([]byte(text), n, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

// The more specific entry wins, and both directions are equal.
func TestLinksRoutes(t *testing.T) {
	l := mustParse(t, `
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

// Compares a port with times computed by hand: 1 Mbit over 2 Mbit/s takes half a second; a second
// message waits for the first in the same direction only; all links share the uplink.
func TestPort(t *testing.T) {
	l := mustParse(t, "\ufeff{gradient_ms: 0, default: {latency_ms: 100, bandwidth_mbit: 2}, pairs: [{pair: [0, 2], "+
		"bandwidth_mbit: 0.5}]}", 3)
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
	l = mustParse(t, "{gradient_ms: 0, uplink_mbit: 1, default: {latency_ms: 100, bandwidth_mbit: 2}, pairs: "+
		"[{pair: [0, 2], bandwidth_mbit: 0.5}]}", 3)
	p = port{id: 0, net: l}
	// the uplink is the slower; then 1 + 2 over the slow link; then the uplink from 2 to 3
	for k, want := range []float64{1.1, 3.1, 3.1} {
		if got := p.send(0, 0, []int{1, 2, 1}[k], 1e6); !near(got, want) {
			t.Errorf("through the uplink, message %d arrives at %v, want %v", k, got, want)
		}
	}
}

// A lost message is repeated after the timeout. The number of losses is geometric and a function of
// the key.
func TestLosses(t *testing.T) {
	const p, rounds = 0.3, 20000
	r := route{loss: p}
	sum := 0.0
	for k := range rounds {
		n := r.losses(5, k, 2, 3, 0)
		if n != r.losses(5, k, 2, 3, 0) || n < 0 || n != math.Trunc(n) {
			t.Fatalf("%v losses of message %d", n, k)
		}
		sum += n
	}
	if mean, want := sum/rounds, p/(1-p); math.Abs(mean-want) > 5*math.Sqrt(p)/(1-p)/math.Sqrt(rounds) {
		t.Errorf("%v losses a message, want %v", mean, want)
	}
	l := mustParse(t, "{gradient_ms: 0, default: {latency_ms: 100, bandwidth_mbit: 1, loss: 0.5, timeout_ms: 700}}", 2)
	for k := range 50 {
		pt := port{id: 0, net: l, seed: 9}
		lost := l.route(0, 1).losses(9, k, 0, 1, 0)
		if got, want := pt.send(0, k, 1, 1e6), 1+lost*1.7+0.1; !near(got, want) {
			t.Errorf("with %v losses: %v, want %v", lost, got, want)
		}
	}
}

// The messages of an iteration on one link are lost independently: of messages of which half are
// lost, both are lost in a quarter of the iterations.
func TestLossesOfAnIterationAreIndependent(t *testing.T) {
	const rounds = 20000
	l := mustParse(t, "{gradient_ms: 0, default: {latency_ms: 0, loss: 0.5, timeout_ms: 1000}}", 2)
	pt := port{id: 0, net: l, seed: 9}
	both := 0
	for k := range rounds {
		now := 1e6 * float64(k)
		first := pt.send(now, k, 1, 0)
		if second := pt.send(first, k, 1, 0); first > now && second > first {
			both++
		}
	}
	if share := float64(both) / rounds; math.Abs(share-0.25) > 5*math.Sqrt(0.25*0.75/rounds) {
		t.Errorf("both messages were lost in a share of %v, want 0.25", share)
	}
}

// The example in docs/links.md parses, and its values mean what the page says.
func TestLinksOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/links.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/links.md has no example")
	}
	l := mustParse(t, example, 10)
	if got, want := l.route(1, 6), (route{0.09, 0.2, 1e7, 0.01}); got != want {
		t.Errorf("from eu to us %+v, want %+v", got, want)
	}
	if got, want := l.route(5, 0).latency, 0.07; got != want {
		t.Errorf("between 0 and 5 %v s, want %v", got, want)
	}
	if got, want := l.route(9, 3).latency, 0.12; got != want || l.gradient.Mean[9] != 0.06 || l.uplink[9] != 1e6 ||
		l.uplink[8] != 2e7 {
		t.Errorf("agent 9: latency %v, want %v; gradient %v, uplink %v", got, want, l.gradient.Mean[9], l.uplink[9])
	}
	_, err = Parse([]byte(example), 8, 1)
	if err == nil || !strings.Contains(err.Error(), "they are 0 to 7") {
		t.Errorf("with 8 agents: %v", err)
	}
}

// The error of a bad file lists every fault with its position.
func TestBadLinks(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unknown key": {"{gradient_ms: 1, defualt: {}}", []string{`key "defualt" does not exist`,
			`did you mean "default"`}},
		"unknown inner key": {"{gradient_ms: 1, zones: [{name: a, agents: 0, latncy_ms: 3}], default: " +
			"{bandwith_mbit: 1}}", []string{`"zones[0].latncy_ms"`, `"latency_ms"`, `"default.bandwith_mbit"`,
			`"bandwidth_mbit"`}},
		"no gradient": {"default: {latency_ms: 1}", []string{"gradient_ms: is missing"}},
		"negative": {"{gradient_ms: -1, default: {latency_ms: -5, bandwidth_mbit: 0, timeout_ms: .nan}}",
			[]string{"gradient_ms: is -1", "default.latency_ms: is -5", "default.bandwidth_mbit: is 0", "leave it out",
				"default.timeout_ms: is NaN"}},
		"total loss": {"{gradient_ms: 1, default: {loss: 1}}", []string{"default.loss: is 1", "nothing would arrive"}},
		"negative loss": {"{gradient_ms: 1, pairs: [{pair: [0, 1], loss: -0.1}]}",
			[]string{"pairs[0].loss: is -0.1"}},
		"unknown agent": {"{gradient_ms: 1, agents: [{agents: 0-5}], pairs: [{pair: [1, 9]}]}",
			[]string{"agents[0]: names agent 5", "they are 0 to 4", "pairs[0]: names agent 9"}},
		"unreadable agent": {"{gradient_ms: 1, agents: [{agents: first}]}", []string{`"first" names no agents`}},
		"no agents":        {"{gradient_ms: 1, agents: [{loss: 0.1}]}", []string{"agents[0]: names no agents"}},
		"one agent pair":   {"{gradient_ms: 1, pairs: [{pair: [1, 1]}]}", []string{"pairs[0]: pair is [1 1]"}},
		"two zones": {"{gradient_ms: 1, zones: [{name: a, agents: 0-2}, {name: a, agents: 2-3}]}",
			[]string{"empty or taken", "agent 2 is in zone"}},
		"unknown zone": {"{gradient_ms: 1, zones: [{name: europe, agents: 0-2}, {name: us, agents: 3}], between: " +
			"[{zones: [europ, us]}]}", []string{`no zone is named "europ"`, `did you mean "europe"`}},
		"law": {"{gradient_ms: 1, gradient_law: gamma(2), slowness: 'linear(0.5)'}",
			[]string{`gradient_law: is "gamma(2)"`, "lognormal", `slowness: is "linear(0.5)"`}},
		"slow at no time": {"{gradient_ms: 0, slowness: linear(3)}",
			[]string{`slowness: is "linear(3)"`, "leave it out"}},
		"no zones":        {"{gradient_ms: 1, between: [{zones: [a, b]}]}", []string{"since the file has no zones"}},
		"text in a link":  {"gradient_ms: 1\ndefault:\n  latency_ms: abc\n", []string{"line 3: latency_ms abc: "}},
		"no map":          {"- 3", []string{"key: value"}},
		"text for number": {"{gradient_ms: fast}", []string{"fast"}},
		"outages": {"{gradient_ms: 1, outages: [{agents: 1}, {agents: 9, from_s: 1}, " +
			"{agents: 0, from_s: 3, to_s: 2}, {agents: 2-3, from_s: 1, to_s: 5}, {agents: 3, from_s: 5}, " +
			"{from_s: -1}]}",
			[]string{"outages[0]: has no from_s", "outages[1]: names agent 9", "outages[2]: ends at 2 s",
				"outages[4]: agent 3 has another", "outages[5].from_s: is -1", "outages[5]: names no agents"}},
		"empty":   {"", []string{"gradient_ms: is missing"}},
		"deep":    {"zones: " + strings.Repeat("[", 50_000), []string{"nests brackets more than"}},
		"anchors": {"a: &a [1]\nzones: [*a, *a]", []string{"has an anchor or an alias"}},
		"huge ranges": {"{gradient_ms: 1, agents: [{agents: [" + strings.Repeat("0-999999999, ", 5000) + "0]}]}",
			[]string{"names agent 5, but the run has 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.text), 5, 1)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, expected it to say %q", err, want)
				}
			}
		})
	}
}

// An agent goes on at the end of the outage that has begun when it ends an iteration.
func TestOutages(t *testing.T) {
	l := mustParse(t, "{gradient_ms: 4000, outages: [{agents: 1, from_s: 6, to_s: 20}, "+
		"{agents: [0, 1], from_s: 25}]}", 2)
	c := NewClock(l, 1, 1, nil)
	c.Pause(l.Outages())
	for k, want := range []float64{4, 20, 24, math.Inf(1)} {
		c.Gradient(k)
		if got := c.End(); got != want {
			t.Errorf("iteration %d ends at %v s, want %v", k, got, want)
		}
	}
}
