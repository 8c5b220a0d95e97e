package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"fspda/bench"
)

// peer is a process that measures PyTorch, or the reason why there is none.
type peer struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string
	ended   chan error
	none    string
}

// answer is a line of bench/peers/card.py.
type answer struct {
	Torch  string  `json:"torch"`
	Device string  `json:"device"`
	CuDNN  int     `json:"cudnn"`
	NS     float64 `json:"ns"`
	Error  string  `json:"error"`
}

// startPeer starts the process on the device for a part.
func (b *job) startPeer(ctx context.Context) (*peer, error) {
	if b.Python == "" {
		return &peer{none: "PyTorch was not asked for"}, nil
	}
	fmt.Fprintf(b.log, "\n$ %s bench/peers/card.py %s\n", b.Python, b.Device)
	p, about, err := newPeer(ctx, b.Python, b.Device, b.dir, b.log)
	if err == nil && p.none == "" {
		b.out.Peer = fmt.Sprintf("PyTorch %s, cuDNN %d, on %s", about.Torch, about.CuDNN, about.Device)
	}
	return p, err
}

// newPeer starts the process on a device, with its script in dir, and returns its first answer: the
// versions of PyTorch and cuDNN, and the device. A missing Python or PyTorch is not an error: the
// peer then holds the reason.
func newPeer(ctx context.Context, python, device, dir string, log io.Writer) (p *peer, about answer, err error) {
	path := filepath.Join(dir, "card.py")
	if err := os.WriteFile(path, []byte(bench.CardPeer), 0o644); err != nil {
		return nil, about, err
	}
	p = &peer{cmd: exec.Command(python, path, device), answers: make(chan string), ended: make(chan error, 1)}
	p.cmd.Stderr = log
	p.cmd.Env = append(os.Environ(), "PYTHONUNBUFFERED=1")
	ownGroup(p.cmd)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, about, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, about, err
	}
	if err := p.cmd.Start(); err != nil {
		return &peer{none: fmt.Sprintf("no PyTorch: %v", err)}, about, nil
	}
	go p.read(out)
	if about, err = p.next(ctx); err != nil {
		p.close()
		return nil, about, err
	}
	if about.Error != "" {
		p.close()
		return &peer{none: "no PyTorch: " + about.Error}, about, nil
	}
	return p, about, nil
}

// read forwards lines until the process ends.
func (p *peer) read(out io.Reader) {
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		p.answers <- sc.Text()
	}
	p.ended <- p.cmd.Wait()
	close(p.answers)
}

// next waits for an answer.
func (p *peer) next(ctx context.Context) (a answer, err error) {
	select {
	case line, ok := <-p.answers:
		if !ok {
			return answer{Error: "the process of PyTorch ended"}, nil
		}
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			return a, fmt.Errorf("PyTorch answered %q: %w", line, err)
		}
		return a, nil
	case <-ctx.Done():
		return a, ctx.Err()
	}
}

// time returns the nanoseconds of a request, or the reason why there are none.
func (p *peer) time(ctx context.Context, request map[string]any) (ns float64, why string, err error) {
	if p.none != "" {
		return 0, p.none, nil
	}
	line, err := json.Marshal(request)
	if err != nil {
		return 0, "", err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return 0, "the process of PyTorch ended", nil
	}
	a, err := p.next(ctx)
	if err == nil && a.Error == "" && !(a.NS > 0) {
		a.Error = "PyTorch measured nothing"
	}
	return a.NS, a.Error, err
}

func (p *peer) close() {
	if p.cmd == nil {
		return
	}
	p.in.Close()
	killGroup(p.cmd)
	over := time.After(atMost)
	for {
		select {
		case <-p.answers: // the reader must not wait for us
		case <-p.ended:
			return
		case <-over: // the driver hangs
			return
		}
	}
}

// decode parses JSON, and quotes the text in its error.
func decode(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		start := strings.TrimSpace(string(text[:min(len(text), 80)]))
		return errors.Join(fmt.Errorf("printed %q, want JSON", start), err)
	}
	return nil
}

// keep stores the output of a command in the outcome.
func (b *job) keep(name string, text []byte) {
	if b.out.Reports == nil {
		b.out.Reports = map[string]json.RawMessage{}
	}
	b.out.Reports[name] = json.RawMessage(text)
}
