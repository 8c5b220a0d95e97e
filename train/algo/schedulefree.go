package algo

import (
	"math"

	"fspda/device"
	"fspda/train/setting"
)

// ScheduleFree takes the place of a schedule (Defazio and others 2024). Gradients are taken at the
// model y. A second model z follows them, and the evaluated model x is a weighted mean of all z. With
// u the direction of Base at y, weight decay included,
//
//	top ← max(top, alpha)        w = top²        W ← W + w        c = w/W
//	y ← (1-c)·y + c·z + alpha·(Beta·(1-c) - 1)·u        z ← z - alpha·u        (z = y at the start)
//	x = (y - (1-Beta)·z)/Beta
//
// It is an [Averaging], whose average is x.
type ScheduleFree struct {
	Beta float64
	Base Optimizer // [Plain], or [AdamW] without its average of gradients.
}

// scheduleFreeNumbers are the numbers that it keeps: the sum W and the largest step size, at the end
// of State.Scalars.
const scheduleFreeNumbers = 2

// scheduleFreeModel is the name of z among the vectors of an agent.
const scheduleFreeModel = "z"

var scheduleFreeSGDKind = OptimizerKind{Name: "schedule-free-sgd", Rule: "y ← (1−c)·y + c·z + α·(β₁·(1−c) − 1)·g, " +
	"z ← z − α·g, c = α²/Σα²", Keys: []string{"beta1"}, Constant: true, LanguageAlpha: 0.3, Check: checkScheduleFree,
	New: func(s Settings) Optimizer { return ScheduleFree{Beta: s.Param("beta1"), Base: Plain{}} }}

var scheduleFreeAdamWKind = OptimizerKind{Name: "schedule-free-adamw", Rule: "the same with " +
	"g/(√(v/(1−β₂ˢ)) + ε) for g, v ← β₂·v + (1−β₂)·g²",
	Keys: []string{"beta1", "beta2", "eps"}, Constant: true, Adaptive: true, UnitSteps: true,
	Decoupled: true, Check: checkScheduleFree, New: func(s Settings) Optimizer {
		base := unsmoothed{AdamW{Beta2: s.Param("beta2"), Eps: s.Param("eps")}}
		return ScheduleFree{Beta: s.Param("beta1"), Base: base}
	}}

// scheduleFree are the names of the optimizers that take the place of a schedule. Methods whose
// agents hold the same models, or average them with all vectors of the optimizer, take them.
var scheduleFree = []string{scheduleFreeSGDKind.Name, scheduleFreeAdamWKind.Name}

func checkScheduleFree(s Settings) ([]string, error) {
	if beta := s.Param("beta1"); beta == 0 {
		return nil, setting.Invalid("beta1", beta, "gradients would be taken at z, and the evaluated model could not "+
			"be computed: expected above 0 and below 1")
	}
	return nil, nil
}

func (o ScheduleFree) Vectors() []string {
	return append([]string{scheduleFreeModel}, o.Base.Vectors()...)
}

// InverseGain is 0: the step depends on the steps before.
func (ScheduleFree) InverseGain() float64 { return 0 }

// Direct returns the direction of the base.
func (o ScheduleFree) Direct(s *State, x device.Vector, decay float64) device.Vector {
	return o.Base.Direct(s, x, decay)
}

// stepper is an optimizer whose direction depends on the step size.
type stepper interface {
	// turn returns the direction of a step of size alpha at y, where the optimizer and weight decay
	// have given u. It may be u or State.Gradient.
	turn(s *State, alpha float64, y, u device.Vector) device.Vector
}

var (
	_ stepper   = ScheduleFree{}
	_ Averaging = ScheduleFree{}
)

// turn returns (y - y')/alpha for the next y'. With z moved already that is c/alpha·(y - z) +
// (1-c)·(1-Beta)·u.
func (o ScheduleFree) turn(s *State, alpha float64, y, u device.Vector) device.Vector {
	if alpha == 0 {
		return u // Neither model moves.
	}
	z, numbers := s.Opt[0], s.Scalars[len(s.Scalars)-scheduleFreeNumbers:]
	sum, top := &numbers[0], &numbers[1]
	if *sum == 0 {
		s.copy(z, y)
	}
	*top = max(*top, alpha)
	*sum += float64(*top * *top)
	c := *top * *top / *sum
	s.combine(z, device.Term{A: 1, V: z}, device.Term{A: -alpha, V: u})
	s.combine(s.g, device.Term{A: c / alpha, V: y}, device.Term{A: -c / alpha, V: z},
		device.Term{A: (1 - c) * (1 - o.Beta), V: u})
	return s.g
}

func (o ScheduleFree) follow(s *State, _ *Round) {
	s.combine(s.average, device.Term{A: 1 / o.Beta, V: s.X}, device.Term{A: -(1 - o.Beta) / o.Beta, V: s.Opt[0]})
}

// numbers are the numbers that the optimizer keeps beside its vectors, as they are at the start.
func (d Descent) numbers() []float64 {
	if _, ok := d.Optimizer().(ScheduleFree); ok {
		return make([]float64, scheduleFreeNumbers)
	}
	return nil
}

// unsmoothed is AdamW without its average of gradients. Its vector is the last one of the optimizer.
type unsmoothed struct{ AdamW }

func (unsmoothed) Vectors() []string { return AdamW{}.Vectors()[1:] }

// Direct implements [Optimizer]. The average of the agent, which follows the step, is its working
// memory.
func (o unsmoothed) Direct(s *State, x device.Vector, decay float64) device.Vector {
	g := s.CorrectedGradient(x)
	s.Count++
	a := device.Adam{Rest1: 1, Scale1: 1, Beta2: o.Beta2, Rest2: 1 - o.Beta2,
		Scale2: 1 / math.Sqrt(1-math.Pow(o.Beta2, float64(s.Count))), Eps: o.Eps, Decay: decay}
	s.do(device.AdamW(a, g, s.average, s.Opt[len(s.Opt)-1], x))
	return g
}
