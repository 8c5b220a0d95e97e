// Package fetch downloads data sets and verifies them.
//
// A [Set] lists the files of a data set with their checksums and download addresses. [Set.Fetch]
// downloads missing files into a folder. A file is written under a temporary name and renamed after
// its SHA-256 is verified, so an existing file is always complete; an interrupted download is
// continued if the server supports it. ImageNet, which requires an account, is also a Set:
// [Set.Verify] reports which files exist and whether they are intact.
//
// The package handles HTTP and files; package data reads their contents.
//
// Where to look next: sets.go for the data sets, get.go for the download of a file.
package fetch
