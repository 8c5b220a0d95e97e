// Package executor runs the goroutine that owns a GPU's context.
//
// All work reaches the GPU through one [Executor]. Its goroutine takes items from an inbox in the
// order in which they are sent (inbox.go) and hands work to one stream of the GPU, and copies of
// batches to a second one. So device memory needs no lock, and may be used again as soon as it is
// given back: its next user comes later on the stream (pool.go).
//
// There are two kinds of items. A task runs on the goroutine at once: [Executor.Do]. An [Op] waits
// in a queue of dependency levels (opqueue.go) until the GPU needs work: [Executor.Enqueue] and its
// variants return at once. Operations that do not depend on each other may share a launch: equal
// operations of several agents ([Batchable]), and many small kernels of several levels
// ([Collector]). Results are bit-identical however operations are grouped.
//
// Conventions. A method that any goroutine may call says so, or queues its work; all others are for
// tasks and for the Send functions of operations, which run on the goroutine. Memory that kernels
// or copies read must not be given back before they are sent. After the first failure
// ([Executor.Fail]) nothing more is sent, and callbacks are still called. Finalisers give memory,
// graphs, events and library objects up through the Discard methods, which never wait (garbage.go).
//
// Where to look next: executor.go for the goroutine, opqueue.go for the order of operations,
// collector.go for launches of many kernels; device.go of package cuda opens an Executor.
package executor
