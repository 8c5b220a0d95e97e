package algo

import (
	"fmt"

	"fspda/device"
	"fspda/train/setting"
)

// ProxGPDA is the proximal gradient primal-dual algorithm (Hong, Hajinezhad and Zhao 2017) on a
// static graph, with penalty Rho and the signless proximal term that makes its step local. With L
// the Laplacian of the graph and deg the agent's degree,
//
//	x^{t+1}      = x^t - (g^t + lambda^t + Rho·L x^t)/(2·Rho·deg)
//	lambda^{t+1} = lambda^t + Rho·L x^{t+1}
//
// The dual step uses the new point, whose values are sent in the next iteration anyway. So the dual
// step is delayed to the next iteration: between iterations t-1 and t the agent stores
// lambda^{t-1}, and the first iteration has no dual step.
//
// The step size is 1/(2·Rho·deg). The method converges for Rho > L_g/(2·deg) at every agent, L_g
// the Lipschitz constant of the gradient. Invariant: Σ lambda = 0. With exact gradients the agents
// reach the optimum with lambda = ∇F - ∇f_i. On a graph with unequal degrees, the mean model does
// not follow the mean gradient.
type ProxGPDA struct {
	Rho float64
}

var rho = setting.Key{Name: "rho", Topic: "method", Default: setting.AutoFloat{Auto: true},
	Range: "(0, inf)", Want: "a penalty above 0, or auto",
	Help: "prox-gpda: penalty; its step is 1/(2 rho degree); auto makes alpha the largest of these steps"}

var proxGPDA = Method{Name: "prox-gpda", Keys: []setting.Key{rho}, Check: proxStable,
	New: func(s Settings) Algorithm { return ProxGPDA{Rho: s.Param("rho")} }}

// proxStable refuses a single agent: the step size 1/(2·rho·degree) needs neighbours.
func proxStable(r Run) ([]string, error) {
	if r.Settings().Agents == 1 {
		return nil, setting.Invalid("agents", 1,
			"prox-gpda takes its step size from the number of neighbours: use 2 or more, or sgd")
	}
	return nil, nil
}

const proxLambda = 0 // in State.Aux

func (ProxGPDA) Name() string { return "prox-gpda" }

func (ProxGPDA) Traits() Traits {
	return Traits{
		Memory:     Memory{Aux: []string{"lambda"}, Tracked: Tracked{"lambda", unitLimit}, NewScratch: newSentModel},
		Exchange:   Exchange{Edges: WholeGraph},
		Needs:      Needs{Exact: true, Constant: true},
		Membership: Membership{Regroup: restart(proxLambda)},
		About:      About{"the model", "2·v·d·|E_t|", "1", exactOnSkew, staticGraph, "Hong, Hajinezhad and Zhao 2017"},
	}
}

// unitLimit is the multiple of a vector that tends to ∇F - ∇f_i.
func unitLimit(_, _ float64) float64 { return 1 }

func (a ProxGPDA) Local(s *State, r *Round) error {
	if len(r.Links) == 0 {
		return &NoEdgeError{Algorithm: a.Name(), T: r.T, Self: r.Self}
	}
	m := s.Scratch.(*sentModel)
	m.x = s.SendModel(r)
	return r.Grad(s.g, m.x)
}

func (a ProxGPDA) step(r *Round) float64 { return 1 / (2 * a.Rho * float64(len(r.Links))) }

// Mix updates the model in one pass, including the delayed step of lambda, whose contribution to x
// equals the penalty's.
func (a ProxGPDA) Mix(s *State, r *Round) error {
	dual := a.Rho
	if r.T == 0 {
		dual = 0
	}
	step, lambda := a.step(r), s.Aux[proxLambda]
	base := []device.Term{{A: 1, V: s.Scratch.(*sentModel).x}, {A: -step, V: s.g}, {A: -step, V: lambda}}
	s.CombineDifferences(r, 0, UnitWeight, device.Term{A: -step * (a.Rho + dual), V: s.X}, base,
		device.Term{A: dual, V: lambda})
	return nil
}

// NoEdgeError reports an agent without an edge, whose step size 1/(2·Rho·degree) is undefined.
type NoEdgeError struct {
	Algorithm string
	T, Self   int
}

func (e *NoEdgeError) Error() string {
	return fmt.Sprintf("algo: %s: agent %d has no edge in iteration %d: its step is 1/(2·rho·degree), so every agent "+
		"needs an edge in every iteration; use the edge process full and at least two agents", e.Algorithm, e.Self, e.T)
}
