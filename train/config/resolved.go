package config

import "reflect"

// Number is the type of a number that may be auto, before and after auto is resolved.
type Number interface{ AutoFloat | float64 }

// Chosen is a name that is not auto: the value of a setting, or the name for which auto stands. It
// is empty in a run that has no use for the setting.
type Chosen string

// Resolved holds the settings of a run after the defaults of its method, and auto, are resolved.
// [Config.Resolve] makes it, and everything that trains reads it. The files of the data set and the
// device are opened by their keys of [Config] before, so that those are not here.
type Resolved struct {
	DataKeys
	NetworkKeys
	LengthKeys
	DualKeys[float64]
	AveragingKeys[float64, Chosen]
	CompressionKeys[Chosen]
	AsyncKeys[float64]
	StepKeys[Chosen]
	ScheduleKeys
	ExchangeKeys[Chosen]
	BatchKeys
	ComputeKeys
	EvaluationKeys[Chosen]
	OutputKeys
	ExecutionKeys

	given Config // The configuration that was resolved.
}

// resolving returns c before any auto is resolved: such names are empty, and such numbers zero.
func resolving(c Config) Resolved {
	r := Resolved{given: c}
	r.sections(reflect.ValueOf(&c).Elem(), func(ours, theirs reflect.Value) {
		switch v := theirs.Interface().(type) {
		case AutoFloat:
			if !v.Auto {
				ours.SetFloat(v.V)
			}
		case string:
			if v != auto {
				ours.SetString(v)
			}
		default:
			ours.Set(theirs)
		}
	})
	return r
}

// Stored returns the configuration that resolves to r, which run folders hold. A setting that the
// run has no use for is as it was given.
func (r Resolved) Stored() Config {
	c := r.given
	c.explicit = nil // A resolved configuration can be resolved again.
	r.sections(reflect.ValueOf(&c).Elem(), func(ours, theirs reflect.Value) {
		switch v := ours.Interface().(type) {
		case float64:
			if theirs.Kind() == reflect.Float64 {
				theirs.SetFloat(v)
			} else {
				theirs.Set(reflect.ValueOf(AutoFloat{V: v}))
			}
		case Chosen:
			if v != "" {
				theirs.SetString(string(v))
			}
		default:
			theirs.Set(ours)
		}
	})
	if r.Rho == 0 {
		c.Rho = r.given.Rho
	}
	return c
}

// sections calls each for all keys of r and for the same keys of a Config.
func (r *Resolved) sections(config reflect.Value, each func(ours, theirs reflect.Value)) {
	mine := reflect.ValueOf(r).Elem()
	for k := range mine.NumField() {
		name := mine.Type().Field(k).Name
		ours, theirs := mine.Field(k), config.FieldByName(name)
		if name == "given" {
			continue
		}
		for i := range ours.NumField() {
			each(ours.Field(i), theirs.Field(i))
		}
	}
}

// Network holds the settings that a network is made of, resolved: see [Config.Network].
type Network struct {
	NetworkKeys
	StepKeys[Chosen]
	ScheduleKeys
	Recompute string
}

// Network resolves the settings that a network is made of, before the run is: its L2 term depends
// on the optimizer. The error names keys of the optimizer.
func (c Config) Network() (Network, error) {
	c.FoldNames()
	m, ok := c.findMethod()
	if !ok { // of another program, in whose run folder c lies: its optimizer is resolved
		m.traits.Optimizers = Optimizers()
	}
	r := resolving(c)
	_, err := r.settleOptimizer(m)
	return Network{r.NetworkKeys, r.StepKeys, r.ScheduleKeys, r.Recompute}, err
}

// L2 is the coefficient of the L2 term of the loss: weight_decay unless that is decoupled.
func (n Network) L2() float64 { return l2(n.StepKeys) }

// L2 is the coefficient of the L2 term of the objective: weight_decay unless that is decoupled.
func (r Resolved) L2() float64 { return l2(r.StepKeys) }

func l2(k StepKeys[Chosen]) float64 {
	if k.DecayForm == decayDecoupled {
		return 0
	}
	return k.WeightDecay
}
