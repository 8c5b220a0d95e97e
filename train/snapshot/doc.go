// Package snapshot holds copies of agents at the head of an iteration.
//
// A [Snapshot] is all of an agent that outlives an iteration: its vectors, its counters and, if it
// is to be saved, the state of its edges and streams. Agents fill snapshots and go on; evaluation
// and checkpoints read them later. A [Pool] bounds how many of an agent exist at once.
//
// The vectors of a snapshot stay on the agent's device. [Snapshot.Encode] writes vectors and
// counters to bytes for another process, where [Snapshot.Decode] reads them.
package snapshot
