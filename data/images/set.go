package images

import "io"

// Set is what [Open] finds at a path.
type Set struct {
	Path    string
	Kind    string   // what it is: one of the names in the package's documentation
	Classes []string // by label
	Train   Source   // nil where there are no training pictures
	Test    Source   // the pictures of val or test; nil where there are none
	Notes   []string // what a person should know of it, such as a class without test pictures

	closers []io.Closer
}

// Close gives back files and mappings. The sources of the set may not be used afterwards.
func (s *Set) Close() error {
	var first error
	for _, c := range s.closers {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	s.closers = nil
	return first
}

// OnClose has c closed together with the set. It is for formats that register themselves.
func (s *Set) OnClose(c io.Closer) { s.closers = append(s.closers, c) }
