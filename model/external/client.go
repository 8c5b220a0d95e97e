package external

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// client is a connection to a process that computes networks.
type client struct {
	conn  *net.UnixConn
	in    *bufio.Reader
	stage stage
	about *question // the network that it was told last; nil: none
	group int       // The process group of the client; 0: it is a part of another program.
	hangs bool      // The last request had no answer in time.
	// end ends the process, and returns the last lines that it printed.
	end func() (printed string)
}

// Error reports a client that did not answer a request.
type Error struct {
	Command string // the command of the client
	Do      string // the request
	Err     error  // what happened
	Detail  string // the traceback of the client, or the last lines that it printed
	final   bool   // another try cannot succeed
}

func (e *Error) Error() string {
	who := fmt.Sprintf("the program %q of the model", e.Command)
	if e.Command == "" {
		who = "the process that has the model"
	}
	text := fmt.Sprintf("external: %s, asked for %s: %v", who, e.Do, e.Err)
	if e.Detail != "" {
		text += "\n" + e.Detail
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// leastStart is the time that a client has at least for a request without a batch: before it
// answers one, it loads libraries, the model or the data.
const leastStart = time.Minute

// call sends a request and waits for its answer.
func (c *client) call(r request, limit time.Duration, rights ...byte) (*answer, error) {
	deadline := time.Time{}
	if limit > 0 && r.Batch == nil {
		limit = max(limit, leastStart)
	}
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	_ = c.conn.SetDeadline(deadline) // a closed connection fails below
	_, _, err := c.conn.WriteMsgUnix(r.encode(), rights, nil)
	var line []byte
	if err == nil {
		line, err = c.in.ReadBytes('\n')
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.hangs = true
		return nil, fmt.Errorf("no answer within %v: it hangs, or needs a longer client_timeout", limit)
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		return nil, errors.New("it ended without an answer")
	case err != nil:
		return nil, fmt.Errorf("its connection failed: %w", err)
	}
	a := &answer{}
	if err := json.Unmarshal(line, a); err != nil {
		return nil, fmt.Errorf("its answer is not a line of JSON: %w", err)
	}
	return a, nil
}
