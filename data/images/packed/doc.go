// Package packed stores images in files that are mapped into memory: decoded and scaled once, then
// read without copying.
//
// [Prepare] makes a packed set from any [images.Set]; [Open] maps one, and [Check] verifies it
// completely. In programs that import this package, [images.Open] opens packed sets too.
//
// A set is a folder:
//
//	manifest.json        settings, classes, shards with sizes and SHA-256, and its own checksum
//	train-00000.arrow …  shards of about 256 MB: files of Arrow IPC, readable by any Arrow library,
//	test-00000.arrow …   with the columns label, width and height (int32), pixels or jpeg (binary)
//	                     and name (string); see fspda/data/images/arrow
//	classes.txt          the class names, one per line, label 0 first
//	bad.jsonl            the images that were left out, and why; absent if there are none
//
// pixels are the rows of an [images.RGB]. During preparation, journal.jsonl lists the finished
// shards. A shard is written under a temporary name, renamed, and then recorded in the journal; the
// manifest comes last. So calling Prepare again continues an interrupted preparation, even after a
// power failure, and the bytes do not depend on interruptions or the number of workers.
//
// Where to look next: prepare.go for the conversion of an image, manifest.go for the contents of a
// set.
package packed
