// Package parquet reads images from parquet shards of Hugging Face: a column image with the JPEG or
// PNG file in bytes, and a column label of integers.
//
// In programs that import it, [images.Open] opens such shards: a file, a pattern, or a folder with
// *.parquet in it or in data/. The words train, validation or test in the names select the split.
// Class names are those stored in the files by the datasets library, or else the numbers.
//
// Images are in the order of the files, not sorted by class as elsewhere, because parquet is
// compressed in pages and read forwards: reading one image costs all preceding pages of its row
// group. Read it in order, as `fspda data prepare` does once.
//
// It supports the part of the format that such sets use: columns of bytes and integers that are not
// repeated; pages of both versions; PLAIN, dictionary and the DELTA encodings; Snappy, gzip,
// Zstandard and LZ4. Anything else is an error that names the feature when a set is opened. It does
// not use a library because that would be the largest part of the program, mainly in compile time
// (Arrow's includes its writer and 30 s of processor time), and because files are untrusted:
// claimed lengths of lists, runs and pages never determine an allocation before the data is
// present.
//
// Where to look next: footer.go for the metadata of a file, columns.go for the required columns,
// column.go and page.go for reading values, rows.go and cache.go for finding a row.
package parquet
