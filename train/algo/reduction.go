package algo

import (
	"fmt"
	"strings"

	"fspda/device"
	"fspda/train/setting"
)

// Reduction is how the agents of a method of rounds come to the mean of vectors that they have.
type Reduction interface {
	// declare adds to the traits how it communicates and, as the last of Aux, the vector that it
	// keeps.
	declare(t *Traits)
	keeps() bool // It keeps a vector.
	// fold returns v and the unsent part that kept has, the vector that declare names, on the
	// coordinates of v; nil: there is none. It may be in kept.
	fold(s *State, v, kept device.Vector) device.Vector
	// post posts a folded vector, which is pooled or the gradient vector or kept, and behind it more.
	// Without links s.g becomes the vector to post. kept becomes the unsent part; nil: it is not
	// asked.
	post(s *State, r *Round, v, kept device.Vector, more ...device.Vector) error
	// sum returns a vector, and the factor that makes it the mean of those posted. All agents get the
	// same bits. The vector is dst or a shared one, or without links the gradient vector.
	sum(s *State, r *Round, name string, dst device.Vector) (v device.Vector, factor float64, err error)
}

// reduction returns by, or Exact for nil.
func reduction(by Reduction) Reduction {
	if by == nil {
		return Exact{}
	}
	return by
}

// kept is the vector that a reduction keeps, the last one of the algorithm's own; nil: it keeps
// none.
func (s *State) kept(by Reduction) device.Vector {
	if !by.keeps() {
		return nil
	}
	return s.last()
}

// Exact is a [Reduction] by plain values, which all agents sum in the order of their numbers.
type Exact struct{}

func (Exact) declare(t *Traits) { t.Edges = AllReduce }
func (Exact) keeps() bool       { return false }

func (Exact) fold(_ *State, v, _ device.Vector) device.Vector { return v }

func (Exact) post(s *State, r *Round, v, _ device.Vector, more ...device.Vector) error {
	s.sendAll(r, v, more...)
	return nil
}

func (Exact) sum(s *State, r *Round, name string, dst device.Vector) (device.Vector, float64, error) {
	v, err := s.sumAll(name, r, 0, dst)
	return v, 1 / float64(len(r.Links)+1), err
}

// Quantized is a [Reduction] by numbers of few bits (Streaming DiLoCo, Douillard and others 2025;
// MuLoCo, Thérien and others 2025). With Q the compressor, v the vector of an agent and e its
// unsent part, which starts at zero,
//
//	e ← Feedback·e + v      q = Q(e)      e ← e - q       (without feedback q = Q(v))
//	mean of q, of messages to all others;    or in two steps Q(mean of q)
//
// In two steps the owner of a part of the vector gets the q of all others there, and sends Q of
// their mean to all, itself included: it goes on with the decoded numbers. In one process all
// agents get all q and compute the same, and the ledger counts the two steps. Between processes each
// gets its part.
type Quantized struct {
	Spec     string // Of the compressor: int(b,block) or fp8(block).
	TwoSteps bool
	Feedback float64 // 0: e is not kept.
}

func (q Quantized) declare(t *Traits) {
	t.Edges, t.Code, t.Compressor = RoundGather, CompressedCode, q.Spec
	if q.TwoSteps {
		t.Edges = AllReduce
	}
	if q.keeps() {
		t.Aux = append(t.Aux, "error")
	}
}

func (q Quantized) keeps() bool { return q.Feedback > 0 }

func (q Quantized) fold(s *State, v, kept device.Vector) device.Vector {
	if kept == nil {
		return v
	}
	s.combine(kept, device.Term{A: q.Feedback, V: kept}, device.Term{A: 1, V: v})
	return kept
}

func (q Quantized) post(s *State, r *Round, v, kept device.Vector, _ ...device.Vector) error {
	c, err := r.Compress(v, 0)
	if err != nil {
		return err
	}
	s.post(r, c.Vectors...)
	if len(r.Links) == 0 {
		s.copy(s.g, c.Vectors[0])
	}
	if kept != nil {
		s.combine(kept, device.Term{A: 1, V: kept}, device.Term{A: -1, V: c.Vectors[0]})
	}
	return nil
}

func (q Quantized) sum(s *State, r *Round, name string, dst device.Vector) (device.Vector, float64, error) {
	if !q.TwoSteps {
		return Exact{}.sum(s, r, name, dst)
	}
	if len(r.Links) == 0 {
		return s.g, 1, again(s, r, s.g)
	}
	if err := s.collect(name, r, 0); err != nil {
		return nil, 0, err
	}
	if r.Shared == nil {
		s.sumTerms(dst)
		return dst, 1, again(s, r, dst)
	}
	var failed error
	dst = r.Shared(0, func(dst device.Vector) {
		s.sumTerms(dst)
		failed = again(s, r, dst)
	})
	return dst, 1, failed
}

// again makes of a sum over the agents the code of the mean.
func again(s *State, r *Round, sum device.Vector) error {
	s.combine(sum, device.Term{A: 1 / float64(len(r.Links)+1), V: sum})
	c, err := r.Compress(sum, 1)
	if err == nil {
		s.copy(sum, c.Vectors[0])
	}
	return err
}

func reductionKeys() []setting.Key {
	return []setting.Key{
		{Name: "quantize", Default: "none", Forms: true, Check: checkQuantize, Since: "0.2.0",
			Help: "numbers of the messages: none, which is float32, int2 to int8, or fp8"},
		{Name: "block", Default: 256, Whole: true, Range: "[1, 16777216]", Since: "0.2.0",
			Help: "quantize: adjacent coordinates of a tensor that have one scale"},
		{Name: "collective", Choices: []string{setting.Auto, twoStep, gather}, Since: "0.2.0",
			Help: "quantize: two-step, to the owners of parts and from them; gather, to all others; auto: gather " +
				"below 4 bits"},
		{Name: "feedback", Default: setting.AutoFloat{Auto: true}, Range: "[0, 1]", Since: "0.2.0",
			Help: "quantize: share of what was not sent that is added to the next message; auto: 0, and 1 below 4 " +
				"bits"},
	}
}

// The values of the parameter collective besides auto.
const (
	twoStep = "two-step"
	gather  = "gather"
)

// checkQuantize accepts none, int2 to int8 and fp8.
func checkQuantize(key string, value any) error {
	if v, _ := value.(string); v == "none" || quantizedBits(v) > 0 {
		return nil
	}
	return setting.Invalid(key, value, "expected none, int2, int3, int4, int5, int6, int7, int8 or fp8")
}

// quantizedBits is the number of bits of a number, by the parameter quantize; 0: it is none of the
// forms.
func quantizedBits(quantize string) int {
	digit, whole := strings.CutPrefix(quantize, "int")
	switch {
	case quantize == "fp8":
		return 8
	case whole && len(digit) == 1 && digit[0] >= '2' && digit[0] <= '8':
		return int(digit[0] - '0')
	}
	return 0
}

// newReduction makes it of the parameters; nil stands for [Exact].
func newReduction(s Settings) Reduction {
	quantize, block := s.Choice("quantize"), s.Whole("block")
	bits := quantizedBits(quantize)
	if bits == 0 {
		return nil
	}
	q := Quantized{Spec: fmt.Sprintf("fp8(%d)", block), TwoSteps: s.Choice("collective") == twoStep}
	if quantize != "fp8" {
		q.Spec = fmt.Sprintf("int(%d,%d)", bits, block)
	}
	if s.Choice("collective") == setting.Auto {
		q.TwoSteps = bits >= 4
	}
	if f := s.Values["feedback"].(setting.AutoFloat); !f.Auto {
		q.Feedback = f.V
	} else if bits < 4 {
		q.Feedback = 1
	}
	return q
}

// reduced refuses settings of a [Reduction] that do not fit together.
func reduced(r Run) ([]string, error) {
	s := r.Settings()
	quantize := s.Choice("quantize")
	bits := quantizedBits(quantize)
	for _, k := range reductionKeys()[1:] {
		if got := setting.Text(s.Values[k.Name]); bits == 0 && got != setting.Text(k.Initial()) {
			return nil, setting.Invalid("params."+k.Name, got, "has no effect on this run: it needs quantize int2 to "+
				"int8 or fp8; leave it out")
		}
	}
	if bits > 0 && bits < 4 && s.Choice("collective") == twoStep {
		return nil, setting.Invalid("params.collective", twoStep, "would round the mean of %s numbers again, without "+
			"feedback, and train to twice the loss above the best: use gather, or quantize int4", quantize)
	}
	return nil, nil
}
