//go:build static || !((linux || darwin) && (amd64 || arm64))

package turbojpeg

// Library is unavailable on this system or in this build.
type Library struct{ Name string }

func open() (*Library, error) { return nil, notFound(nil) }

// Decoder is unavailable.
type Decoder struct{}

// NewDecoder returns ErrNotFound.
func (*Library) NewDecoder() (*Decoder, error) { return nil, ErrNotFound }

// Header returns ErrNotFound.
func (*Decoder) Header([]byte) (Header, error) { return Header{}, ErrNotFound }

// Decode returns ErrNotFound.
func (*Decoder) Decode(_, _ []byte, _ Header, _ int) error { return ErrNotFound }
