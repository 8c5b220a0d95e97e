// Package fetch downloads data sets and verifies them.
//
// A [Set] is the files of a data set with their checksums and the places where they can be had.
// [Set.Fetch] brings what is not there yet into a folder. A file is written beside its place and
// renamed when its SHA-256 is right, so that what stands in its place is whole; a download that was
// interrupted goes on where it stopped, if the server can do that. What cannot be downloaded
// without an account, ImageNet, is a Set as well: [Set.Verify] tells what is there and whether it
// is intact.
//
// The package knows HTTP and files, not what is in them: package data reads them.
//
// Where to look next: sets.go for the data sets, get.go for the download of a file.
package fetch
