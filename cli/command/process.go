package command

import (
	"context"
	"io"
)

// StopAtEOF is the environment variable that makes the program stop, as at SIGTERM, when its
// standard input ends.
const StopAtEOF = "FSPDA_STOP_AT_EOF"

// UntilEOF returns a context that ends when the input ends. A child process whose standard input is
// a pipe of its parent thereby stops when the parent exits.
func UntilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx
}
