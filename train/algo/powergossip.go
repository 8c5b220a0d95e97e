package algo

import (
	"math"

	"fspda/device"
	"fspda/train/setting"
)

// Tensor is a part of the flat parameter vector: a matrix, stored by rows, or with Cols = 0 a
// vector of so many Rows.
type Tensor struct{ Offset, Rows, Cols int }

// PowerGossip is DSGD, adapt-then-combine, over low-rank sketches of the differences between
// neighbours (Vogels, Karimireddy and Jaggi 2020, algorithm 1, rank 1). For each matrix of the model
// and each edge {i<j} both ends hold the same vectors a and s. After the local step, with X_i that
// matrix of agent i and W_t the Metropolis weights of the active graph,
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
	Tensors []Tensor // of the model, in order
	// Draw writes normally distributed numbers of direction block of the edge {i, j} at its exchange
	// number t, the same at both ends.
	Draw func(dst []float32, t, i, j, block int)
	Descent
}

var _ Algorithm = PowerGossip{}

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
		Memory: Memory{EdgeVectors: a.directions(), NewScratch: func(func() device.Vector) any { return &sketches{} },
			ScratchVectors: 2}, // the coordinates of all rows and columns
		Exchange: Exchange{Edges: AnyEdges, MessageLen: a.meanMessage(), Rank: a.maxRank()},
		Updates:  Updates{Descent: a.Descent, Optimizers: AnyOptimizer, Shifts: true},
		About: About{"one product of each matrix with a vector; vectors whole",
			"2·v·(rows or columns of all matrices + rest)·|E_t|", "0; rows + columns of all matrices an edge",
			biasedOnSkew, anyGraph, "Vogels, Karimireddy and Jaggi 2020, algorithm 1, rank 1"},
	}
}

// directions lists the lengths of a and s of each matrix. EdgeMemory.Count is the number of exchanges.
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

// lines are the coordinates of the rows and of the columns of a matrix, and its working memory. A
// vector is one row. The first of each pair belongs to even exchanges, the second to odd ones.
type lines struct {
	of     [2][]device.Index // rows, columns
	places [2][]device.Index // of the numbers of a direction: one each
	part   [2]device.Vector  // of the length of a row, of a column
	at     [2]device.Index   // of the sketch in the message
	factor []float64         // the numbers of the direction
}

// sketches is the working memory of an agent.
type sketches struct {
	blocks []lines
	length [2]int        // of a message
	number device.Vector // of length 1
	one    device.Vector
}

// prepare makes the working memory at the first exchange.
func (a PowerGossip) prepare(s *State) *sketches {
	w := s.Scratch.(*sketches)
	if w.one != nil {
		return w
	}
	w.one, w.number = s.Dev.NewVector(1), s.Dev.NewVector(1)
	s.Dev.Write(w.one, []float32{1})
	for _, b := range a.Tensors {
		rows, cols := b.Rows, b.Cols
		if cols == 0 {
			rows, cols = 1, b.Rows
		}
		l := lines{part: [2]device.Vector{s.Dev.NewVector(cols), s.Dev.NewVector(rows)}}
		for k := range rows {
			l.of[0] = append(l.of[0], s.Dev.NewIndex(sequence(b.Offset+k*cols, cols, 1), nil))
			l.places[0] = append(l.places[0], s.Dev.NewIndex([]uint32{uint32(k)}, nil))
		}
		for k := 0; k < cols && b.Cols > 0; k++ {
			l.of[1] = append(l.of[1], s.Dev.NewIndex(sequence(b.Offset+k, rows, cols), nil))
			l.places[1] = append(l.places[1], s.Dev.NewIndex([]uint32{uint32(k)}, nil))
		}
		for side, n := range b.sketched() {
			l.at[side] = s.Dev.NewIndex(sequence(w.length[side], n, 1), nil)
			w.length[side] += n
		}
		w.blocks = append(w.blocks, l)
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

// sequence is n coordinates from first on, by steps of step.
func sequence(first, n, step int) []uint32 {
	at := make([]uint32, n)
	for k := range at {
		at[k] = uint32(first + k*step)
	}
	return at
}

func (a PowerGossip) Local(s *State, r *Round) error {
	if err := a.descend(s, r, r.Alpha, s.X); err != nil {
		return err
	}
	a.sendSketches(s, r)
	return nil
}

// sendSketches posts a sketch of the model over each link.
func (a PowerGossip) sendSketches(s *State, r *Round) {
	w := a.prepare(s)
	for i := range r.Links {
		m := s.Edge(r.Links[i].Peer)
		side, next := m.Count%2, 0 // even: a multiplies rows; odd: s multiplies columns
		message := r.Acquire(w.length[side])
		s.do(device.Combine(message))
		for k, b := range a.Tensors {
			l := &w.blocks[k]
			if b.Cols == 0 {
				s.do(device.Gather(l.part[0], s.X, l.of[0][0]))
				s.add(message, device.SparseTerm{A: 1, V: l.part[0], Idx: l.at[side]})
				continue
			}
			a.normalize(s, m.Vectors[next+side], m, r.Self, k)
			w.sketch(s, k, side, m.Vectors[next+side], message)
			next += 2
		}
		r.Post(i, message)
	}
}

// normalize divides a direction by its norm, or draws it anew if that is 0.
func (a PowerGossip) normalize(s *State, v device.Vector, m *EdgeMemory, self, block int) {
	norm := math.Sqrt(s.dot(v, v))
	if norm == 0 {
		host := make([]float32, v.Len())
		a.Draw(host, m.Count, min(self, m.Peer), max(self, m.Peer), block)
		s.Dev.Write(v, host)
		norm = math.Sqrt(s.dot(v, v))
	}
	s.combine(v, device.Term{A: 1 / norm, V: v})
}

// sketch adds the sum of the rows or columns of a block, times the numbers of a direction, to a
// message.
func (w *sketches) sketch(s *State, block, side int, direction, message device.Vector) {
	l := &w.blocks[block]
	for k, factor := range w.numbers(s, block, side, direction) {
		s.do(device.Gather(l.part[side], s.X, l.of[side][k]))
		s.add(message, device.SparseTerm{A: factor, V: l.part[side], Idx: l.at[side]})
	}
}

// numbers returns the numbers of a direction.
func (w *sketches) numbers(s *State, block, side int, direction device.Vector) []float64 {
	l := &w.blocks[block]
	l.factor = l.factor[:0]
	for _, at := range l.places[side] {
		s.do(device.Gather(w.number, direction, at))
		l.factor = append(l.factor, s.dot(w.number, w.one))
	}
	return l.factor
}

func (a PowerGossip) Mix(s *State, r *Round) error {
	a.addSketched(s, r, ActiveWeight, device.Term{A: -a.Theta, V: s.X})
	return nil
}

// addSketched adds A·w·D to each V of the terms, where D is what the sketches tell of own - other on
// each link, and updates the directions.
func (a PowerGossip) addSketched(s *State, r *Round, weight LinkWeight, to ...device.Term) {
	w := a.prepare(s)
	for i := range r.Links {
		l := &r.Links[i]
		if l.Received == nil {
			continue
		}
		m := s.Edge(l.Peer)
		sign, side, next := 1.0, m.Count%2, 0
		if r.Self > l.Peer {
			sign = -1
		}
		for k, b := range a.Tensors {
			own, other := r.Acquire(b.sketched()[side]), r.Acquire(b.sketched()[side])
			s.do(device.Gather(own, l.Sent[0], w.blocks[k].at[side]))
			s.do(device.Gather(other, l.Received[0], w.blocks[k].at[side]))
			if b.Cols == 0 {
				s.do(device.AddDiff(own, other, w.blocks[k].of[0][0], s.scaled(weight(l), to)...))
				continue
			}
			for n, factor := range w.numbers(s, k, side, m.Vectors[next+side]) {
				s.do(device.AddDiff(own, other, w.blocks[k].of[side][n], s.scaled(weight(l)*factor, to)...))
			}
			s.combine(m.Vectors[next+1-side], device.Term{A: sign, V: own}, device.Term{A: -sign, V: other})
			next += 2
		}
		m.Count++
	}
}
