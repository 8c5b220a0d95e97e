package command

import (
	"context"
	"io"
	"os/signal"
	"syscall"
)

// StopAtEOF is the environment variable that makes the program stop, as at SIGTERM, when its
// standard input ends.
const StopAtEOF = "FSPDA_STOP_AT_EOF"

// UntilEOF returns a context that ends when the input ends. A child process whose standard input is
// a pipe of its parent thereby stops when the parent exits. Its output may be a pipe of the parent
// as well, which must not end it before it has left a checkpoint: writes there fail from then on.
func UntilEOF(ctx context.Context, in io.Reader) context.Context {
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx
}
