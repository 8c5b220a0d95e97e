package algo

import (
	"slices"
	"strings"

	"fspda/device"
	"fspda/train/setting"
)

// StreamingDiLoCo is DiLoCo whose outer steps are taken by one part of the model after the other
// (Douillard and others 2025), so that each all-reduce has one part only, and may take some
// iterations. Each part of P has its own slow model phi, which is the same at all agents, and its
// own outer momentum b. Its rounds have H = P·Every local steps, and the rounds of the parts end
// Every steps after each other. With x the model, at the end of iteration t, where the round of
// part k ends, and at the end of t + Delay,
//
//	t           D = mean of (phi[k] - x[k])
//	t + Delay   b[k] ← Mu·b[k] + D        phi[k] ← phi[k] - Rate·(D + Mu·b[k])
//	            x[k] ← (1-Own)·phi[k] + Own·x[k]
//
// So the next D of the part has the steps that x took while D was under way. All agents sum in the
// order of their numbers: phi and b stay bit-identical. With one part, and neither Delay nor Own,
// it is [DiLoCo]. Without agents to exchange with, no outer step is taken. Steps that are under way
// at the end of a run are not taken.
type StreamingDiLoCo struct {
	Every  int              // local steps from one part's outer step to the next part's
	Rate   float64          // step size of the outer optimizer
	Mu     float64          // its momentum
	Delay  int              // iterations that an all-reduce may take, below Every
	Own    float64          // share of x that the outer step keeps
	Parts  [][]device.Range // nil: runs of adjacent coordinates of equal length
	Reduce Reduction        // nil is Exact
	Descent
}

// The values of the parameter parts.
const (
	byCoordinates = "coordinates"
	sequential    = "sequential"
	strided       = "strided"
)

var streamingDiLoCo = Method{Name: "streaming-diloco", Keys: []setting.Key{LocalSteps}, Check: inParts,
	Params: append([]setting.Key{outerRate, outerMomentum(0.9, "Nesterov momentum of the outer steps"),
		{Name: "delay", Default: 0, Whole: true, Range: "[0, inf)", Since: "0.2.0",
			Help: "iterations that the all-reduce of a part may take, below local_steps"},
		{Name: "mix", Default: setting.AutoFloat{Auto: true}, Range: "[0, 1]", Since: "0.2.0",
			Help: "share of the agent's own model that an outer step keeps; auto: 0, and 0.5 with a delay"},
		{Name: "parts", Choices: []string{byCoordinates, sequential, strided}, Since: "0.2.0",
			Help: "parts of the model: runs of adjacent coordinates of equal length; or blocks of layers, in " +
				"sequence or every so many"}}, reductionKeys()...),
	New: func(s Settings) Algorithm {
		a := StreamingDiLoCo{Every: s.Whole("local_steps"), Rate: s.Param("outer_lr"), Mu: s.Param("outer_momentum"),
			Delay: s.Whole("delay"), Reduce: newReduction(s), Descent: s.Descent}
		if mix := s.Values["mix"].(setting.AutoFloat); !mix.Auto {
			a.Own = mix.V
		} else if a.Delay > 0 {
			a.Own = 0.5
		}
		if by := s.Choice("parts"); by != byCoordinates && len(s.Tensors) > 0 {
			a.Parts, _ = layered(s, by == strided)
		}
		return a
	}}

// inParts refuses masks that draw other coordinates than a part, whose rounds are equally long, and
// parts and delays that a run cannot have. It warns a single agent.
func inParts(r Run) ([]string, error) {
	s := r.Settings()
	if mask := r.Text("mask"); mask != "parts" && mask != "all" {
		return nil, setting.Invalid("mask", mask, "streaming-diloco sends one part of the model after the other: "+
			"use mask auto, and density 1/P for P parts")
	}
	if delay, every := s.Whole("delay"), s.Whole("local_steps"); delay >= every && delay > 0 {
		return nil, setting.Invalid("params.delay", delay, "must be below local_steps, which is %d: an outer step is "+
			"taken before the next one is sent", every)
	}
	if by := s.Choice("parts"); by != byCoordinates {
		if _, err := layered(s, by == strided); err != nil {
			return nil, err
		}
	}
	if s.Agents == 1 {
		return []string{"one agent: outer steps are made of what agents exchange, so that none is taken"}, nil
	}
	return reduced(r)
}

// layered divides the tensors of a network into 1/density parts by its blocks. Tensors before the
// first block are in the first part, tensors behind the last block in the last one. A network
// without blocks is cut between two tensors where the parts before reach their shares.
func layered(s Settings, strided bool) (parts [][]device.Range, err error) {
	p := int(1/s.Density + 0.5)
	parts = make([][]device.Range, p)
	blocks, end := 0, 0
	number := make([]int, len(s.Tensors)) // the block of each tensor, from 1 on; 0: it is in none
	names := map[string]int{}
	for k, t := range s.Tensors {
		end = t.Offset + t.Rows*max(1, t.Cols)
		if name := blockName(t.Name); name != "" && names[name] == 0 {
			blocks++
			names[name] = blocks
		}
		number[k] = names[blockName(t.Name)]
	}
	if blocks > 0 && p > blocks {
		return nil, setting.Invalid("density", s.Density, "makes %d parts of a network of %d blocks: use a density of "+
			"at least %.3g, or parts coordinates", p, blocks, 1/float64(blocks))
	}
	last := 0
	for k, t := range s.Tensors {
		last = max(last, number[k])
		part := 0
		switch {
		case blocks == 0:
			part = t.Offset * p / end
		case last == blocks && number[k] == 0:
			part = p - 1
		case last > 0 && strided:
			part = (last - 1) % p
		case last > 0:
			part = (last - 1) * p / blocks
		}
		parts[part] = joined(append(parts[part], device.Range{From: t.Offset, To: t.Offset + t.Rows*max(1, t.Cols)}))
	}
	if k := slices.IndexFunc(parts, func(r []device.Range) bool { return len(r) == 0 }); k >= 0 {
		return nil, setting.Invalid("density", s.Density, "makes %d parts, of which part %d has no tensor, since one "+
			"before is larger than a part: use a larger density, or parts coordinates", p, k)
	}
	return parts, nil
}

// blockName returns the name of the block of a tensor, up to the first number in it, as h.0 of
// h.0.attn.c_attn.weight; empty: it is in none.
func blockName(tensor string) string {
	words := strings.Split(tensor, ".")
	at := slices.IndexFunc(words, func(w string) bool { return w != "" && strings.Trim(w, "0123456789") == "" })
	return strings.Join(words[:at+1], ".")
}

func (StreamingDiLoCo) Name() string { return "streaming-diloco" }

func (a StreamingDiLoCo) Traits() Traits {
	t := Traits{
		Memory:     Memory{Aux: []string{"start", "outer_momentum"}},
		Exchange:   Exchange{Masks: true, Mask: "parts", Parts: a.Parts, Delay: a.Delay, Reduce: a.reduce},
		Rounds:     Rounds{Period: a.Every, Scheduled: true, LocalSteps: 1},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer},
		Membership: Membership{Regroup: a.regroup},
		About: About{"the change of one part of the model over its round, an all-reduce", "2·(n-1)·v·k an exchange",
			"2", "bias, which grows with local_steps / density", "none", "Douillard and others 2025"},
	}
	if a.Delay > 0 {
		t.Aux, t.Repost, t.Membership = append(t.Aux, "posted"), a.repost, underWay
	}
	reduction(a.Reduce).declare(&t)
	return t
}

// underWay says why members do not change where messages are received later than they are sent.
var underWay = Membership{Rigid: "has messages under way from one iteration to a later one, of which a new member " +
	"has none: let outer steps take place at once"}

// regroup gives new members the slow model and the outer momentum, which are the same at all.
func (a StreamingDiLoCo) regroup(s *State, g *Group) error {
	return g.Copy(s.Aux[dilocoStart], s.Aux[dilocoOuter])
}

// streamingPosted is where in State.Aux the vectors are that were posted last, with a delay.
const streamingPosted = dilocoOuter + 1

func (a StreamingDiLoCo) Local(s *State, r *Round) error {
	start := s.Aux[dilocoStart]
	if r.T == 0 {
		s.combine(start, device.Term{A: 1, V: s.X})
	}
	if err := a.Step(s, r, r.Alpha, s.X); err != nil || len(r.Links) == 0 {
		return err
	}
	part := r.Links[0].Mask // all links have one mask
	d := s.picked(r, start, part)
	s.combine(d, device.Term{A: 1, V: d}, device.Term{A: -1, V: s.picked(r, s.X, part)})
	by := reduction(a.Reduce)
	var kept, before device.Vector
	if all := s.kept(by); all != nil {
		kept, before = s.picked(r, all, part), s.picked(r, all, part)
	}
	d = by.fold(s, d, kept)
	if a.Delay > 0 {
		s.replace(s.Aux[streamingPosted], part, s.picked(r, s.Aux[streamingPosted], part), d)
	}
	err := by.post(s, r, d, kept)
	if kept != nil {
		s.replace(s.kept(by), part, before, kept)
	}
	return err
}

// repost posts the vectors of the last message again.
func (a StreamingDiLoCo) repost(s *State, r *Round) error {
	return reduction(a.Reduce).post(s, r, s.picked(r, s.Aux[streamingPosted], r.Links[0].Mask), nil)
}

// reduce adds the vectors that have arrived.
func (a StreamingDiLoCo) reduce(s *State, r *Round) error {
	_, _, err := reduction(a.Reduce).sum(s, r, a.Name(), nil)
	return err
}

func (a StreamingDiLoCo) Mix(s *State, r *Round) error {
	if len(r.Links) == 0 {
		return nil
	}
	part, n := r.Links[0].Mask, r.Links[0].Len
	sum, share, err := reduction(a.Reduce).sum(s, r, a.Name(), r.Acquire(n))
	if err != nil {
		return err
	}
	b, phi, x := s.picked(r, s.Aux[dilocoOuter], part), s.picked(r, s.Aux[dilocoStart], part), s.picked(r, s.X, part)
	b2, phi2 := r.Acquire(n), r.Acquire(n)
	s.combine(b2, device.Term{A: a.Mu, V: b}, device.Term{A: share, V: sum})
	s.combine(phi2, device.Term{A: 1, V: phi}, device.Term{A: -a.Rate * share, V: sum},
		device.Term{A: -a.Rate * a.Mu, V: b2})
	s.replace(s.Aux[dilocoOuter], part, b, b2)
	s.replace(s.Aux[dilocoStart], part, phi, phi2)
	x2 := phi2
	if a.Own > 0 { // The difference is added, so that coordinates on which both agree stay.
		x2 = r.Acquire(n)
		s.combine(x2, device.Term{A: 1, V: x}, device.Term{A: -1, V: phi2})
		s.combine(x2, device.Term{A: 1, V: phi2}, device.Term{A: a.Own, V: x2})
	}
	s.replace(s.X, part, x, x2)
	return nil
}
