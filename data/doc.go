// Package data is where examples come in and batches go out.
//
// A [Set] is a labelled set of images in memory, kept as bytes: MNIST from its IDX files ([LoadMNIST]), or digits that the
// package draws itself ([Synthetic]); [Open] chooses by name. A [Partition] deals the training examples out to agents, alike or
// as unlike as wanted ([ParsePartition]); [Histogram] and [Skew] say how unlike they came out. An [Order] says which examples of
// its shard an agent sees at which step, and a [Loader] prepares these batches ahead of time.
//
// Nothing here remembers. The shards are a pure function of (labels, seed), the batch of a step is one of (seed, agent, step),
// and a drawn digit is one of (seed, split, number): a checkpoint keeps the step and the [Set.Fingerprint], and a run that
// resumes sees the same batches bit for bit. All randomness comes from the streams partition, batch and synthetic of
// fspda/internal/rng.
//
// Duties of the caller: pixels, labels and shards handed over are not changed afterwards; a batch from [Loader.Next] is only
// read, and given back with [Loader.Release], for it may name examples of the set where they lie; a Loader is closed. Loaders of different agents run at the same time, each used by
// one goroutine.
//
// Conventions. Examples are rows; what is named dst is written. Example numbers are int32 and count from 0 within their [Split].
// A file, spec or number from outside that does not fit is an error that says what to do; a call that breaks a duty panics.
//
// Where to look next: example_test.go for the way from a set to a batch, partition.go for the table of partitions, pen.go for how
// a digit is drawn.
package data
