package config

import (
	"maps"
	"reflect"

	"fspda/internal/rng"
	"fspda/train/algo"
)

// settings returns the settings from which the algorithm of a run is made. Before the graph is
// made, they describe two agents.
func (s *Setup) settings() algo.Settings {
	r := s.Config.settings(s.method)
	r.Eta, r.Descent, r.Tensors, r.Draw = s.Config.Eta, s.Descent(), s.Tensors, drawDirection(s.Config.Seed)
	if s.Process == nil {
		return r
	}
	r.Agents, r.RoundSteps = s.Graph.N, s.roundSteps()
	if len(s.Graph.Edges) > 0 {
		r.Rate = s.Process.Rate(0)
	}
	if d := s.Directed(); d != nil {
		r.Regular = s.regular(d)
	}
	return r
}

// settings returns the settings of a method that follow from the configuration alone.
func (r *Resolved) settings(m method) algo.Settings {
	return algo.Settings{Values: r.values(m.keys()), Momentum: r.Momentum, Nesterov: r.optimizer().Nesterov, Agents: 2,
		Density: r.Density, RoundSteps: max(1, r.LocalSteps), Rate: 1, Regular: true}
}

// optimizerSettings returns the settings from which an optimizer is made, for a model of that size.
func (r *Resolved) optimizerSettings(o Optimizer, of ModelSize) algo.Settings {
	return algo.Settings{Values: r.values(o.Keys), Momentum: r.Momentum, Alpha: r.Alpha, Tensors: of.Tensors,
		Undecayed: of.Undecayed}
}

// values returns the values of keys, and of the settings of the method's and the optimizer's own.
func (r *Resolved) values(keys []string) map[string]any {
	values := map[string]any{}
	for _, key := range keys {
		if v, ok := r.value(key); ok {
			values[key] = v
		}
	}
	maps.Copy(values, r.Params)
	return values
}

// value returns the value of a key, and whether r has one.
func (r *Resolved) value(key string) (v any, ok bool) {
	if at := settled[key]; at != nil {
		v = reflect.ValueOf(r).Elem().FieldByIndex(at).Interface()
		if name, ok := v.(Chosen); ok {
			v = string(name)
		}
		return v, true
	}
	if _, ok := Lookup(key); !ok || fields[key] != nil {
		return nil, false
	}
	return r.given.Value(key), true // not settled: another package declares it
}

// drawDirection returns the draws of powergossip: normal numbers, equal at both ends of an edge.
func drawDirection(seed uint64) func(dst []float32, t, i, j, block int) {
	return func(dst []float32, t, i, j, block int) {
		s := rng.New(seed, "mask", uint64(t), uint64(i), uint64(j), uint64(block))
		for k := range dst {
			dst[k] = float32(s.Norm())
		}
	}
}
