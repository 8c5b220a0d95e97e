// Package safetensors writes and reads named tensors in the safetensors format, the format of
// checkpoints and exported models.
//
// A file is eight bytes of header length (little-endian), a JSON header, and the values of all
// tensors, contiguous, little-endian and row-major. The header maps each name to its element type,
// its shape and the two byte offsets of its values, relative to the end of the header; the name
// "__metadata__" maps to an object of strings instead. The format is specified at
// https://github.com/huggingface/safetensors.
//
// [Write] streams tensors in the order given. [Open] and [Read] read and validate only the header:
// afterwards every tensor is known to lie inside the file, not to overlap another, and to be as
// long as its type and shape require. [Load] and [LoadInto] then read one tensor at a time.
//
// Duties of the caller: to write under a temporary name and rename if readers must not see a
// partial file; to close a [File] returned by Open; not to change the file while a File is in use.
// A File is safe for concurrent use.
//
// Convention: slices named dst are written, all others are only read. Every error names the file,
// if there is one, and the tensor concerned. A damaged header never makes Read allocate more than a
// small multiple of the header's real size.
//
// Where to look next: write.go, read.go, then header.go for the validation of a header.
package safetensors
