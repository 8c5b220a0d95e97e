// Package train is a run: from a [Config] to a [Result], with one goroutine per agent.
//
// [Config] is what a person says, in flags or YAML. [Config.Resolve] is the one place that checks
// it: it parses every name, builds graph, edge process, mask and data split, refuses step sizes
// outside the stable region, and returns a [Setup] in which nothing is left to choose. [Run] plays
// a Setup: each agent walks through the iterations by itself, runs ahead until an iteration in
// which it has an edge, and meets its partner there; there is no barrier and nobody broadcasts. At
// evaluation points an agent leaves a snapshot and goes on; the collector turns n snapshots of one
// iteration into a [Row] of metrics, strictly in the order of iterations, and hands those to be
// saved to the writer, which puts them on the disk in the background.
//
// A [Method] is how a run comes to an algorithm: what it needs of graph, exchange and schedule,
// which Resolve holds the configuration to. fspda/train/config has a line for each algorithm of this
// module; [Register] adds those of other programs.
//
// Where a device works behind its callers' backs ([Eager]), agents look at their losses some
// iterations later (eager.go), but before anything of theirs is shown or saved; a divergence is
// found in the iteration in which it came. A run may have several devices, over which the agents
// are dealt ([Place]).
//
// Who looks on does so through a [Watch], in which agents leave single numbers, and steers through
// a [Control]; neither changes anything.
//
// What never changes a trajectory, by not one bit: the number of threads, evaluation points,
// checkpoints, a stop and a resume, a progress bar. What does: everything [Config.Fingerprint]
// covers.
//
// A network with batch norm is a [Buffered] model: each agent then has buffers of its own beside
// its vectors, which the training step moves and nobody else hears of. batchnorm.go says how the
// mean model, which never trained, comes to its own.
//
// The package states the interface it needs of a network ([Model]) and of a device (fspda/device);
// package cli introduces them. A run may also be spread over processes, each with one agent
// ([Member]): see member.go, and network.go for what it asks of the network.
//
// The mathematics is in fspda/train/algo, the run folder in folder.go and checkpoint.go.
package train
