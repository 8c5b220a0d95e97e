// Package live implements the asynchronous method FSPDA-SA in real time: agents compute and
// communicate concurrently over an unreliable network, and no agent waits for another one. It
// executes the protocol of [fspda/train/algo.Async] with real events;
// fspda/train/simnet simulates it in virtual time.
//
// An [Agent] has one computing goroutine, [Agent.Run], and one session per edge in a goroutine of
// its own (edge.go). All change the same vectors under one lock. A gradient is computed without the
// lock, at a copy of x.
//
// Each edge has a Poisson clock at its end of lower rank, the caller. When it rings, the two ends
// exchange values in three messages. Each end reserves its mailbox meanwhile:
//
//	caller → called   call      caller's logical time
//	called → caller   offer     common time, called end's values          (or decline)
//	caller → called   values    caller's values: it has committed      (or cancel)
//	called            commits
//
// Commit. Two ends of an unreliable link can never both be certain (two generals' problem), so the
// caller alone decides, when it receives the offer. If it has committed, the exchange counts, even
// if its values are lost on the way; otherwise it does not. A caller that has waited for
// Timeouts.Exchange frees its mailbox and cancels the offer when it arrives. A called end that has
// waited as long for the values frees its mailbox, too, but still adds them when they arrive: the
// increment is valid at any time. Training never waits.
//
// Recovery. Each end of an edge counts the exchanges and keeps the edge's dual
// ([fspda/train/algo.EdgeDual]). Invariant: the duals of the two ends are negatives of each other
// once their counts agree. When a session opens, both ends send hello with their counts. If one is
// behind, because of the network, a crash or a restart from a checkpoint, it receives the dual of
// the other end and adopts its negative. Nothing is logged or replayed, and Σ lambda + β·mail over
// all agents is zero whenever no exchange is in progress.
//
// Drop. An end that has not heard from the other one for Timeouts.Drop subtracts the edge's dual
// from its lambda and starts a new epoch of the edge. When all neighbours of an agent have done so,
// the duals of the rest sum to zero. If the agent returns, it learns of the epoch and does the
// same. In a partition that lasts longer, both ends drop the edge, each half trains as a network of
// its own, and when they meet again their edges start from zero.
//
// Join. An agent without a checkpoint requests the models of its neighbours and starts from their
// mean, with a zero dual, at the latest of their times. It announces that it has no history, upon
// which the neighbours drop their duals with it.
//
// End. An agent that reaches the last logical time announces it, and the others advance to it. Then
// the two ends of each edge compare their counts once more. An agent finishes when all its edges
// are closed, or their other ends are dropped or, without Timeouts.Drop, have been silent for
// Timeouts.Finish. An agent that has finished does not move any more, and hello says so. If the counts
// of an edge still differ, because its other end was silent, that end adopts the state of the one that
// has finished, even if its own is later.
package live
