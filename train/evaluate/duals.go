package evaluate

import (
	"math"
	"slices"

	"fspda/train/algo"
	"fspda/train/snapshot"
)

// duals reads the vectors that the algorithm keeps at sum zero; nil: it has none.
func (e *Evaluator) duals(sn []*snapshot.Snapshot) [][]float32 {
	tr, ok := e.setup.Algo.(algo.Tracker)
	if !ok {
		return nil
	}
	name, _ := tr.Tracked(e.setup.Config.Alpha, e.setup.Config.Eta.V)
	at := slices.Index(e.setup.Algo.Aux(), name)
	out := make([][]float32, len(sn))
	for i, s := range sn {
		out[i] = make([]float32, e.setup.Dim)
		s.Device.Read(out[i], s.Aux[at])
		if e.setup.Asynchronous() {
			e.addMail(out[i], s)
		}
	}
	return out
}

// addMail adds beta times the unread mailbox. The other end of the exchange may have read its half;
// only with both halves the duals sum to zero.
func (e *Evaluator) addMail(dual []float32, s *snapshot.Snapshot) {
	mail := make([]float32, len(dual))
	s.Device.Read(mail, s.Aux[slices.Index(e.setup.Algo.Aux(), "mail")])
	beta := float32(e.setup.Config.Beta)
	for k, v := range mail {
		dual[k] += float32(beta * v)
	}
}

// dualTrack returns the squared distance of the duals from their limit, a multiple of
// (∇F - ∇f_i)(xbar), in which f_i is weighted as in F.
func (e *Evaluator) dualTrack(sn []*snapshot.Snapshot, duals [][]float32, mean *point) Num {
	c := e.setup.Config
	_, multiple := e.setup.Algo.(algo.Tracker).Tracked(c.Alpha, c.Eta.V)
	if math.IsInf(multiple, 0) { // without a dual gain there is no limit
		return Num(math.NaN())
	}
	sum := 0.0
	for i, l := range duals {
		weight, shard := e.setup.GradientScale(sn[i].Agent), mean.shards[sn[i].Agent]
		for k, v := range l {
			to := mean.full[k] - float64(weight*float64(shard[k]))
			diff := float64(v) - float64(multiple*to)
			sum += float64(diff * diff)
		}
	}
	return Num(sum)
}

func dualSum(duals [][]float32) Num {
	sq := 0.0
	for k := range duals[0] {
		s := 0.0
		for _, l := range duals {
			s += float64(l[k])
		}
		sq += float64(s * s)
	}
	return Num(math.Sqrt(sq))
}
