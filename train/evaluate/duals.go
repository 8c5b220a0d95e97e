package evaluate

import (
	"math"
	"slices"

	"fspda/train/metric"
	"fspda/train/snapshot"
)

// duals reads the vectors that the algorithm keeps at sum zero, one at a time.
type duals struct {
	e    *Evaluator
	all  []*snapshot.Snapshot
	at   int // index in Snapshot.Aux
	mail int // index in Snapshot.Aux; -1: none
	dual []float32
	unit []float32 // scratch of mail
}

// duals returns nil if the algorithm has no such vectors.
func (e *Evaluator) duals(sn []*snapshot.Snapshot) *duals {
	traits := e.setup.Traits
	if traits.Tracked.Name == "" {
		return nil
	}
	d := &duals{e: e, all: sn, at: slices.Index(traits.Aux, traits.Tracked.Name), mail: -1}
	if e.setup.Asynchronous() {
		d.mail = slices.Index(traits.Aux, "mail")
	}
	return d
}

// of returns the dual of an agent, until the next call. An asynchronous one includes beta times the
// unread mailbox: the other end of the exchange may have read its half, and only with both halves
// the duals sum to zero.
func (d *duals) of(agent int) []float32 {
	s := d.all[agent]
	lambda := view(s, s.Aux[d.at], &d.dual)
	if d.mail < 0 {
		return lambda
	}
	mail := view(s, s.Aux[d.mail], &d.unit)
	if d.dual == nil {
		d.dual = make([]float32, len(lambda))
	}
	beta := float32(d.e.setup.Config.Beta)
	for k, v := range lambda {
		d.dual[k] = v + float32(beta*mail[k])
	}
	return d.dual
}

// track returns the squared distance of the duals from their limit, a multiple of
// (∇F - ∇f_i)(xbar), in which f_i is weighted as in F.
func (d *duals) track(mean *point) metric.Num {
	sum := 0.0
	for i, s := range d.all {
		sum = d.trackOne(sum, i, mean.full, mean.shards[s.Agent])
	}
	return metric.Num(sum)
}

// trackOne adds the squared distance of one dual. It is NaN if the duals have no limit.
func (d *duals) trackOne(sum float64, agent int, full []float64, shard []float32) float64 {
	c := d.e.setup.Config
	multiple := d.e.setup.Traits.Tracked.Multiple(c.Alpha, c.Eta)
	if math.IsInf(multiple, 0) { // a dual without gain
		return math.NaN()
	}
	weight := d.e.setup.GradientScale(d.all[agent].Agent)
	for k, v := range d.of(agent) {
		to := full[k] - float64(weight*float64(shard[k]))
		diff := float64(v) - float64(multiple*to)
		sum += float64(diff * diff)
	}
	return sum
}

// norm returns the norm of the sum of the duals.
func (d *duals) norm() metric.Num {
	sums := make([]float64, d.e.setup.Dim)
	for i := range d.all {
		for k, v := range d.of(i) {
			sums[k] += float64(v)
		}
	}
	return metric.Num(math.Sqrt(square(0, sums)))
}
