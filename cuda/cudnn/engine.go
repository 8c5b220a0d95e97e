package cudnn

import (
	"fmt"
	"slices"
	"strings"
)

// Engine is one of the library's for a graph, with its settings. Together with the graph and the
// library's version it makes the same plan again.
type Engine struct {
	Index int64  `json:"index"`
	Knobs []Knob `json:"knobs,omitempty"` // by type
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

// sound tells whether an engine that was kept can be one.
func (e Engine) sound() bool { return e.Index >= 0 && len(e.Knobs) <= mostKnobs }

// offer is an engine that the library offers.
type offer struct {
	config    Node
	engine    Engine
	numerical []int32
	behaviour []int32
}

const (
	mostKnobs  = 64 // there are 46 types
	mostNotes  = 32 // there are 10
	mostOffers = 64 // of a heuristic
)

// heuristics are asked one after the other until one advises something that may be taken. The last
// knows what computes everything, if slowly.
var heuristics = []int32{HeuristicA, HeuristicInstant, HeuristicFallback}

// offers are what a heuristic advises, best first. None is there twice.
func (n *nodes) offers(graph Node, mode int32, on place) (all []offer) {
	for _, config := range n.advice(graph, mode, on) {
		o, ok := n.read(config)
		if ok && !slices.ContainsFunc(all, func(p offer) bool { return p.engine.String() == o.engine.String() }) {
			all = append(all, o)
		}
	}
	return all
}

// advice is what one heuristic advises. A heuristic that fails, as one does that knows nothing of a
// graph, advises nothing.
func (n *nodes) advice(graph Node, mode int32, on place) []Node {
	if n.err != nil {
		return nil
	}
	h := n.create(HeuristicNode)
	set(n, h, HeuristicGraph, NodeValue, graph)
	set(n, h, HeuristicMode, HeuristicValue, mode)
	on.on(n, h, HeuristicDevice)
	n.finalize(h)
	found := n.getNodes(h, HeuristicResults, EngineConfigNode, mostOffers)
	n.err = nil
	return found
}

// read reads what an engine is. ok is false for one that cannot be read.
func (n *nodes) read(config Node) (o offer, ok bool) {
	o.config = config
	engines := n.getNodes(config, ConfigEngine, EngineNode, 1)
	if len(engines) == 1 {
		o.engine.Index = getOne[int64](n, engines[0], EngineIndex, Int64Value)
		o.numerical = get(n, engines[0], EngineNumerical, NumericalValue, make([]int32, mostNotes))
		o.behaviour = get(n, engines[0], EngineBehaviour, BehaviourValue, make([]int32, mostNotes))
	}
	for _, k := range n.getNodes(config, ConfigKnobs, KnobNode, mostKnobs) {
		o.engine.Knobs = append(o.engine.Knobs, Knob{getOne[int32](n, k, KnobType, KnobValue),
			getOne[int64](n, k, KnobChoice, Int64Value)})
	}
	slices.SortFunc(o.engine.Knobs, func(a, b Knob) int { return int(a.Type - b.Type) })
	ok = n.err == nil && len(engines) == 1
	n.err = nil
	return o, ok
}

// config makes an engine that was kept.
func (n *nodes) config(graph Node, e Engine, on place) Node {
	engine := n.create(EngineNode)
	set(n, engine, EngineGraph, NodeValue, graph)
	set(n, engine, EngineIndex, Int64Value, e.Index)
	on.on(n, engine, EngineDevice)
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

// rounds tells whether an engine rounds more than may be, or sums in another order each time where
// bits are to repeat. Sums of 16 bits are float32 in all of fspda; and where numbers are to be
// multiplied as they are, tensor cores are out.
func (o offer) rounds(m Math, repeat bool) bool {
	has := func(note int32) bool { return slices.Contains(o.numerical, note) }
	return has(NoteDownConvert) || has(NoteReducedReduction) || m == FMA && has(NoteTensorCore) || repeat &&
		has(NoteNondeterministic)
}

// compiles tells whether a plan is compiled when it is made, which takes a while.
func (o offer) compiles() bool { return slices.Contains(o.behaviour, NoteCompiles) }
