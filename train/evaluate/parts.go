package evaluate

import (
	"math"

	"fspda/device"
	"fspda/train/metric"
	"fspda/train/snapshot"
)

// line is the agents in the order of their numbers, each in a process of its own. Sums go up the
// line: each agent adds its numbers to the sum of those before it, so that the last one has the bits
// of a sum in one process. Results go down.
type line struct {
	snapshot.Numbers
	self, last int
	piece      []float64
}

// pieceLen is the number of numbers that are sent at once.
const pieceLen = 16 << 10

// pieces calls do with a part of n numbers after the other, and where it begins.
func (l *line) pieces(n int, do func(from int, piece []float64) error) error {
	for from := 0; from < n; from += pieceLen {
		if err := do(from, l.piece[:min(pieceLen, n-from)]); err != nil {
			return err
		}
	}
	return nil
}

// up passes n sums up the line. add adds the numbers of this agent to a piece of them, and total gets
// the pieces at the last agent.
func (l *line) up(n int, add, total func(from int, piece []float64)) error {
	return l.pieces(n, func(from int, piece []float64) error {
		clear(piece)
		if l.self > 0 {
			if err := l.Receive(l.self-1, piece); err != nil {
				return err
			}
		}
		if add(from, piece); l.self < l.last {
			return l.Send(l.self+1, piece)
		}
		total(from, piece)
		return nil
	})
}

// add passes the sums of a vector up the line.
func (l *line) add(x []float32, total func(from int, piece []float64)) error {
	return l.up(len(x), func(from int, piece []float64) {
		for k := range piece {
			piece[k] += float64(x[from+k])
		}
	}, total)
}

// one passes one number up the line, which next makes of the one that it gets.
func (l *line) one(next func(float64) float64) (total float64, err error) {
	err = l.up(1, func(_ int, piece []float64) { piece[0] = next(piece[0]) },
		func(_ int, piece []float64) { total = piece[0] })
	return total, err
}

// down passes numbers down the line, which the last agent has in from, and calls do with all of them
// at each agent.
func (l *line) down(n int, all []float64, do func(from int, piece []float64)) error {
	return l.pieces(n, func(from int, piece []float64) error {
		if l.self == l.last {
			piece = all[from : from+len(piece)]
		} else if err := l.Receive(l.self+1, piece); err != nil {
			return err
		}
		if do(from, piece); l.self > 0 {
			return l.Send(l.self-1, piece)
		}
		return nil
	})
}

// Share computes, together with the processes of the other agents, the metrics of all models:
// the mean model and the distance of this agent's, and the sums of gradients and duals. It fills the
// Part of the snapshot except for the objective and the score, and sets its Mean if keep. Each process
// sends and gets two vectors of float64, or four with the duals and the objective, and holds at most
// one at a time; none gets the vectors of others.
func (e *Evaluator) Share(net snapshot.Numbers, sn *snapshot.Snapshot, keep bool) error {
	s, nan := e.setup, math.NaN()
	l := &line{Numbers: net, self: sn.Agent, last: s.Graph.N - 1,
		piece: make([]float64, min(pieceLen, s.Dim))}
	x := view(sn, sn.X, new([]float32))
	sn.Part, sn.Mean = snapshot.Part{L2: e.ownL2(sn, x), Sums: snapshot.Sums{Loss: nan, GradSq: nan, DualSum: nan,
		DualTrack: nan}}, nil
	var mean []float32
	if keep || e.full() {
		mean = make([]float32, s.Dim)
	}
	if err := e.shareMean(l, sn, x, mean); err != nil {
		return err
	}
	duals := e.duals([]*snapshot.Snapshot{sn})
	if duals != nil {
		sq := 0.0
		if err := l.add(duals.of(0), func(_ int, piece []float64) { sq = square(sq, piece) }); err != nil {
			return err
		}
		sn.Part.Sums.DualSum = math.Sqrt(sq)
	}
	if keep {
		sn.Mean = mean
	}
	if !e.full() {
		return nil
	}
	return e.shareObjective(l, sn, mean, duals)
}

// shareMean finds out the distance of the model x from the mean model, and writes the mean model that
// is evaluated to dst, unless that is nil.
func (e *Evaluator) shareMean(l *line, sn *snapshot.Snapshot, x, dst []float32) error {
	round := func(from int, piece []float64) {
		for k := range piece {
			if dst != nil {
				dst[from+k] = float32(piece[k])
			}
		}
	}
	distance := func(from int, piece []float64) {
		sn.Part.Distance = squaredDistance(sn.Part.Distance, x[from:from+len(piece)], piece)
	}
	both := func(from int, piece []float64) {
		distance(from, piece)
		round(from, piece)
	}
	if !e.setup.Traits.Averages {
		return l.mean(x, both)
	}
	if err := l.mean(x, distance); err != nil {
		return err
	}
	return l.mean(view(sn, sn.Aux[len(sn.Aux)-1], new([]float32)), round)
}

// mean calls do with the mean of a vector of all agents.
func (l *line) mean(x []float32, do func(from int, piece []float64)) error {
	var all []float64
	if l.self == l.last {
		all = make([]float64, len(x))
	}
	err := l.add(x, func(from int, piece []float64) {
		for k, v := range piece {
			all[from+k] = v / float64(l.last+1)
		}
	})
	if err != nil {
		return err
	}
	return l.down(len(x), all, do)
}

// shareObjective computes the objective at the mean model and its gradient, each agent the share of
// its own data, and how far the duals are from their limit.
func (e *Evaluator) shareObjective(l *line, sn *snapshot.Snapshot, mean []float32, duals *duals) error {
	w := e.acquire(0)
	defer e.release(w)
	w.Device.Write(w.x, mean)
	loss, err := e.shard(w, e.shards[sn.Agent])
	if err != nil {
		return err
	}
	weight, sums := e.setup.Weight[sn.Agent], &sn.Part.Sums
	err = l.up(len(w.full), func(from int, piece []float64) {
		for k := range piece {
			piece[k] += float64(weight * w.shard[from+k])
		}
	}, func(from int, piece []float64) { copy(w.full[from:], piece) })
	if err != nil {
		return err
	}
	if sums.Loss, err = l.one(func(sum float64) float64 { return sum + float64(weight*loss) }); err != nil {
		return err
	}
	if l.self == l.last {
		sums.GradSq = square(0, w.full)
	}
	if duals == nil {
		return nil
	}
	if err := l.down(len(w.full), w.full, func(from int, piece []float64) { copy(w.full[from:], piece) }); err != nil {
		return err
	}
	own := rounded(w.shard)
	sums.DualTrack, err = l.one(func(sum float64) float64 { return duals.trackOne(sum, 0, w.full, own) })
	return err
}

// isMean reports whether the model of a snapshot is the one that is evaluated as the mean model, whose
// point then holds for it, as at the start.
func (e *Evaluator) isMean(sn *snapshot.Snapshot) bool {
	return sn.Part.Distance == 0 && !e.setup.Traits.Averages && sn.Buffers == nil
}

// scores reports whether the model of an agent is evaluated by itself.
func (e *Evaluator) scores(sn *snapshot.Snapshot) bool {
	for _, i := range e.evaluatedAgents(e.setup.Graph.N) {
		if i == sn.Agent {
			return !e.isMean(sn)
		}
	}
	return false
}

// Score evaluates the agent's own model after Share.
func (e *Evaluator) Score(sn *snapshot.Snapshot) error {
	if !e.scores(sn) {
		return nil
	}
	own, err := e.ownSubject(sn)
	if err != nil {
		return err
	}
	points, err := e.points([]subject{own}, false)
	if err == nil {
		p := points[0]
		sn.Part.Loss, sn.Part.GradSq, sn.Part.Score = p.loss, p.gradSq, p.test
	}
	return err
}

func (e *Evaluator) ownSubject(sn *snapshot.Snapshot) (s subject, err error) {
	if s.tests, err = testsAt(e.setup, sn.T); err != nil {
		return s, err
	}
	s.x = view(sn, sn.X, new([]float32))
	if sn.Buffers != nil {
		s.buffers = Read([]*snapshot.Snapshot{sn}, func(s *snapshot.Snapshot) device.Vector { return s.Buffers })
	}
	return s, nil
}

// EvaluateParts is Evaluate where each agent's process has filled its Part by Share and Score, but
// for the score of agent self, whose snapshot has the mean model.
func (e *Evaluator) EvaluateParts(all []*snapshot.Snapshot, self int) (Evaluation, error) {
	mean := all[self].Mean
	models := make([][]float32, len(all)) // None is read: the other agents have reported their scores.
	_, at := e.subjects(all, models, mean)
	own, err := e.ownSubject(all[self])
	if err != nil {
		return Evaluation{}, err
	}
	at.tests, at.testOnly = own.tests, true
	todo := []subject{own, at}
	if !e.scores(all[self]) {
		todo = todo[1:]
	}
	points, err := e.points(todo, false)
	if err != nil {
		return Evaluation{}, err
	}
	best, sums := points[len(points)-1], all[len(all)-1].Part.Sums
	best.loss, best.gradSq = sums.Loss, sums.GradSq
	best.dualSum, best.dualTrack = metric.Num(sums.DualSum), metric.Num(sums.DualTrack)
	var agents []*point
	for _, i := range e.evaluatedAgents(len(all)) {
		p := all[i].Part
		switch {
		case e.isMean(all[i]):
			agents = append(agents, best)
		case i == self:
			agents = append(agents, points[0])
		default:
			agents = append(agents, &point{loss: p.Loss, gradSq: p.GradSq, test: p.Score})
		}
	}
	return e.row(all, mean, agents, best)
}
