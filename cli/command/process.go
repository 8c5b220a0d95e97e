package command

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// UntilStopped returns a context that ends at Ctrl-C, at SIGTERM, and when the terminal is closed
// (SIGHUP), unless this signal is ignored, as under nohup. A second Ctrl-C or SIGTERM ends the
// program at once. Closing a terminal may send SIGHUP twice, and ends the reader of a pipe, so that
// neither ends a program that is stopping.
func UntilStopped(ctx context.Context) context.Context {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, restore := signal.NotifyContext(ctx, signals...)
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
		restore()
	})
	return ctx
}

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
