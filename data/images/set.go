package images

import "io"

// Set is the result of [Open].
type Set struct {
	Path    string
	Kind    string   // one of the formats in the package documentation
	Layout  string   // where the pictures of each split and their classes were found
	Classes []string // class names by label
	Train   Source   // nil if there are no training images
	Test    Source   // the images of val or test; nil if there are none
	Notes   []string // warnings for the user, such as a class without test images
	Memory  int64    // bytes that reading takes beyond the index and one image; 0 if none

	closers []io.Closer
}

// Close closes files and mappings. The sources of the set must not be used afterwards.
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

// OnClose closes c together with the set, for registered formats.
func (s *Set) OnClose(c io.Closer) { s.closers = append(s.closers, c) }
