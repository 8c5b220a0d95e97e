// Package plan finds the intermediate values of a network and assigns memory to them.
//
// [Dataflow] returns the values of a device.Code and the calls that write and read them.
// A [Block] is the memory of one value, or of several that overwrite each other in place. Its
// [Lifetime] is the range of steps that read or write it. [Pack] gives every block an offset, such
// that blocks that are in use at the same step do not overlap.
//
// The compiler of networks, fspda/model, packs the float32 values of a device.Code. A device that
// changes formats, or fuses calls, packs its own blocks again: see fspda/cuda/compiler. Sizes are
// in any unit, as long as the alignment has the same one.
package plan
