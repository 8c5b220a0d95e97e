package ownparts

import (
	"math"

	"fspda/device"
	"fspda/train/algo"
	"fspda/train/config"
	"fspda/train/setting"
)

// signum is signSGD with momentum (Bernstein and others 2018):
//
//	m ← keep·m + (1-keep)·g        u = sign(m) + decay·x
type signum struct{ keep float64 }

func init() {
	config.RegisterOptimizer(config.Optimizer{
		Name: "signum", Rule: "m ← keep·m + (1−keep)·g, u = sign(m)",
		Params:  []setting.Key{{Name: "keep", Default: 0.9, Range: "[0, 1)", Help: "decay rate of the momentum"}},
		General: true, Adaptive: true, UnitSteps: true, Decoupled: true,
		New: func(s algo.Settings) algo.Optimizer { return signum{s.Param("keep")} },
	})
}

func (signum) Vectors() []string    { return []string{"momentum"} }
func (signum) InverseGain() float64 { return 0 }

func (o signum) Direct(s *algo.State, x device.Vector, decay float64) device.Vector {
	u := s.CorrectedGradient(x)
	g, m, at := make([]float32, x.Len()), make([]float32, x.Len()), make([]float32, x.Len())
	s.Dev.Read(g, u)
	s.Dev.Read(m, s.Opt[0])
	s.Dev.Read(at, x)
	for i := range m {
		m[i] = float32(o.keep*float64(m[i]) + (1-o.keep)*float64(g[i]))
		g[i] = float32(math.Copysign(1, float64(m[i])) + decay*float64(at[i]))
	}
	s.Dev.Write(s.Opt[0], m)
	s.Dev.Write(u, g)
	return u
}
