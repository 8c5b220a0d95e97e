// Package process is one process of a run of many, each with one agent.
//
// The agent runs as it does in a single process. A [Node] does the rest: the agent's checkpoints
// are its own, made when its own clock says so, and its snapshots for evaluation are reported to
// the process of agent 0, the [Coordinator], which evaluates the snapshots of all agents together.
// A process that dies is started again; the agent goes on from its checkpoint and receives the
// messages since then again, so that the run is the same as without a failure.
//
// Processes tell each other about events in a [Note]: an agent diverged, an agent has stopped, the
// run has ended. Notes and snapshots travel as reports of a [Network], which keeps them until the
// receiver says that they are no longer needed.
//
// Calls come in this order: [New], [Node.Start] when the agent stands at its iteration,
// [Node.Serve], any number of [Node.Deliver] and [Node.RowsWritten], [Node.Stopping] if the process
// is told to stop, and [Node.Wait] after the agent has stopped. Then [Node.End] says how the run
// ended; the coordinator ends it with [Node.Dismiss].
package process
