package link

// segments is a message body in several parts, which need not be adjacent in memory.
type segments [][]byte

func (s segments) size() (n int) {
	for _, part := range s {
		n += len(part)
	}
	return n
}

// at returns the bytes from offset on that lie in one part, at most n. It returns nil beyond the
// end.
func (s segments) at(offset, n int) []byte {
	for _, part := range s {
		if offset < len(part) {
			return part[offset:min(len(part), offset+n)]
		}
		offset -= len(part)
	}
	return nil
}
