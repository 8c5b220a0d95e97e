package simnet

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/internal/bounded"
)

// linksFile is a file of simulated links. The more specific entry wins, in the order default, zones
// (both ends in the zone), between (one end in each of two zones), agents (either end; if both ends
// have an entry, the slower value), pairs. In a list the later entry wins.
type linksFile struct {
	Default  linkSpec      `yaml:"default"`
	Uplink   *float64      `yaml:"uplink_mbit"`
	Gradient *float64      `yaml:"gradient_ms"`
	Law      string        `yaml:"gradient_law"`
	Slowness string        `yaml:"slowness"`
	Zones    []zoneSpec    `yaml:"zones"`
	Between  []betweenSpec `yaml:"between"`
	Agents   []agentSpec   `yaml:"agents"`
	Pairs    []pairSpec    `yaml:"pairs"`
	Outages  []outageSpec  `yaml:"outages"`
}

// linkSpec holds the settings of a link; nil: not set.
type linkSpec struct {
	Latency   *float64 `yaml:"latency_ms"`
	Bandwidth *float64 `yaml:"bandwidth_mbit"`
	Loss      *float64 `yaml:"loss"`
	Timeout   *float64 `yaml:"timeout_ms"`
}

type zoneSpec struct {
	Name   string    `yaml:"name"`
	Agents agentList `yaml:"agents"`
	Link   linkSpec  `yaml:",inline"`
}

type betweenSpec struct {
	Zones []string `yaml:"zones"`
	Link  linkSpec `yaml:",inline"`
}

type agentSpec struct {
	Agents   agentList `yaml:"agents"`
	Gradient *float64  `yaml:"gradient_ms"`
	Uplink   *float64  `yaml:"uplink_mbit"`
	Link     linkSpec  `yaml:",inline"`
}

type pairSpec struct {
	Pair agentList `yaml:"pair"`
	Link linkSpec  `yaml:",inline"`
}

// agentList names agents: 3, 0-4, [0, 2, 7-9]. Ranges are kept as such: a file of a few bytes may
// name many agents.
type agentList []agentRange

// agentRange is the agents first to last.
type agentRange struct{ first, last int }

func (r agentRange) String() string {
	if r.first == r.last {
		return strconv.Itoa(r.first)
	}
	return fmt.Sprintf("%d-%d", r.first, r.last)
}

func (a agentList) all() (agents []int) {
	for _, r := range a {
		for i := r.first; i <= r.last; i++ {
			agents = append(agents, i)
		}
	}
	return agents
}

const (
	maxValue = 1e9  // largest time in ms and bandwidth in Mbit/s: keeps virtual time finite
	maxLoss  = 0.99 // largest loss: hardly a message would arrive with more
)

// UnmarshalYAML reads a number, a range, or a list of these.
func (a *agentList) UnmarshalYAML(decode func(any) error) error {
	var v any
	if err := decode(&v); err != nil {
		return err
	}
	parts, ok := v.([]any)
	if !ok {
		parts = []any{v}
	}
	for _, p := range parts {
		for word := range strings.SplitSeq(fmt.Sprint(p), ",") {
			if err := a.add(strings.TrimSpace(word)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *agentList) add(word string) error {
	from, to, isRange := strings.Cut(word, "-")
	first, err := strconv.Atoi(strings.TrimSpace(from))
	last := first
	if err == nil && isRange {
		last, err = strconv.Atoi(strings.TrimSpace(to))
	}
	if err != nil || last < first {
		return fmt.Errorf("%q names no agents: write a number, a range such as 0-4, or a list of these", word)
	}
	*a = append(*a, agentRange{first, last})
	return nil
}

// Parse reads a file of simulated links for n agents. The seed draws the factors of slowness
// random. The error lists all faults of the file, each with its position in it.
func Parse(text []byte, n int, seed uint64) (*Links, error) {
	text = bounded.Unmarked(text)
	if err := bounded.Nesting(text); err != nil {
		return nil, err
	}
	var tree yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(text, &tree, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("expected YAML of the form 'key: value': %w", err)
	}
	if err := knownKeys("", tree, reflect.TypeFor[linksFile]()); err != nil {
		return nil, err
	}
	f := linksFile{Law: "constant", Slowness: "equal"}
	if len(tree) > 0 {
		if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&f); err != nil {
			return nil, wrongKind(err)
		}
	}
	r := linksReader{Links: &Links{text: text, n: n, base: f.Default, between: map[[2]int]linkSpec{},
		pairs: map[[2]int]linkSpec{}, zone: slices.Repeat([]int{-1}, n), at: make([]linkSpec, n)}}
	r.link("default", f.Default)
	r.computing(&f, seed)
	names := r.zones(f.Zones)
	for k, b := range f.Between {
		r.addBetween(fmt.Sprintf("between[%d]", k), b, names)
	}
	for k, a := range f.Agents {
		r.addAgents(fmt.Sprintf("agents[%d]", k), a)
	}
	for k, p := range f.Pairs {
		r.addPair(fmt.Sprintf("pairs[%d]", k), p)
	}
	for k, o := range f.Outages {
		r.addOutages(fmt.Sprintf("outages[%d]", k), o)
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return r.Links, nil
}

// linksReader builds Links from a file and collects the faults of the file.
type linksReader struct {
	*Links
	errs []error
}

func (r *linksReader) bad(where, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(where+": "+format, args...))
}

// number checks a number that may be missing.
func (r *linksReader) number(where, key string, v *float64, ok func(v float64) bool, want string) {
	if v != nil && !ok(*v) { // NaN passes no comparison
		r.bad(strings.TrimPrefix(where+"."+key, "."), "is %v, expected %s", *v, want)
	}
}

func isTime(v float64) bool { return v >= 0 && v <= maxValue }
func isRate(v float64) bool { return v >= 1e-6 && v <= maxValue }

const (
	wantTime = "milliseconds, from 0 to 1e9"
	wantRate = "Mbit/s, from 1e-6 to 1e9; leave it out where there is no limit"
)

func (r *linksReader) link(where string, s linkSpec) {
	r.number(where, "latency_ms", s.Latency, isTime, wantTime)
	r.number(where, "timeout_ms", s.Timeout, isTime, wantTime)
	r.number(where, "bandwidth_mbit", s.Bandwidth, isRate, wantRate)
	r.number(where, "loss", s.Loss, func(v float64) bool { return v >= 0 && v <= maxLoss },
		fmt.Sprintf("the share of messages that are lost, from 0 to %v: with more, nothing would arrive; a link "+
			"that never works is no edge of the graph", maxLoss))
}

// agents checks a list of agents.
func (r *linksReader) agents(where string, list agentList) bool {
	if len(list) == 0 {
		r.bad(where, "names no agents: say agents: 0-4, or a list")
		return false
	}
	for _, named := range list {
		if named.last >= r.n {
			r.bad(where, "names agent %d, but the run has %d: they are 0 to %d", max(named.first, r.n), r.n, r.n-1)
			return false
		}
	}
	return true
}

// computing sets the compute times and the uplinks.
func (r *linksReader) computing(f *linksFile, seed uint64) {
	r.uplink, r.gradient.Mean = slices.Repeat([]float64{math.Inf(1)}, r.n), make([]float64, r.n)
	r.number("", "gradient_ms", f.Gradient, isTime, wantTime)
	r.number("", "uplink_mbit", f.Uplink, isRate, wantRate)
	if f.Gradient == nil {
		r.bad("gradient_ms", "is missing: say how many milliseconds a gradient takes; 0 counts the network alone")
		return
	}
	r.unit = *f.Gradient / 1e3
	var err error
	if r.gradient.Distribution, err = ParseDistribution(f.Law); err != nil {
		r.bad("gradient_law", "is %q, %v", f.Law, err)
	}
	slow, err := ParseSlowness(f.Slowness, r.n, seed)
	if err != nil {
		r.bad("slowness", "is %q, %v", f.Slowness, err)
		return
	}
	if *f.Gradient == 0 && strings.TrimSpace(f.Slowness) != "equal" {
		r.bad("slowness", "is %q, which multiplies gradient_ms 0: leave it out, or say how long a gradient takes",
			f.Slowness)
	}
	for i := range r.n {
		r.gradient.Mean[i] = slow[i] * r.unit
		if f.Uplink != nil {
			r.uplink[i] = 1e6 * *f.Uplink
		}
	}
}

// zones adds the zones and returns their indices by name.
func (r *linksReader) zones(zones []zoneSpec) map[string]int {
	names := map[string]int{}
	for k, z := range zones {
		where := fmt.Sprintf("zones[%d]", k)
		if _, taken := names[z.Name]; z.Name == "" || taken {
			r.bad(where, "its name %q is empty or taken: give each zone a name of its own", z.Name)
		}
		names[z.Name] = k
		r.inside = append(r.inside, z.Link)
		r.link(where, z.Link)
		if !r.agents(where, z.Agents) {
			continue
		}
		for _, i := range z.Agents.all() {
			if other := r.zone[i]; other >= 0 {
				r.bad(where, "agent %d is in zone %q already: an agent has one zone", i, zones[other].Name)
			}
			r.zone[i] = k
		}
	}
	return names
}

func (r *linksReader) addBetween(where string, b betweenSpec, names map[string]int) {
	r.link(where, b.Link)
	if len(b.Zones) != 2 || b.Zones[0] == b.Zones[1] {
		r.bad(where, "zones is %v, expected two different zones, such as [eu, us]", b.Zones)
		return
	}
	var at [2]int
	for k, name := range b.Zones {
		z, found := names[name]
		if !found && len(names) == 0 {
			r.bad(where, "no zone is named %q, since the file has no zones: name them with zones", name)
			return
		}
		if !found {
			known := slices.Sorted(maps.Keys(names))
			r.bad(where, "no zone is named %q%s", name, didYouMean(name, known, "the zones are"))
			return
		}
		at[k] = z
	}
	key := [2]int{min(at[0], at[1]), max(at[0], at[1])}
	r.between[key] = r.between[key].under(b.Link)
}

func (r *linksReader) addAgents(where string, a agentSpec) {
	r.link(where, a.Link)
	r.number(where, "gradient_ms", a.Gradient, isTime, wantTime)
	r.number(where, "uplink_mbit", a.Uplink, isRate, wantRate)
	if !r.agents(where, a.Agents) {
		return
	}
	for _, i := range a.Agents.all() {
		r.at[i] = r.at[i].under(a.Link)
		if a.Gradient != nil {
			r.gradient.Mean[i] = *a.Gradient / 1e3
		}
		if a.Uplink != nil {
			r.uplink[i] = 1e6 * *a.Uplink
		}
	}
}

func (r *linksReader) addPair(where string, p pairSpec) {
	r.link(where, p.Link)
	if len(p.Pair) > 0 && !r.agents(where, p.Pair) {
		return
	}
	ends := p.Pair.all()
	if len(ends) != 2 || ends[0] == ends[1] {
		r.bad(where, "pair is %v, expected two different agents, such as [0, 1]", p.Pair)
		return
	}
	key := [2]int{min(ends[0], ends[1]), max(ends[0], ends[1])}
	r.pairs[key] = r.pairs[key].under(p.Link)
}

// under returns the values of o, and the value of s where o has none.
func (s linkSpec) under(o linkSpec) linkSpec {
	pick := func(a, b *float64) *float64 {
		if b != nil {
			return b
		}
		return a
	}
	return linkSpec{pick(s.Latency, o.Latency), pick(s.Bandwidth, o.Bandwidth), pick(s.Loss, o.Loss),
		pick(s.Timeout, o.Timeout)}
}

// worse returns the slower of each pair of values.
func (s linkSpec) worse(o linkSpec) linkSpec {
	pick := func(a, b *float64, of func(a, b float64) float64) *float64 {
		switch {
		case a == nil:
			return b
		case b == nil:
			return a
		}
		v := of(*a, *b)
		return &v
	}
	return linkSpec{pick(s.Latency, o.Latency, math.Max), pick(s.Bandwidth, o.Bandwidth, math.Min),
		pick(s.Loss, o.Loss, math.Max), pick(s.Timeout, o.Timeout, math.Max)}
}

// route fills in the defaults: no latency, no bandwidth limit, no loss, a timeout of one round
// trip.
func (s linkSpec) route() route {
	n := route{rate: math.Inf(1)}
	if s.Latency != nil {
		n.latency = *s.Latency / 1e3
	}
	if s.Bandwidth != nil {
		n.rate = *s.Bandwidth * 1e6
	}
	if s.Loss != nil {
		n.loss = *s.Loss
	}
	n.timeout = 2 * n.latency
	if s.Timeout != nil {
		n.timeout = *s.Timeout / 1e3
	}
	return n
}
