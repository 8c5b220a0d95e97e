// Package train is a run: from a [Setup] to a [Result], with one goroutine per agent.
//
// A [Config] holds the settings of a run, and [Config.Resolve] turns them into a [Setup] in which
// nothing is left to choose; both are in fspda/train/config. [Run] executes a Setup. Its parts are
//
//   - agents (agent.go). An agent has the state of its algorithm, its batches, gradients
//     (gradients.go), messages with their account (exchange.go, pack.go), and a pool of snapshots;
//   - one driver (driver.go), which steps the agents through their iterations. There is one for
//     each way to run: synchronous.go, virtual.go for asynchronous runs in virtual time, and
//     realtime.go for asynchronous runs in real time;
//   - one process group (group.go): all agents are in this process, or each has its own
//     (processes.go, fspda/train/process);
//   - one collector (collector.go), which turns the snapshots of all agents at one iteration into a
//     [Row] of metrics, strictly in the order of iterations, and one writer
//     (fspda/train/runfolder), which writes checkpoints in the background.
//
// There is no barrier. In a synchronous run each agent runs ahead until an iteration in which it
// has an edge, and waits there for its partner only. At an evaluation the agent leaves a snapshot
// (fspda/train/snapshot) and goes on. A checkpoint or a stop is requested at the first iteration
// that no agent has reached (progress.go).
//
// A [Method] describes the needs of an algorithm for graph, exchange and schedule; Resolve checks
// the configuration against it. fspda/train/config has a line for each algorithm of this module;
// [Register] adds the algorithms of other programs. The mathematics is in fspda/train/algo.
//
// The package states the interface that it needs of a network ([Model]); the device's is in
// fspda/device. If a model computes asynchronously ([Model.Async]), agents read their losses some
// iterations later, but before any result of theirs is shown or saved; a divergence is attributed
// to its own iteration. A run may have several devices, among which the agents are divided
// ([Replica]). A network with batch norm has buffers: each agent has running statistics
// of its own, which its training steps update and which never travel. fspda/train/evaluate says how
// the mean model, which was never trained, gets its statistics.
//
// Observers read the progress of a run from a [LiveState]; a [Control] pauses a run and requests
// checkpoints.
//
// The number of threads and devices, evaluation points, checkpoints, a stop and a resume, and
// observers never change a result, not by one bit. Everything that [Config.Fingerprint] covers may.
package train
