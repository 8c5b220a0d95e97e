package external

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Options configure a Program.
type Options struct {
	Command string        // starts a client; "": the process that started this one makes them
	Clients int           // clients that work at once; 0 stands for 1
	Timeout time.Duration // time for an answer; 0: any
	Output  io.Writer     // gets what clients print, and that one was started again; nil: the error output
}

// attempts is how often a call is tried, each time with another client.
const attempts = 3

// Program makes clients as it needs them. It is safe for concurrent use.
type Program struct {
	o     Options
	free  chan *client // idle clients; nil stands for one that is still to be started
	lines *lines
}

// New returns the Program of a command. It starts no client.
func New(o Options) *Program {
	p := &Program{o: o, free: make(chan *client, max(1, o.Clients)),
		lines: &lines{out: cmp.Or[io.Writer](o.Output, os.Stderr)}}
	for range cap(p.free) {
		p.free <- nil
	}
	return p
}

// Close ends the clients. Calls that are in progress come first.
func (p *Program) Close() {
	for range cap(p.free) {
		if c := <-p.free; c != nil {
			c.close()
		}
	}
	for range cap(p.free) {
		p.free <- nil
	}
}

// ClientMemory returns the bytes of memory that the processes of the clients have beside the shared
// memory now; 0: none is running, or the system does not tell. Calls that are in progress come first.
func (p *Program) ClientMemory() uint64 {
	groups := map[int]bool{}
	var idle []*client
	for range cap(p.free) {
		c := <-p.free
		if idle = append(idle, c); c != nil {
			groups[c.group] = true
		}
	}
	for _, c := range idle {
		p.free <- c
	}
	if p.o.Command == "" { // the process that started this one is the only client
		return memoryOf(func(pid, _ int) bool { return len(groups) > 0 && pid == os.Getppid() })
	}
	return memoryOf(func(_, group int) bool { return groups[group] })
}

// do makes a request of a client and returns its answer. prepare makes the request for the client;
// it is called again with another client where one fails. read reads the answer in the client's
// memory. about is the network that the client must have been told before; nil: none.
func (p *Program) do(what string, about *question, prepare func(c *client) (request, error),
	read func(c *client, a *answer) error) error {
	c := <-p.free
	var err error
	for try := range attempts {
		if try > 0 {
			p.say("a client of the model is started again: " + strings.TrimPrefix(err.Error(), "external: "))
		}
		if c, err = p.try(c, what, about, prepare, read); err == nil {
			break
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.final {
			break
		}
	}
	p.free <- c
	return err
}

// try makes a request of a client, or of a new one. After an error there is none.
func (p *Program) try(c *client, what string, about *question, prepare func(c *client) (request, error),
	read func(c *client, a *answer) error) (*client, error) {
	if c == nil {
		var err error
		if c, err = p.start(); err != nil {
			return nil, err
		}
	}
	failed := func(do string, err error, traceback string) (*client, error) {
		printed := c.end()
		return nil, &Error{Command: p.o.Command, Do: do, Err: err, Detail: cmp.Or(traceback, printed)}
	}
	if about != nil && c.about != about {
		a, err := c.call(about.request, p.o.Timeout)
		if err != nil {
			return failed(about.Do, err, "")
		} else if a.Error != "" {
			return failed(about.Do, fmt.Errorf("%s", a.Error), a.Traceback)
		} else if !a.equal(about.facts) {
			c.end()
			return nil, &Error{Command: p.o.Command, Do: about.Do, final: true, Err: errors.New("it describes " +
				"another network than at first: the names and shapes of its tensors must be the same at each start")}
		}
		c.about = about
	}
	r, err := prepare(c)
	if err != nil {
		return c, err
	}
	a, err := c.call(r, p.o.Timeout)
	if err != nil {
		return failed(what, err, "")
	} else if a.Error != "" {
		return failed(what, fmt.Errorf("%s", a.Error), a.Traceback)
	}
	if err := read(c, a); err != nil {
		c.end()
		return nil, &Error{Command: p.o.Command, Do: what, Err: err, final: true}
	}
	return c, nil
}

// start makes a client and greets it.
func (p *Program) start() (*client, error) {
	fail := func(err error, detail string, final bool) (*client, error) {
		return nil, &Error{Command: p.o.Command, Do: "hello", Err: err, Detail: detail, final: final}
	}
	file, err := shared()
	if err != nil {
		return fail(err, "", true)
	}
	c, err := p.connect()
	if err != nil {
		return fail(err, "", true)
	}
	c.stage.file = file
	a, err := c.call(request{Do: "hello", Protocol: Version}, p.o.Timeout, rights(file.Fd())...)
	if err != nil {
		return fail(err, c.end(), false)
	}
	switch {
	case a.Error != "":
		c.end()
		return fail(fmt.Errorf("%s", a.Error), a.Traceback, true)
	case a.Protocol != Version:
		c.end()
		return fail(fmt.Errorf("it speaks version %d of the protocol, want %d: install the Python package of this "+
			"program, or change the client as docs/external-models.md says", a.Protocol, Version), "", true)
	}
	return c, nil
}

// say prints a line about the clients.
func (p *Program) say(text string) {
	p.lines.write("fspda: ", strings.TrimPrefix(text, "external: ")+"\n")
}

// close lets the client end by itself, as it does without a connection.
func (c *client) close() { _ = c.conn.Close() }

// lines writes whole lines of several clients to one output.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) write(mark, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.out, mark+text) // the training does not depend on it
}

// keptLines is the number of printed lines that an error shows.
const keptLines = 30

// printer passes on what a client prints, line by line, and keeps the last lines.
type printer struct {
	to *lines

	mu   sync.Mutex
	part []byte
	last []string
}

// Write takes what the client printed.
func (w *printer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part = append(w.part, text...)
	for {
		line, rest, ok := strings.Cut(string(w.part), "\n")
		if !ok {
			break
		}
		w.part = []byte(rest)
		w.to.write("model: ", line+"\n")
		w.last = append(w.last, line)
		if len(w.last) > keptLines {
			w.last = w.last[1:]
		}
	}
	return len(text), nil
}

// text returns the last lines.
func (w *printer) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimRight(strings.Join(append(w.last, string(w.part)), "\n"), "\n ")
}
