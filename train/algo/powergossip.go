package algo

import (
	"math"
	"slices"

	"fspda/device"
	"fspda/train/setting"
)

// Tensor is a part of the flat parameter vector: a matrix, stored by rows, or with Cols = 0 a
// vector of so many Rows.
type Tensor struct {
	Offset, Rows, Cols int
	Name               string
	// Hidden says that the tensor is the weights of a hidden layer: no embedding, and not the last
	// layer.
	Hidden bool
	// Blocks is the number of matrices of which it consists, of equal numbers of rows; 0 stands for 1.
	Blocks int
}

// PowerGossip is DSGD, adapt-then-combine, over low-rank sketches of the differences between
// neighbours (Vogels, Karimireddy and Jaggi 2020, algorithm 1, rank 1). For each matrix of the
// model and each edge {i<j} both ends hold the same vectors a and s. After the local step, with X_i
// that matrix of agent i and W_t the Metropolis weights of the active graph,
//
//	even exchanges of the edge:  a ← a/|a|    sketch = X^T a    s = sketch_i - sketch_j
//	odd ones:                    s ← s/|s|    sketch = X s      a = sketch_i - sketch_j
//	X_i ← X_i - Theta·w_ij·a·s^T        X_j ← X_j + Theta·w_ij·a·s^T
//
// so that a power iteration on X_i - X_j runs along with training. All edges use the X of one
// moment. Vectors travel whole. A direction whose norm is 0 would stay so: it is drawn anew.
//
// The mean model moves by -alpha·mean(u), since both ends add exact negatives. It is biased if
// agents hold different data, as DSGD is.
//
// Departure: the authors' program divides by the norm plus 1e-8, and sends nothing at first.
type PowerGossip struct {
	Theta   float64
	Tensors []Tensor // the tensors of the model, in order
	// Draw writes normally distributed numbers of direction block of the edge {i, j} at its exchange
	// number t, the same at both ends.
	Draw func(dst []float32, t, i, j, block int)
	Descent
}

var powerGossip = Method{Name: "powergossip", Params: []setting.Key{{Name: "theta", Default: 1, Range: "(0, 1]",
	Help: "share of the way to the neighbours' mean, along the directions that were compared"}},
	New: func(s Settings) Algorithm { return newPowerGossip(s, s.Param("theta")) }}

// newPowerGossip makes it for the tensors of the model.
func newPowerGossip(s Settings, theta float64) PowerGossip {
	return PowerGossip{Theta: theta, Tensors: s.Tensors, Draw: s.Draw, Descent: s.Descent}
}

func (PowerGossip) Name() string { return "powergossip" }

func (a PowerGossip) Traits() Traits {
	return Traits{
		Memory: Memory{EdgeVectors: a.directions(),
			NewScratch: func() any { return &sketches{} }},
		Exchange:   Exchange{Edges: AnyEdges, MessageLen: a.meanMessage(), Rank: a.maxRank()},
		Updates:    Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Shifts: true},
		Membership: Membership{Regroup: keepVectors},
		About: About{"one product of each matrix with a vector; vectors whole",
			"2·v·(rows or columns of all matrices + rest)·|E_t|", "0; rows + columns of all matrices an edge",
			biasedOnSkew, anyGraph, "Vogels, Karimireddy and Jaggi 2020, algorithm 1, rank 1"},
	}
}

// directions lists the lengths of a and s of each matrix. EdgeMemory.Count is the number of
// exchanges.
func (a PowerGossip) directions() []int {
	lengths := []int{}
	for _, b := range a.Tensors {
		if b.Cols > 0 {
			lengths = append(lengths, b.Rows, b.Cols)
		}
	}
	return lengths
}

// meanMessage is the mean number of values of even and odd exchanges.
func (a PowerGossip) meanMessage() (n float64) {
	for _, b := range a.Tensors {
		n += float64(b.sketched()[0]+b.sketched()[1]) / 2
	}
	return n
}

// maxRank is the largest rank that a matrix of the model can have.
func (a PowerGossip) maxRank() int {
	most := 1
	for _, b := range a.Tensors {
		most = max(most, min(b.Rows, b.Cols))
	}
	return most
}

// sketches is the working memory of an agent.
type sketches struct {
	// at holds the coordinates of the sketch of each matrix in the message, of even exchanges and of
	// odd ones.
	at     [][2]device.Index
	length [2]int        // The lengths of the messages.
	one    device.Vector // The direction of a vector, which is a matrix of one row.
	ops    []device.Op
	norms  []float64
	// directions holds the directions that multiply the matrices, all links after each other.
	directions []edgeDirection
}

// edgeDirection is a direction of an edge.
type edgeDirection struct {
	device.Vector
	edge  *EdgeMemory
	block int
}

// prepare makes the working memory at the first exchange.
func (a PowerGossip) prepare(s *State) *sketches {
	w := s.Scratch.(*sketches)
	if w.one != nil {
		return w
	}
	w.one = s.newOnes(1)
	for _, b := range a.Tensors {
		var at [2]device.Index
		for side, n := range b.sketched() {
			at[side] = s.Dev.NewIndex(sequence(w.length[side], n), nil)
			w.length[side] += n
		}
		w.at = append(w.at, at)
	}
	return w
}

// sketched is the number of values of a block in a message, of even and odd exchanges.
func (b Tensor) sketched() [2]int {
	if b.Cols == 0 {
		return [2]int{b.Rows, b.Rows}
	}
	return [2]int{b.Cols, b.Rows}
}

// matrix returns the tensor as a part of x, transposed in odd exchanges. A vector is one row.
func (b Tensor) matrix(x device.Vector, side int) device.Matrix {
	m := device.Rows(x, b.Offset, b.Rows, b.Cols)
	switch {
	case b.Cols == 0:
		return device.Rows(x, b.Offset, 1, b.Rows)
	case side == 1:
		return m.T()
	}
	return m
}

// sequence is n coordinates from first on.
func sequence(first, n int) []uint32 {
	at := make([]uint32, n)
	for k := range at {
		at[k] = uint32(first + k)
	}
	return at
}

// row and column are a vector as a matrix.
func row(v device.Vector) device.Matrix    { return device.Rows(v, 0, 1, v.Len()) }
func column(v device.Vector) device.Matrix { return device.Rows(v, 0, v.Len(), 1) }

func (a PowerGossip) Local(s *State, r *Round) error {
	if err := a.Step(s, r, r.Alpha, s.X); err != nil {
		return err
	}
	a.sendSketches(s, r)
	return nil
}

// sendSketches posts a sketch of the model over each link: the product of each matrix with the
// direction of the edge.
func (a PowerGossip) sendSketches(s *State, r *Round) {
	w := a.prepare(s)
	a.normalize(s, r, w)
	for i := range r.Links {
		m := s.Edge(r.Links[i].Peer)
		side, next, from := m.Count%2, 0, 0 // even: a multiplies rows; odd: s multiplies columns
		message := r.Acquire(w.length[side])
		w.ops = w.ops[:0]
		for _, b := range a.Tensors {
			factor := w.one
			if b.Cols > 0 {
				factor, next = m.Vectors[next+side], next+2
			}
			n := b.sketched()[side]
			part := device.Rows(message, from, 1, n)
			w.ops = append(w.ops, device.Multiply(part, 1, row(factor), b.matrix(s.X, side), 0))
			from += n
		}
		s.Dev.Do(w.ops...)
		r.Post(i, message)
	}
}

// normalize divides the directions of all links by their norms. One whose norm is 0 is drawn anew.
func (a PowerGossip) normalize(s *State, r *Round, w *sketches) {
	w.directions = w.directions[:0]
	for i := range r.Links {
		m, next := s.Edge(r.Links[i].Peer), 0
		for k, b := range a.Tensors {
			if b.Cols > 0 {
				w.directions = append(w.directions, edgeDirection{m.Vectors[next+m.Count%2], m, k})
				next += 2
			}
		}
	}
	w.measure(s)
	drawn := false
	for k, d := range w.directions {
		if w.norms[k] == 0 {
			host := make([]float32, d.Len())
			a.Draw(host, d.edge.Count, min(r.Self, d.edge.Peer), max(r.Self, d.edge.Peer), d.block)
			s.Dev.Write(d.Vector, host)
			drawn = true
		}
	}
	if drawn {
		w.measure(s)
	}
	for k, d := range w.directions {
		s.combine(d.Vector, device.Term{A: 1 / math.Sqrt(w.norms[k]), V: d.Vector})
	}
}

// measure computes the squares of the norms of all directions, which the host waits for once.
func (w *sketches) measure(s *State) {
	w.norms = slices.Grow(w.norms[:0], len(w.directions))[:len(w.directions)]
	w.ops = w.ops[:0]
	for k, d := range w.directions {
		w.ops = append(w.ops, device.Dot(&w.norms[k], d.Vector, d.Vector))
	}
	s.Dev.Do(w.ops...)
}

func (a PowerGossip) Mix(s *State, r *Round) error {
	a.addSketched(s, r, ActiveWeight, device.Term{A: -a.Theta, V: s.X})
	return nil
}

// addSketched adds A·w·D to each V of the terms, where D is what the sketches tell of own - other
// on each link, and updates the directions.
func (a PowerGossip) addSketched(s *State, r *Round, weight LinkWeight, to ...device.Term) {
	w := a.prepare(s)
	for i := range r.Links {
		l := &r.Links[i]
		if l.Received == nil {
			continue
		}
		m := s.Edge(l.Peer)
		side, next, from := m.Count%2, 0, 0
		diff, forward := r.Acquire(w.length[side]), r.Acquire(w.length[side])
		sign := 1.0
		if r.Self > l.Peer {
			sign = -1
		}
		s.combine(diff, device.Term{A: 1, V: l.Sent[0]}, device.Term{A: -1, V: l.Received[0]})
		s.combine(forward, device.Term{A: sign, V: l.Sent[0]}, device.Term{A: -sign, V: l.Received[0]})
		w.ops = w.ops[:0]
		for k, b := range a.Tensors {
			factor := w.one
			if b.Cols > 0 {
				factor = m.Vectors[next+side]
			}
			n := b.sketched()[side]
			for _, t := range to {
				w.ops = append(w.ops, device.Multiply(b.matrix(t.V, side), weight(l)*t.A, column(factor),
					device.Rows(diff, from, 1, n), 1))
			}
			if from += n; b.Cols > 0 {
				w.ops = append(w.ops, device.Gather(m.Vectors[next+1-side], forward, w.at[k][side]))
				next += 2
			}
		}
		s.Dev.Do(w.ops...)
		m.Count++
	}
}
