package algo

import (
	"fmt"

	"fspda/device"
)

// ProxGPDA is the proximal gradient primal-dual algorithm (Hong, Hajinezhad and Zhao 2017) on a
// static graph, with penalty Rho and the signless proximal term that makes its step local. With L
// the Laplacian of the graph and deg the agent's degree,
//
//	x^{t+1}      = x^t - (g^t + lambda^t + Rho·L x^t)/(2·Rho·deg)
//	lambda^{t+1} = lambda^t + Rho·L x^{t+1}
//
// The dual uses the new point, whose values travel in the next iteration anyway: so that is where
// its step is made, and the lambda that is remembered between iterations t-1 and t is lambda^{t-1}.
// The first iteration makes none.
//
// There is no step size but 1/(2·Rho·deg); it converges for Rho above L_g/(2·deg) at every agent,
// L_g the Lipschitz constant of the gradient. Σ lambda is zero, and with exact gradients the agents
// reach the optimum with lambda = ∇F - ∇f_i. On a graph whose degrees differ, the mean model does
// not follow the mean gradient on its way.
type ProxGPDA struct {
	Rho float64
}

var (
	_ Tracker   = ProxGPDA{}
	_ Scratcher = ProxGPDA{}
)

const proxLambda = 0 // in State.Aux

func (ProxGPDA) Name() string { return "prox-gpda" }

func (ProxGPDA) Aux() []string { return []string{"lambda"} }

// Tracked is lambda, which tends to ∇F - ∇f_i.
func (ProxGPDA) Tracked(alpha, eta float64) (string, float64) { return "lambda", 1 }

func (ProxGPDA) NewScratch(func() device.Vector) any { return &sentModel{} }

func (a ProxGPDA) Local(s *State, r *Round) error {
	if len(r.Links) == 0 {
		return &NoEdgeError{Algorithm: a.Name(), T: r.T, Self: r.Self}
	}
	m := s.Scratch.(*sentModel)
	m.x = s.SendModel(r)
	return r.Grad(s.g, m.x)
}

func (a ProxGPDA) step(r *Round) float64 { return 1 / (2 * a.Rho * float64(len(r.Links))) }

// Mix moves the model in one pass, with the due step of lambda, whose part in x is as large as the
// penalty's.
func (a ProxGPDA) Mix(s *State, r *Round) error {
	dual := a.Rho
	if r.T == 0 {
		dual = 0
	}
	step, lambda := a.step(r), s.Aux[proxLambda]
	s.CombineDifferences(
		r,
		0,
		UnitWeight,
		device.Term{A: -step * (a.Rho + dual), V: s.X},
		[]device.Term{
			{A: 1, V: s.Scratch.(*sentModel).x},
			{A: -step, V: s.g},
			{A: -step, V: lambda},
		},
		device.Term{A: dual, V: lambda},
	)
	return nil
}

// LonelyError reports an agent without an edge whose algorithm takes its step size from its degree.
type NoEdgeError struct {
	Algorithm string
	T, Self   int
}

func (e *NoEdgeError) Error() string {
	return fmt.Sprintf(
		"algo: %s: agent %d has no edge in iteration %d: its step is 1/(2·rho·degree), so every agent needs its edges in every iteration; use the edge process full and two agents or more",
		e.Algorithm,
		e.Self,
		e.T,
	)
}
