//go:build linux || darwin

package external

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SocketVariable is the environment variable in which a client finds the number of its socket.
const SocketVariable = "FSPDA_SOCKET"

// controlVariable is the environment variable with the number of a socket over which the process
// that started this one gets the sockets of its clients.
const controlVariable = "FSPDA_CONTROL"

// rights encodes descriptors that travel over a socket.
func rights(fds ...int) []byte { return unix.UnixRights(fds...) }

// connect makes a client: a process of the command, or a part of the process that started this one.
func (p *Program) connect() (*client, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	own, theirs := os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")
	defer own.Close()
	defer theirs.Close()
	conn, err := net.FileConn(own)
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn.(*net.UnixConn), in: bufio.NewReader(conn)}
	if p.o.Command == "" {
		c.end = func() string { c.close(); return "" }
		return c, hand(theirs)
	}
	if c.end, err = p.launch(c, theirs); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// control is the socket of controlVariable.
var control = sync.OnceValues(func() (*net.UnixConn, error) {
	fd, err := strconv.Atoi(os.Getenv(controlVariable))
	if err != nil {
		return nil, errors.New("no program is named: give the command that starts it with --command, as in " +
			"--command 'python3 my_model.py'")
	}
	f := os.NewFile(uintptr(fd), "control")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
})

// hand gives a socket to the process that started this one.
func hand(socket *os.File) error {
	c, err := control()
	if err == nil {
		_, _, err = c.WriteMsgUnix([]byte("s"), rights(int(socket.Fd())), nil)
	}
	return err
}

// patience is how long a client may take to end, and one that hangs to print where. Its output is
// read for as long after its end, if a process of another group still has it open.
const patience = 10 * time.Second

// launch starts a process of the command with a socket.
func (p *Program) launch(c *client, socket *os.File) (end func() string, err error) {
	output, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", execute(p.o.Command))
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = theirs, theirs, []*os.File{socket}
	// Python prints each line at once, so that none is lost when the process is killed.
	cmd.Env = append(os.Environ(), SocketVariable+"=3", "PYTHONUNBUFFERED=1")
	cmd.SysProcAttr = attributes() // Ctrl-C in a terminal does not reach another group of processes.
	started, ended, read := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the system ends the process when the thread that started it ends
		err := cmd.Start()
		theirs.Close()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its end shows at the socket
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		output.Close()
		return nil, fmt.Errorf("the system cannot start it: %w", err)
	}
	out := &printer{to: p.lines}
	go func() {
		_, _ = io.Copy(out, output)
		output.Close()
		close(read)
	}()
	c.group = cmd.Process.Pid
	return func() string {
		c.close()
		wait := func() bool {
			select {
			case <-ended:
				return true
			case <-time.After(patience):
				return false
			}
		}
		if c.hangs || !wait() {
			_ = syscall.Kill(-c.group, syscall.SIGABRT) // Python prints where it is
			wait()
		}
		_ = syscall.Kill(-c.group, syscall.SIGKILL) // The processes that it has started end, too.
		<-ended
		_ = output.SetReadDeadline(time.Now().Add(patience)) // Another process may keep the output open.
		<-read
		return out.text()
	}, nil
}

// execute lets the shell become the program, if the command is one, so that signals reach it.
func execute(command string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	if strings.ContainsAny(command, ";&|<>()`\n") || strings.Contains(first, "=") {
		return command
	}
	return "exec " + command
}
