// Package data is where examples come in and batches go out.
//
// A [Set] is a labelled set of images. Small ones lie in memory as bytes: MNIST from its IDX files
// ([LoadMNIST]), CIFAR-10 ([LoadCIFAR10]), or digits that the package draws itself ([Synthetic]).
// Pictures of any number and size are decoded when they are wanted ([FromPictures]): from whatever
// fspda/data/images opens, or drawn as JPEG files ([SyntheticImages]). [Open] chooses by name. A
// [Partition] deals the training examples out to agents, alike or as unlike as wanted
// ([ParsePartition]); [Histogram] and [Skew] say how unlike they came out. An [Order] says which
// examples of its shard an agent sees at which step, and a [Loader] prepares these batches ahead of
// time, varied by an [Augment].
//
// What becomes of a picture: its source hands out the file; libjpeg-turbo, where the machine has
// it, or image/jpeg decodes it, at a fraction of its size if that is enough ([Decoder]); a box of
// it is scaled to the crop by an antialiased triangle filter and mirrored, in one pass over its
// rows. A fixed number of workers does so for all loaders and evaluations of a set, a picture each,
// so memory is bounded by workers and batches. A picture that cannot be read is an error that names
// it, or skipped ([OnBad]).
//
// Nothing here remembers. The shards are a pure function of (labels, seed), the examples of a step
// are one of (seed, agent, step), what is done to each one of (seed, agent, step, position), and a
// drawn digit or picture is one of (seed, split, number): a checkpoint keeps the step and the
// [Set.Fingerprint], and a run that resumes sees the same batches bit for bit, whatever the number
// of workers. The fingerprint names the decoder, since two decoders differ in the last bits. All
// randomness comes from the streams partition, batch, augment, synthetic and synthetic-images of
// fspda/internal/rng.
//
// Duties of the caller: pixels, labels and shards handed over are not changed afterwards; a batch
// from [Loader.Next] is only read, for it may name examples of the set where they lie, and given
// back with [Loader.Release]; a Loader is closed, and after all loaders the Set. Loaders of
// different agents run at the same time, each used by one goroutine.
//
// Conventions. Examples are rows; a picture is rows of red, green and blue; what is named dst is
// written. Example numbers are int32 and count from 0 within their [Split]. A file, spec or number
// from outside that does not fit is an error that says what to do; a call that breaks a duty
// panics.
//
// Where to look next: example_test.go for the way from a set to a batch, partition.go for the table
// of partitions, pictures.go for the way of a picture, resample.go for the filter, pen.go for how a
// digit is drawn.
package data
