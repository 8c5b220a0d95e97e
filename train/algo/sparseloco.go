package algo

import (
	"fmt"

	"fspda/device"
	"fspda/train/setting"
)

// SparseLoCo is DiLoCo whose agents send the largest coordinates of unsent changes
// (Sarfi and others 2025). All hold the same slow model phi, at which a round starts; e, which
// starts at zero, is an agent's own. With x the model after H local steps,
//
//	at the end of a round:  e ← Keep·e + (phi - x)      S = the k largest |e| of each chunk of a tensor
//	                        q = Q(e on S)               e ← e - q
//	                        phi ← phi - Rate·(mean of q over all agents)        x ← phi
//
// where Q rounds to a few bins, and e keeps the rounding too. All sum in the order of the agents,
// so their phi stay bit-identical. With Keep 1 an agent's changes are all sent or kept. Keep acts
// as the momentum, so that there is no outer one.
//
// Departures from the released program: the mean is over all agents, as printed, and not over those
// that sent a coordinate, and messages are not shortened to their median length. Indices are not
// coded by their frequency.
type SparseLoCo struct {
	H    int     // local steps of a round
	Keep float64 // share of e that the next round keeps
	Rate float64 // step size of the outer steps
	Spec string  // The spec of the compressor.
	Descent
}

var sparseLoCo = Method{Name: "sparseloco", Keys: []setting.Key{LocalSteps}, Check: sparse, Params: []setting.Key{
	{Name: "side", Default: 64, Whole: true, Range: "[2, 64]", Help: "largest side of the chunks of a tensor"},
	{Name: "k", Default: 64, Whole: true, Range: "[1, inf)", Help: "coordinates of each chunk that are sent"},
	{Name: "bins", Choices: []string{"4", "2", "16", "256", "fp32"},
		Help: "bins to which the numbers sent of a tensor are rounded, or fp32 for numbers as they are"},
	{Name: "keep", Default: 0.95, Range: "[0, 1]", Help: "share of what was not sent that the next round keeps"},
	{Name: outerRate.Name, Default: 1, Range: outerRate.Range, Help: outerRate.Help}},
	New: func(s Settings) Algorithm {
		spec := fmt.Sprintf("chunk-topk(%d,%d", s.Whole("side"), s.Whole("k"))
		if bins := s.Choice("bins"); bins != "fp32" {
			spec += "," + bins
		}
		return SparseLoCo{H: s.Whole("local_steps"), Keep: s.Param("keep"), Rate: s.Param("outer_lr"), Spec: spec + ")",
			Descent: s.Descent}
	}}

// sparse refuses to send all coordinates.
func sparse(r Run) ([]string, error) {
	s := r.Settings()
	side, k := s.Whole("side"), s.Whole("k")
	for _, t := range s.Tensors {
		if chunkSide(t.Rows, side)*chunkSide(max(1, t.Cols), side) > k {
			return nil, nil
		}
	}
	return nil, setting.Invalid("params.k", k, "is all coordinates of every chunk of this network: use a smaller k, "+
		"or algo diloco with outer_momentum 0, which that is")
}

// chunkSide is the largest divisor of n that is at most limit.
func chunkSide(n, limit int) int {
	side := min(n, limit)
	for n%side > 0 {
		side--
	}
	return side
}

const (
	sparseStart = iota // The vectors of State.Aux begin with phi.
	sparseError        // e
)

func (SparseLoCo) Name() string { return "sparseloco" }

func (a SparseLoCo) Traits() Traits {
	return Traits{
		Memory: Memory{Aux: []string{"start", "error"},
			// What an agent sends in an iteration.
			NewScratch: func() any { return &device.SparseTerm{} }},
		Exchange:   Exchange{Edges: RoundGather, Code: CompressedCode, Compressor: a.Spec},
		Rounds:     Rounds{Period: a.H, Scheduled: true},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer},
		Membership: Membership{Regroup: keepVectors},
		About: About{"the k largest of each chunk of what was not sent yet, to all agents, at the end of a round",
			"n·(n-1)·(k·(log2 bins + iota) a chunk + 32·(bins + 1) a tensor) a round", "2",
			"bias, which grows with local_steps", "none", "Sarfi and others 2025"},
	}
}

func (a SparseLoCo) Local(s *State, r *Round) error {
	phi, e := s.Aux[sparseStart], s.Aux[sparseError]
	if r.T%a.H == 0 {
		s.copy(phi, s.X)
	}
	if err := a.Step(s, r, r.Alpha, s.X); err != nil || (r.T+1)%a.H != 0 {
		return err
	}
	s.combine(e, device.Term{A: a.Keep, V: e}, device.Term{A: 1, V: phi}, device.Term{A: -1, V: s.X})
	q, err := r.Compress(e, 0)
	if err != nil {
		return err
	}
	s.post(r, q.Vectors...)
	own := s.Scratch.(*device.SparseTerm)
	*own = device.SparseTerm{A: 1, V: q.Vectors[0], Idx: q.Index}
	s.add(e, device.SparseTerm{A: -1, V: own.V, Idx: own.Idx})
	return nil
}

func (a SparseLoCo) Mix(s *State, r *Round) error {
	if (r.T+1)%a.H != 0 {
		return nil
	}
	r.Active = true // every agent sends
	if err := s.collectAnnounced(r, announcement{algo: a.Name(), of: 1}, *s.Scratch.(*device.SparseTerm)); err != nil {
		return err
	}
	for i := range s.parts {
		s.parts[i].A = 1
	}
	sum := s.g
	if r.Shared != nil {
		sum = r.Shared(0, s.sumParts)
	} else {
		s.sumParts(sum)
	}
	s.combine(s.X, device.Term{A: 1, V: s.Aux[sparseStart]},
		device.Term{A: -a.Rate / float64(len(r.Links)+1), V: sum})
	return nil
}
