// Package jpeg decodes JPEG files, or a box of their pixels, several times as fast as image/jpeg
// and with the values of libjpeg-turbo, so that pixels equal Pillow's.
//
// [Decoder.Header] reads a file up to its first scan. [Decoder.Decode] decodes the part of the
// picture that a box needs: it reads all Huffman codes, so that damage anywhere is an error, and
// transforms only the blocks under the box. It supports baseline and progressive pictures with one
// component or with the usual sampling of three, which is nearly every photograph. Everything else,
// and anything doubtful, is an error: the caller then leaves the file to image/jpeg, which explains
// damage.
//
// The inverse cosine transform is libjpeg's accurate integer method (jidctint): Loeffler,
// Ligtenberg and Moschytz, Practical Fast 1-D DCT Algorithms with 11 Multiplications (1989). It has
// a definition in Go, and assembly for AVX2 and NEON with the same bits.
//
// A [Decoder] belongs to one goroutine at a time and keeps its memory for the next picture.
//
// Where to look next: decode.go for the order of work, block.go for the Huffman codes,
// scan.go for progressive pictures.
package jpeg
