package algo

import "fmt"

// Settings are what an algorithm is made of: the values of the method's keys and parameters, and
// facts of the run. The traits of a method are asked for before the graph of a run is made: then
// the facts belong to two agents.
type Settings struct {
	// Values are the values of the method's keys and of its own parameters, by name.
	Values map[string]any
	// Descent is the optimizer of the run, with its momentum and its weight decay.
	Descent Descent
	// Momentum is the factor of a heavy ball or of Nesterov's momentum; Nesterov says that it is one.
	Momentum float64
	Nesterov bool
	// Eta is the gain of the dual at the largest step size.
	Eta float64
	// RoundSteps is the number of local steps of a round, or its mean if a coin ends rounds.
	RoundSteps int
	// Rate is the probability that an edge is active in an iteration, the same for all edges of a
	// process that has all edges or none.
	Rate float64
	// Density is the share of the coordinates of a mask.
	Density float64
	// Agents is the number of agents.
	Agents int
	// Regular says that each agent sends to as many as it receives from, on a directed graph.
	Regular bool
	// Alpha is the largest step size of the run.
	Alpha float64
	// Tensors lists the tensors of the model, in order.
	Tensors []Tensor
	// Undecayed lists the coordinates without weight decay, ascending.
	Undecayed []uint32
	// Draw writes normally distributed numbers of direction block of the edge {i, j} at its exchange
	// number t, the same at both ends.
	Draw func(dst []float32, t, i, j, block int)
}

// Param returns a number. It panics if the method declares no number of this name.
func (s Settings) Param(name string) float64 {
	if n, whole := s.Values[name].(int); whole {
		return float64(n)
	}
	return value[float64](s, name, "a number")
}

// Whole returns a whole number. It panics if the method declares none of this name.
func (s Settings) Whole(name string) int { return value[int](s, name, "a whole number") }

// Choice returns a name. It panics if the method declares no choice of this name.
func (s Settings) Choice(name string) string { return value[string](s, name, "a name") }

// Flag returns a truth value. It panics if the method declares none of this name.
func (s Settings) Flag(name string) bool { return value[bool](s, name, "true or false") }

func value[T any](s Settings, name, kind string) T {
	v, ok := s.Values[name].(T)
	if !ok {
		panic(fmt.Sprintf("algo: the method declares no parameter or key %q that is %s", name, kind))
	}
	return v
}
