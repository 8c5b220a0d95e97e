// Package data loads data sets, partitions them among agents, and produces batches.
//
// A [Set] is a labelled set of images. Small sets are stored in memory as bytes: MNIST from its IDX
// files ([LoadMNIST]), CIFAR-10 ([LoadCIFAR10]), or generated digits ([Synthetic]). Large sets are
// decoded on demand ([FromImages]): from any format that fspda/data/images opens, or generated as
// JPEG files ([SyntheticImages]). [Open] selects a set by name. A [Partition] distributes the
// training examples among agents, homogeneously or heterogeneously ([ParsePartition]); [Histogram]
// and [Skew] measure the result. An [Order] determines the examples of an agent at each step, and a
// [Loader] prepares these batches in the background, with the augmentation [Augment].
//
// Decoding on demand: the source returns the file; the pixels under the crop are decoded at full
// size ([Decoder]), scaled to the crop by an antialiased triangle filter and mirrored, in one pass
// over their rows. A fixed number of workers
// decodes images for all loaders and evaluations of a set, so memory is bounded by workers and
// batches. An image that cannot be read is an error that names it, or is skipped ([OnBad]).
//
// There is no mutable state. The shards are a pure function of (labels, seed), the examples of a
// step one of (seed, agent, step), the augmentation of each one of (seed, agent, step, position),
// and a generated image one of (seed, split, number). A checkpoint stores the step and the
// [Set.Fingerprint], and a resumed run gets the same batches bit for bit, with any number of
// workers. The fingerprint includes the decoder, since decoders differ in the last bits. All
// randomness comes from the streams partition, batch, augment, synthetic and synthetic-images of
// fspda/internal/rng.
//
// Duties of the caller: pixels, labels and shards passed in must not change afterwards; a batch
// from [Loader.Next] is read-only, since it may refer to the set's memory, and must be returned
// with [Loader.Release]; a Loader must be closed, and after all loaders the Set. Loaders of
// different agents may run concurrently, each used by one goroutine.
//
// Conventions. Examples are rows; an image is rows of RGB pixels; arguments named dst are written.
// Example indices are int32 and count from 0 within their [Split]. Invalid input from outside (a
// file, spec or number) is an error with a remedy; misuse by the caller panics.
//
// Where to look next: example_test.go for the steps from a set to a batch, partition.go for the
// table of partitions, decoded_images.go for decoding, resample.go for the filter, pen.go for
// generated digits.
package data
