package nats

// segments is a body in parts, which lie where they were made.
type segments [][]byte

// size is the number of bytes.
func (s segments) size() (n int) {
	for _, part := range s {
		n += len(part)
	}
	return n
}

// at returns what stands at byte offset on within one part, at most n bytes. There is nothing
// behind the end.
func (s segments) at(offset, n int) []byte {
	for _, part := range s {
		if offset < len(part) {
			return part[offset:min(len(part), offset+n)]
		}
		offset -= len(part)
	}
	return nil
}
