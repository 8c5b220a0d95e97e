package command

import (
	"context"
	"io"
)

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
