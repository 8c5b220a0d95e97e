package train

import (
	"context"
	"errors"
	"time"

	"fspda/device"
	"fspda/dist"
)

// errAbsent reports that an agent has been silent for so long that its neighbours have dropped it.
var errAbsent = errors.New("train: an agent is absent")

// nextReport waits for the next report of an agent. In real time it returns errAbsent for an agent
// that has been silent for long, once the local agent has reported more than done evaluations.
func (n *node) nextReport(ctx context.Context, from, done int) (int, []byte, error) {
	limit := seconds(n.run.setup.Config.DropAfter)
	sessions, ok := n.Network.(dist.SessionOpener)
	if limit == 0 || !ok {
		return n.Network.NextReport(ctx, from)
	}
	for {
		wait, cancel := context.WithTimeout(ctx, min(limit, time.Second))
		t, record, err := n.Network.NextReport(wait, from)
		timeout := err != nil && wait.Err() != nil && ctx.Err() == nil
		cancel()
		if !timeout {
			return t, record, err
		}
		if int(n.reported.Load()) > done && sessions.SilentFor(from) > limit {
			return 0, nil, errAbsent
		}
	}
}

// replaceAbsent makes sn a placeholder for the snapshot of an absent agent. Its counters are those of
// its latest report.
func (sn *snapshot) replaceAbsent(from, t int, last head) {
	sn.agent, sn.t, sn.eval, sn.save, sn.missing = from, t, true, false, true
	sn.ledger, sn.grads, sn.meter = last.Ledger, last.Grads, meter{}
}

// fillMissing sets the models of absent agents to the mean of the others, and their duals to zero, as
// an agent that joins has them. The mean, the distances from it and the sum of the duals are then
// those of the present agents.
func fillMissing(set []*snapshot) {
	var present, missing []*snapshot
	for _, sn := range set {
		if sn.missing {
			missing = append(missing, sn)
		} else {
			present = append(present, sn)
		}
	}
	for _, sn := range missing {
		for k, v := range sn.vectors() {
			if k > 0 && k <= len(sn.aux) {
				sn.dev.Combine(v)
				continue
			}
			var terms []device.Term
			for _, o := range present {
				terms = append(terms, device.Term{A: 1 / float64(len(present)), V: o.vectors()[k]})
			}
			sn.dev.Combine(v, terms...)
		}
	}
}
