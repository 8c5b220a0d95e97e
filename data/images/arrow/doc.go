// Package arrow reads and writes tables of the Arrow IPC formats, in memory that the caller maps.
//
// [Open] finds the columns of a file (ARROW1) or a stream in a slice of bytes, and copies nothing.
// [Writer] writes a file that any Arrow library reads. Both know columns of integers, booleans,
// strings and bytes, also within structs; a column within a struct is named STRUCT.COLUMN. Other
// columns are skipped. Compressed batches, dictionaries and big-endian files are refused.
//
// Bytes of a file are never trusted: every offset is checked once, when a batch is read. A wrong
// one is an error, never a panic, and no claimed length determines an allocation.
//
// The package stands in for Arrow's own Go module, which takes 42 s of processor time to compile;
// see docs/decisions/0011-tables-of-pictures.md. The layout follows Arrow's format specification,
// version 1.0 and later ("IPC message format", "Physical memory layout").
//
// Where to look next: column.go for the values, reader.go and schema.go for messages and fields,
// writer.go for the opposite direction.
package arrow
