// Package live is FSPDA-SA without a clock, for real: agents that compute and communicate side by
// side over a network that fails, and that wait for nobody. It plays the protocol of
// [fspda/train/algo.Async], whose events fspda/train/simnet plays in virtual time, as they occur.
//
// An [Agent] is one computing activity, [Agent.Run], and one talk for each edge, which goes on
// beside it (edge.go). Both move the same vectors under one lock; a gradient is taken outside of
// it, at a copy of x.
//
// Each edge rings by a Poisson clock at its end of the lower rank, the caller, and an exchange is
// four letters:
//
//	caller → called   call      my logical time; I keep my mailbox free
//	called → caller   offer     the common time, my values; I keep mine free                 (or decline)
//	caller → called   values    my values; I have committed                                  (or cancel)
//	called            commits
//
// Giving up. Two ends of a wire can never both be sure; so one of them decides. It is the caller,
// at the moment in which it has the offer: what it has committed counts, whatever becomes of the
// values, and what it has not does not. A caller that has waited GiveUp for the offer lets go of
// its mailbox and refuses the offer when it comes. A called end that has waited as long for the
// values lets go of its mailbox too; they are added when they come, for an increment has no hour.
// No agent ever waits with its training for another.
//
// Every edge counts its exchanges, and each end keeps the edge's dual
// ([fspda/train/algo.EdgeDual]), whose negative is that of the other end. When two ends meet
// (again) they say hello, with their counts. The one that is behind, because the network or its
// process failed it, or because it has gone back to a checkpoint, is sent the dual and moves to its
// negative. That is all there is to crashes, lost letters and partitions: nothing is logged,
// nothing is replayed, and Σ lambda + β·mail over all agents is zero whenever no edge is open.
//
// Drop. An end that has heard nothing of the other for DropAfter takes the edge's dual out of its
// lambda and begins a new epoch of the edge; so do all its neighbours, and the rest sum to zero.
// Should it come back it hears of the epoch and does the same. In a partition that lasts longer
// both ends do so by themselves, each half trains on as a network of its own, and where they meet
// again the edges begin anew from zero.
//
// Join. An agent that has no checkpoint asks its neighbours for their models, starts from their
// mean with a zero dual at the latest of their times, and tells them that it knows nothing, upon
// which they drop what the edge was before.
//
// The end. Who reaches the last logical time says so; others catch up. Then every pair compares its
// counts once more, and an agent is done when all its edges are closed, or their other ends have
// been silent for Farewell.
package live
