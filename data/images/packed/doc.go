// Package packed keeps pictures in files that are mapped into memory: decoded and scaled once, read
// ever after without a copy.
//
// [Prepare] makes a packed set from any [images.Set]; [Open] maps one, and [Check] verifies all of
// it. A program that imports this package opens packed sets with [images.Open] too.
//
// A set is a folder:
//
//	manifest.json        what it is: settings, classes, shards with their sizes and SHA-256, and a checksum of itself
//	train-00000.arrow …  shards of about 256 MB: Arrow IPC files that any Arrow library reads, with the columns label, width and
//	test-00000.arrow …   height (int32), pixels or jpeg (binary) and name (string)
//	classes.txt          the name of a class a line, label 0 first
//	bad.jsonl            the pictures that were left out, and why; absent if there are none
//
// pixels are the rows of an [images.RGB]. While a set is made, journal.jsonl says which shards are
// finished. A shard is written beside and renamed, then noted in the journal; the manifest comes
// last. So a preparation that ends at any moment, power cuts included, is taken up where it was by
// calling Prepare again, and the bytes are the same, whatever the number of workers was.
//
// The package stands apart from images because Arrow is a large library, which programs that read
// folders need not carry.
//
// Where to look next: prepare.go for the way of a picture, manifest.go for what is kept of a set.
package packed
