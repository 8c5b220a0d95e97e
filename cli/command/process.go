package command

import (
	"context"
	"io"
)

// UntilEOF returns a context that ends when the input does: when whoever started this process is
// gone.
func UntilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx
}
