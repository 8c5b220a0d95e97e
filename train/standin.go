package train

import (
	"context"
	"errors"
	"time"

	"fspda/device"
	"fspda/dist"
)

// errAbsent says that an agent has been silent for so long that its neighbours have dropped it.
var errAbsent = errors.New("train: an agent is gone")

// nextReport waits for the next report of an agent. In real time it does not wait for one that is
// gone, once there is something that it should have reported: done is how many evaluations it has.
func (m *member) nextReport(ctx context.Context, from, done int) (int, []byte, error) {
	limit := seconds(m.run.setup.Config.DropAfter)
	board, ok := m.net.(dist.SessionOpener)
	if limit == 0 || !ok {
		return m.net.NextReport(ctx, from)
	}
	for {
		wait, cancel := context.WithTimeout(ctx, min(limit, time.Second))
		t, record, err := m.net.NextReport(wait, from)
		timeout := err != nil && wait.Err() != nil && ctx.Err() == nil
		cancel()
		if !timeout {
			return t, record, err
		}
		if int(m.left.Load()) > done && board.SilentFor(from) > limit {
			return 0, nil, errAbsent
		}
	}
}

// standIn makes sn a snapshot in place of one that does not come. What it has done so far counts.
func (sn *snapshot) standIn(from, t int, last head) {
	sn.agent, sn.t, sn.eval, sn.save, sn.missing = from, t, true, false, true
	sn.ledger, sn.grads, sn.meter = last.Ledger, last.Grads, meter{}
}

// fillMissing lets agents that are gone stand at the mean of the others with a zero dual, as one
// stands that joins: so the mean, the distances from it and the sum of the duals are those of the
// agents that are there.
func (r *run) fillMissing(set []*snapshot) {
	var there, missing []*snapshot
	for _, sn := range set {
		if sn.missing {
			missing = append(missing, sn)
		} else {
			there = append(there, sn)
		}
	}
	for _, sn := range missing {
		for k, v := range sn.vectors() {
			if k > 0 && k <= len(sn.aux) {
				r.dev.Combine(v)
				continue
			}
			var terms []device.Term
			for _, o := range there {
				terms = append(terms, device.Term{A: 1 / float64(len(there)), V: o.vectors()[k]})
			}
			r.dev.Combine(v, terms...)
		}
	}
}
