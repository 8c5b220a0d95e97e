package cudnn

import (
	"fmt"
	"slices"
	"strings"
)

// Engine is one of the library's engines for a graph, with its settings. With the same graph and
// library version it gives the same plan.
type Engine struct {
	Index int64  `json:"index"`
	Knobs []Knob `json:"knobs,omitempty"` // sorted by type
}

// Knob is a setting of an engine.
type Knob struct {
	Type  int32 `json:"type"`
	Value int64 `json:"value"`
}

func (e Engine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "engine %d", e.Index)
	for _, k := range e.Knobs {
		fmt.Fprintf(&b, " %d=%d", k.Type, k.Value)
	}
	return b.String()
}

// valid reports whether a stored engine is possible.
func (e Engine) valid() bool { return e.Index >= 0 && len(e.Knobs) <= maxKnobs }

// offer is an engine that a heuristic recommends.
type offer struct {
	config    Node
	engine    Engine
	numerical []int32
	behaviour []int32
}

const (
	maxKnobs  = 64 // cuDNN has 46 knob types
	maxNotes  = 32 // cuDNN has 10 notes
	maxOffers = 64 // each heuristic is asked for at most as many
)

// heuristics are queried in this order until one recommends a usable engine. The last one supports
// everything, but may be slow.
var heuristics = []int32{HeuristicA, HeuristicInstant, HeuristicFallback}

// offers returns the engines that a heuristic recommends, best first, without duplicates.
func (n *nodes) offers(graph Node, mode int32, on target) (all []offer) {
	for _, config := range n.recommendations(graph, mode, on) {
		o, ok := n.read(config)
		if ok && !slices.ContainsFunc(all, func(p offer) bool { return p.engine.String() == o.engine.String() }) {
			all = append(all, o)
		}
	}
	return all
}

// recommendations returns the configurations that a heuristic recommends. A heuristic that fails,
// for example because it does not know the graph, recommends none.
func (n *nodes) recommendations(graph Node, mode int32, on target) []Node {
	if n.err != nil {
		return nil
	}
	h := n.create(HeuristicNode)
	set(n, h, HeuristicGraph, NodeValue, graph)
	set(n, h, HeuristicMode, HeuristicValue, mode)
	on.set(n, h, HeuristicDevice)
	n.finalize(h)
	found := n.getNodes(h, HeuristicResults, EngineConfigNode, maxOffers)
	n.err = nil
	return found
}

// read reads the settings and notes of an engine. ok is false if they cannot be read.
func (n *nodes) read(config Node) (o offer, ok bool) {
	o.config = config
	engines := n.getNodes(config, ConfigEngine, EngineNode, 1)
	if len(engines) == 1 {
		o.engine.Index = getOne[int64](n, engines[0], EngineIndex, Int64Value)
		o.numerical = get(n, engines[0], EngineNumerical, NumericalValue, make([]int32, maxNotes))
		o.behaviour = get(n, engines[0], EngineBehaviour, BehaviourValue, make([]int32, maxNotes))
	}
	for _, k := range n.getNodes(config, ConfigKnobs, KnobNode, maxKnobs) {
		o.engine.Knobs = append(o.engine.Knobs, Knob{getOne[int32](n, k, KnobType, KnobValue),
			getOne[int64](n, k, KnobChoice, Int64Value)})
	}
	slices.SortFunc(o.engine.Knobs, func(a, b Knob) int { return int(a.Type - b.Type) })
	ok = n.err == nil && len(engines) == 1
	n.err = nil
	return o, ok
}

// config creates the configuration of a stored engine.
func (n *nodes) config(graph Node, e Engine, on target) Node {
	engine := n.create(EngineNode)
	set(n, engine, EngineGraph, NodeValue, graph)
	set(n, engine, EngineIndex, Int64Value, e.Index)
	on.set(n, engine, EngineDevice)
	n.finalize(engine)
	c := n.create(EngineConfigNode)
	set(n, c, ConfigEngine, NodeValue, engine)
	var knobs []Node
	for _, k := range e.Knobs {
		d := n.create(KnobNode)
		set(n, d, KnobType, KnobValue, k.Type)
		set(n, d, KnobChoice, Int64Value, k.Value)
		knobs = append(knobs, n.finalize(d))
	}
	if len(knobs) > 0 {
		set(n, c, ConfigKnobs, NodeValue, knobs...)
	}
	return n.finalize(c)
}

// rounds reports whether an engine must not be used: because it rounds more than m allows, or
// because its order of summation varies and the run must be deterministic. Sums of 16-bit numbers
// are float32 everywhere in fspda, and FMA excludes tensor cores.
func (o offer) unusable(m Math, deterministic bool) bool {
	has := func(note int32) bool { return slices.Contains(o.numerical, note) }
	return has(NoteDownConvert) || has(NoteReducedReduction) || m == FMA && has(NoteTensorCore) || deterministic &&
		has(NoteNondeterministic)
}

// compiles reports whether the engine compiles its kernel when a plan is made, which takes long.
func (o offer) compiles() bool { return slices.Contains(o.behaviour, NoteCompiles) }
