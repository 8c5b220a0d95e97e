//go:build linux

package cli

import (
	"net"
	"sync"
	"time"

	"fspda/internal/rng"
)

// faultyProxy forwards TCP connections to an address, and injects faults into them.
type faultyProxy struct {
	to       string
	listener net.Listener

	mu      sync.Mutex
	conns   map[net.Conn]bool
	refused bool          // connections are closed at once
	opens   chan struct{} // closed when bytes may pass; nil: they pass
	delay   time.Duration // of each chunk
	flips   int           // bits to flip in the chunks to come
	draw    rng.Stream
}

func newFaultyProxy(at, to string, seed uint64) (*faultyProxy, error) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	p := &faultyProxy{to: to, listener: l, conns: map[net.Conn]bool{}, draw: rng.New(seed, "proxy")}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p, nil
}

// serve forwards one connection.
func (p *faultyProxy) serve(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer out.Close()
	p.mu.Lock()
	if p.refused {
		p.mu.Unlock()
		return
	}
	p.conns[in], p.conns[out] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			p.forward(pair[1], pair[0])
			in.Close()
			out.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, in)
	delete(p.conns, out)
}

func (p *faultyProxy) forward(dst, src net.Conn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			p.pass(buf[:n])
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass injects the present faults into a chunk.
func (p *faultyProxy) pass(chunk []byte) {
	p.mu.Lock()
	opens, delay := p.opens, p.delay
	if p.flips > 0 {
		p.flips--
		chunk[p.draw.IntN(len(chunk))] ^= 1 << p.draw.IntN(8)
	}
	p.mu.Unlock()
	if opens != nil {
		<-opens
	}
	time.Sleep(delay)
}

// cut breaks all connections and refuses others, until cut(false).
func (p *faultyProxy) cut(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = on
	if on {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

// stall lets no bytes pass, until stall(false).
func (p *faultyProxy) stall(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.opens == nil:
		p.opens = make(chan struct{})
	case !on && p.opens != nil:
		close(p.opens)
		p.opens = nil
	}
}

// slow delays each chunk.
func (p *faultyProxy) slow(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = by
}

// flip flips a bit in each of the next n chunks.
func (p *faultyProxy) flip(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flips = n
}

func (p *faultyProxy) close() {
	_ = p.listener.Close()
	p.stall(false)
	p.cut(true)
}
