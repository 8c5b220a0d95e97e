package train

import (
	"context"
	"errors"
	"time"

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
