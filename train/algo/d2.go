package algo

// D2 is decentralized SGD with a correction of the differences between data (Tang, Lian, Yan, Zhang
// and Liu 2018): [LED] with an averaging after every step. It requires eigenvalues of W above -1/3.
type D2 struct{ LED }

var d2 = Method{Name: "d2", Check: checkDiffusion, New: func(s Settings) Algorithm { return NewD2(s.Descent) }}

// NewD2 makes it of an optimizer.
func NewD2(d Descent) D2 { return D2{LED{Tau: 1, Descent: d}} }

func (a D2) Traits() Traits {
	t := a.LED.Traits()
	t.Edges = WholeGraph
	t.About = About{"the model", "2·v·d·|E_t|", "1", exactOnSkew, staticGraph + "; eigenvalues of W above -1/3",
		"Tang, Lian, Yan, Zhang and Liu 2018"}
	return t
}
