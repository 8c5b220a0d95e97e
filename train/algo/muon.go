package algo

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"

	"fspda/device"
	"fspda/train/setting"
)

// Muon moves the weights of hidden layers along directions of momentum, whose singular values a
// Newton-Schulz iteration makes about equal (Jordan and others 2024), and all other tensors along
// directions of AdamW. With s the number of its calls, this one included,
//
//	matrices   m ← Mu·m + (1-Mu)·g
//	           u = scale·NS((1-Mu)·g + Mu·m) + decay·x, or scale·NS(m) + decay·x
//	the rest   u = Rest·(direction of AdamW + decay·x)
//
// NS is [device.Orthogonalize]. It is PyTorch's torch.optim.Muon beside its AdamW, where m is the
// same average. A layer whose weights are several matrices one below the other, as of queries, keys
// and values, has one direction for each.
type Muon struct {
	Mu       float64
	Nesterov bool
	Rest     float64 // The step size of the rest over the step size of matrices.
	Adam     AdamW
	Matrices []device.Orthogonal // Ascending, with the factors of their directions.
	// Layers are the coordinates of the matrices, and DecayedLayers those with weight decay.
	// DecayedRest and FreeRest are the other coordinates, with it and without it.
	Layers, DecayedLayers, DecayedRest, FreeRest []device.Range
}

// The values of the parameter scale, with PyTorch's names of the first two.
const (
	matchAdamW        = "match_rms_adamw"
	originalScale     = "original"
	spectralUnclamped = "spectral_unclamped"
)

// muonByName is the form of the parameter muon_tensors that names tensors.
const muonByName = "by-name("

var muonKind = OptimizerKind{Name: "muon",
	Rule: "weights of hidden layers: m ← μ·m + (1−μ)·g, u = scale·NS((1−μ)·g + μ·m); the rest: AdamW",
	Keys: []string{"beta1", "beta2", "eps"}, Params: []setting.Key{
		{Name: "mu", Default: 0.95, Range: "[0, 1)", Help: "decay rate of the momentum of matrices"},
		{Name: "nesterov", Default: true, Help: "the direction of matrices looks ahead by the momentum"},
		{Name: "scale", Choices: []string{matchAdamW, originalScale, spectralUnclamped}, Help: "factor of the " +
			"directions of R×C matrices: 0.2·√max(R, C), √max(1, R/C) or √(R/C)"},
		{Name: "alpha_rest", Default: setting.AutoFloat{Auto: true}, Range: "(0, inf)",
			Help: "step size of all other tensors; auto: alpha with scale match_rms_adamw, else 0.015·alpha"},
		{Name: "muon_tensors", Default: "auto", Forms: true, Check: checkMuonTensors, Help: "tensors that are " +
			"matrices: auto, the weights of hidden layers, or by-name(PATTERN,...)"},
	}, General: true, Adaptive: true, UnitSteps: true, Decoupled: true, OnlyDecoupled: true, ExceptsItself: true,
	New: func(s Settings) Optimizer { return newMuon(s) }, Check: checkMuon, Products: muonProducts}

func newMuon(s Settings) *Muon {
	o := &Muon{Mu: s.Param("mu"), Nesterov: s.Flag("nesterov"), Rest: 1,
		Adam: AdamW{Beta1: s.Param("beta1"), Beta2: s.Param("beta2"), Eps: s.Param("eps")}}
	scale := s.Choice("scale")
	if rest := s.Values["alpha_rest"].(setting.AutoFloat); !rest.Auto && s.Alpha > 0 {
		o.Rest = rest.V / s.Alpha
	} else if scale != matchAdamW {
		o.Rest = 0.015
	}
	end := 0
	for _, t := range s.Tensors {
		end = max(end, t.Offset+t.Rows*max(1, t.Cols))
		if !t.byMuon(s.Choice("muon_tensors")) {
			continue
		}
		rows := t.Rows / max(1, t.Blocks)
		for b := range max(1, t.Blocks) {
			o.Matrices = append(o.Matrices, device.Orthogonal{Scale: muonScale(scale, rows, t.Cols),
				Block: device.Block{Offset: t.Offset + b*rows*t.Cols, Rows: rows, Cols: t.Cols}})
		}
		o.Layers = append(o.Layers, device.Range{From: t.Offset, To: t.Offset + t.Rows*t.Cols})
	}
	o.Layers = joined(o.Layers)
	free := rangesOf(s.Undecayed)
	rest := outside(o.Layers, end)
	o.DecayedLayers, o.DecayedRest = without(o.Layers, free), without(rest, free)
	o.FreeRest = without(rest, o.DecayedRest)
	return o
}

// muonScale is the factor of the direction of a matrix.
func muonScale(name string, rows, cols int) float64 {
	r, c := float64(rows), float64(cols)
	switch name {
	case originalScale:
		return math.Sqrt(max(1, r/c))
	case spectralUnclamped:
		return math.Sqrt(r / c)
	}
	return 0.2 * math.Sqrt(max(r, c))
}

// byMuon reports whether Muon moves a tensor as matrices. Choice is the value of muon_tensors.
func (b Tensor) byMuon(choice string) bool {
	if b.Rows/max(1, b.Blocks) < 2 || b.Cols < 2 {
		return false
	}
	if patterns := muonPatterns(choice); patterns != nil {
		return slices.ContainsFunc(patterns, func(p string) bool { return namedBy(p, b.Name) })
	}
	return b.Hidden
}

// muonPatterns lists the patterns of a value of muon_tensors; nil: it is auto.
func muonPatterns(choice string) []string {
	list, ok := strings.CutPrefix(strings.TrimSuffix(choice, ")"), muonByName)
	if !ok {
		return nil
	}
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// namedBy reports whether the parts of a name, which points separate, begin with the parts of a
// pattern.
func namedBy(pattern, name string) bool {
	want, got := strings.Split(pattern, "."), strings.Split(name, ".")
	return len(want) <= len(got) && slices.EqualFunc(want, got[:len(want)], func(p, part string) bool {
		ok, err := path.Match(p, part)
		return ok && err == nil
	})
}

func checkMuonTensors(key string, value any) error {
	v, _ := value.(string)
	if v == "auto" || strings.HasPrefix(v, muonByName) && strings.HasSuffix(v, ")") && len(muonPatterns(v)) > 0 {
		return nil
	}
	return setting.Invalid(key, value, "expected auto, or by-name(PATTERN,...) with the beginnings of the names of "+
		"tensors")
}

// checkMuon refuses a model without matrices, and names of tensors that are none.
func checkMuon(s Settings) ([]string, error) {
	choice := s.Choice("muon_tensors")
	for _, p := range muonPatterns(choice) {
		at := slices.IndexFunc(s.Tensors, func(t Tensor) bool { return namedBy(p, t.Name) })
		if at < 0 {
			return nil, setting.Invalid("params.muon_tensors", choice, "no tensor of the network begins with %q", p)
		}
		if t := s.Tensors[at]; !t.byMuon(muonByName + p + ")") {
			return nil, setting.Invalid("params.muon_tensors", choice, "%s is no matrix of at least 2×2: leave it out",
				t.Name)
		}
	}
	if !slices.ContainsFunc(s.Tensors, func(t Tensor) bool { return t.byMuon(choice) }) {
		return nil, setting.Invalid("optimizer", "muon", "the network has no hidden layer whose weights are a matrix: "+
			"use optimizer adamw")
	}
	return nil, nil
}

// muonProducts counts the floating-point operations of the products of a step, two for a
// multiply-add: with n the longer side of a matrix and m the shorter one, five times 3·m²·n + m³
// multiply-adds, since two of three products are symmetric. The largest matrix decides the memory.
func muonProducts(s Settings) (operations float64, scratch int) {
	for _, o := range newMuon(s).Matrices {
		m, n := float64(min(o.Rows, o.Cols)), float64(max(o.Rows, o.Cols))
		operations += device.OrthogonalSteps * 2 * (3*m*m*n + m*m*m)
		scratch = max(scratch, o.Scratch())
	}
	return operations, scratch
}

// Vectors are named as PyTorch's AdamW names them; the second one is zero on matrices.
func (*Muon) Vectors() []string { return []string{"exp_avg", "exp_avg_sq"} }

// InverseGain is 0: the length of a direction does not depend on the length of the gradient.
func (*Muon) InverseGain() float64 { return 0 }

func (o *Muon) Direct(s *State, x device.Vector, decay float64) device.Vector {
	g, m := s.CorrectedGradient(x), s.Opt[0]
	s.Count++
	ahead := []device.Term{{A: 1, V: m}}
	if o.Nesterov {
		ahead = []device.Term{{A: 1 - o.Mu, V: g}, {A: o.Mu, V: m}}
	}
	adam := o.Adam.step(s.Count)
	free := adam
	adam.Decay = decay
	s.do(device.Combine(m, device.Term{A: o.Mu, V: m}, device.Term{A: 1 - o.Mu, V: g}).Within(o.Layers),
		device.Combine(g, ahead...).Within(o.Layers), device.Orthogonalize(g, o.Matrices...),
		device.AdamW(adam, g, m, s.Opt[1], x).Within(o.DecayedRest),
		device.AdamW(free, g, m, s.Opt[1], x).Within(o.FreeRest))
	if decay != 0 {
		s.do(device.Combine(g, device.Term{A: 1, V: g}, device.Term{A: decay, V: x}).Within(o.DecayedLayers))
	}
	if o.Rest != 1 {
		s.do(device.Combine(g, device.Term{A: o.Rest, V: g}).Within(o.DecayedRest),
			device.Combine(g, device.Term{A: o.Rest, V: g}).Within(o.FreeRest))
	}
	return g
}

// rangesOf returns the ranges of ascending coordinates.
func rangesOf(at []uint32) (ranges []device.Range) {
	for _, i := range at {
		ranges = append(ranges, device.Range{From: int(i), To: int(i) + 1})
	}
	return joined(ranges)
}

// joined joins ascending ranges that follow each other without a gap, in place.
func joined(ranges []device.Range) []device.Range {
	kept := ranges[:0]
	for _, r := range ranges {
		if last := len(kept) - 1; last >= 0 && kept[last].To == r.From {
			kept[last].To = r.To
		} else {
			kept = append(kept, r)
		}
	}
	return kept
}

// outside returns the coordinates below n that are in none of some ascending ranges.
func outside(ranges []device.Range, n int) []device.Range {
	return without([]device.Range{{To: n}}, ranges)
}

// without returns the coordinates of ranges that are in none of others. Both ascend. The result is
// not nil, which would stand for all coordinates.
func without(ranges, others []device.Range) []device.Range {
	left := []device.Range{}
	for _, r := range ranges {
		at, _ := slices.BinarySearchFunc(others, r.From+1, func(o device.Range, after int) int {
			return cmp.Compare(o.To, after)
		})
		for _, o := range others[at:] {
			if o.From >= r.To {
				break
			}
			if o.From > r.From {
				left = append(left, device.Range{From: r.From, To: o.From})
			}
			r.From = o.To
		}
		if r.From < r.To {
			left = append(left, r)
		}
	}
	return left
}
