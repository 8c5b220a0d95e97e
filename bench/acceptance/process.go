package acceptance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Time limits for a process to exit: after an interrupt, and after a kill.
const (
	politely = 3 * time.Second
	atMost   = 10 * time.Second
)

// errStuck reports a process that does not exit even when killed, for example because the driver
// hangs.
var errStuck = errors.New("the process does not end, though it was killed: the driver may hang, see dmesg")

// job is the execution of a part.
type job struct {
	*Options
	out  *Outcome
	dir  string       // temporary files, removed afterwards
	log  io.Writer    // receives commands and their output
	save func() error // saves the results so far
	rate float64      // iterations a second of figure 1; 0: not known
	env  []string     // additional environment variables
}

// program runs the program and returns its standard output.
func (b *job) program(ctx context.Context, args ...string) ([]byte, error) {
	fmt.Fprintf(b.log, "\n$ %s\n", strings.Join(append(append(slices.Clone(b.env), "fspda"), args...), " "))
	var out bytes.Buffer
	tail := &tail{}
	cmd := exec.Command(b.Program, args...)
	cmd.Env = append(os.Environ(), b.env...)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, b.log), io.MultiWriter(b.log, tail)
	err := runProcess(ctx, cmd)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errStuck) {
		err = fmt.Errorf("fspda %s: %w: %s", command(args), err, tail.last())
	}
	return out.Bytes(), errors.Join(err, b.save())
}

// report runs the program and stores the JSON that it prints under a name.
func (b *job) report(ctx context.Context, name string, into any, args ...string) error {
	text, err := b.program(ctx, args...)
	if err != nil && len(text) == 0 {
		return err
	}
	if wrong := decode(text, into); wrong != nil {
		return errors.Join(err, fmt.Errorf("fspda %s: %w", command(args), wrong))
	}
	b.keep(name, text)
	return errors.Join(err, b.save())
}

// command returns the words of a command line before its flags.
func command(args []string) string {
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }); i >= 0 {
		args = args[:i]
	}
	return strings.Join(args, " ")
}

// runProcess runs a command until it or the context ends, and then kills all processes that it has
// started.
func runProcess(ctx context.Context, cmd *exec.Cmd) error {
	ownGroup(cmd)
	cmd.WaitDelay = atMost
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		killGroup(cmd) // its remaining children
		return err
	case <-ctx.Done():
	}
	return endProcess(cmd, ended)
}

// endProcess interrupts a process, and kills it if it does not exit.
func endProcess(cmd *exec.Cmd, ended <-chan error) error {
	_ = cmd.Process.Signal(os.Interrupt) // may have exited
	select {
	case err := <-ended:
		killGroup(cmd)
		return errors.Join(context.DeadlineExceeded, err)
	case <-time.After(politely):
	}
	killGroup(cmd)
	select {
	case err := <-ended:
		return errors.Join(context.DeadlineExceeded, err)
	case <-time.After(atMost):
		return errStuck
	}
}

// tail keeps the end of the data written to it.
type tail struct{ text []byte }

const tailLength = 4000

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	if n := len(t.text); n > tailLength {
		t.text = append(t.text[:0], t.text[n-tailLength:]...)
	}
	return len(b), nil
}

// last returns the program's error message, or else the last line.
func (t *tail) last() string {
	text := strings.TrimSpace(string(t.text))
	if i := strings.LastIndex(text, "fspda: "); i >= 0 {
		text = text[i+len("fspda: "):]
	} else if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 600 {
		text = string(r[:600]) + " …"
	}
	return text
}

// folder creates a folder for the files of a part.
func (b *job) folder(name string) (string, error) {
	path := filepath.Join(b.dir, name)
	return path, os.MkdirAll(path, 0o755)
}
