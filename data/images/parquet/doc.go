// Package parquet reads pictures from parquet shards as Hugging Face keeps them: a column image with the JPEG or PNG file of a
// picture in bytes, and a column label of integers.
//
// A program that imports it opens such shards with [images.Open]: a file, a pattern, or a folder with *.parquet in it or in data/.
// Shards for training and testing are told apart by the words train, validation or test in their names. Class names are those that
// the datasets library has written into the files, or else the numbers.
//
// Pictures are in the order of the files, not of the classes as elsewhere, because parquet is compressed in pages and read forwards:
// one picture at a random place costs the pages before it in its row group. Read it in order, as `fspda data prepare` does once.
//
// The package stands apart from images because the library is large. Where to look next: columns.go for what a file must have,
// rows.go for how a row is found.
package parquet
