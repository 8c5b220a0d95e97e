// Package parquet reads images from tables as Hugging Face stores them: Parquet shards, and the
// Arrow files of save_to_disk. A row has an image as JPEG or PNG and a label.
//
// In programs that import it, [images.Open] opens such tables: a file, a pattern, or a folder with
// shards in one of the usual layouts ([images.Expand]). The words train, validation or test in the
// names of shards or of their folders select the split. The columns are named in
// [images.Options], have the types Image and ClassLabel by the datasets library, or those with
// a usual name, such as image and label.
//
// Labels are integers, booleans or strings. Class names are those stored by the datasets library;
// or false and true; or the strings, sorted; or the numbers. A row with the label -1 or without
// one is left out, with a note.
//
// Images are in the order of the files, not sorted by class as elsewhere. Parquet is compressed in
// pages, and reading an image reads its page, which may hold a thousand of them: read in order, as
// `fspda data prepare` does. Pages that were read stay in memory, up to [CacheBytes]; a page may
// have 512 MiB, which is checked when a set is opened.
//
// Parquet is decoded by parquet-go, and Arrow by fspda/data/images/arrow. Files are untrusted:
// sizes of pages are checked before they are read.
//
// Where to look next: rows.go for a split, columns.go for the choice of columns, labels.go for
// labels, file.go and pages.go for Parquet, saved.go for Arrow.
package parquet
