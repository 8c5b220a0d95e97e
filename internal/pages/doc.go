// Package pages requests huge pages for memory that is accessed in random order.
//
// A processor caches the addresses of a few thousand pages (in its TLB). Random accesses to more
// memory than that, such as the examples of a batch, miss this cache; pages of 2 MB avoid the
// misses. [Large] requests them; the request affects only speed.
//
// [Zeros] does the same for memory that may have been used before. The caller must call either
// before writing to the memory. Where to look next: large_linux.go.
package pages
