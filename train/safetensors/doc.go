// Package safetensors writes and reads named tensors in the safetensors format, in which
// checkpoints and exported models are kept.
//
// A file is eight bytes of header length (little-endian), a JSON header, and the values of all
// tensors end to end, little-endian and row-major. The header maps each name to its element type,
// its shape and the two byte offsets of its values, counted from the end of the header; the name
// "__metadata__" maps to an object of strings instead. The format is specified at
// https://github.com/huggingface/safetensors.
//
// [Write] streams tensors in the order given. [Open] and [Read] look at the header only and check
// all of it: afterwards every tensor is known to lie inside the file, not to overlap another, and
// to be as long as its type and shape demand. [Load] and [LoadInto] then fetch one tensor at a
// time.
//
// Duties of the caller: to write beside the final name and rename, if a torn file must never be
// seen; to close a [File] that came from Open; not to change the bytes below a File while it is in
// use. A File may be used by several goroutines.
//
// Convention: slices named dst are written, all others are only read. No error leaves out the name
// of the file, where there is one, and of the tensor concerned. No header, however damaged, makes
// Read allocate more than a small multiple of the header's real size.
//
// Where to look next: write.go, read.go, then header.go for what makes a header valid.
package safetensors
