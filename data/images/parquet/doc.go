// Package parquet reads pictures from parquet shards as Hugging Face keeps them: a column image
// with the JPEG or PNG file of a picture in bytes, and a column label of integers.
//
// A program that imports it opens such shards with [images.Open]: a file, a pattern, or a folder
// with *.parquet in it or in data/. Shards for training and testing are told apart by the words
// train, validation or test in their names. Class names are those that the datasets library has
// written into the files, or else the numbers.
//
// Pictures are in the order of the files, not of the classes as elsewhere, because parquet is
// compressed in pages and read forwards: one picture at a random place costs the pages before it in
// its row group. Read it in order, as `fspda data prepare` does once.
//
// It reads what such sets need of the format, and no more: columns that are not repeated, of bytes
// and integers; pages of both versions; PLAIN, dictionaries and the DELTA encodings; Snappy, gzip,
// Zstandard and LZ4. Everything else is refused by its name when a set is opened. It is written
// here because a library would be the largest part of the program, in time to compile most of all
// (Arrow's brings its writer and with it 30 s of processor time), and because files come from
// anywhere: what a file claims, lengths of lists, runs and pages, is not believed before it is
// there.
//
// Where to look next: footer.go for what a file says about itself, columns.go for what it must
// have, column.go and page.go for how values are read, rows.go and cache.go for how a row is found.
package parquet
