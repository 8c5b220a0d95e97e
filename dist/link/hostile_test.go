package link

import (
	"errors"
	"net"
	"runtime"
	"testing"
	"time"
)

// heap returns the memory in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A client that sends garbage to a listener without authenticating is disconnected.
func TestGarbageStreamsUseBoundedMemory(t *testing.T) {
	dir := t.TempDir()
	if err := WriteCredentials(dir, "test", 2, time.Hour); err != nil {
		t.Fatal(err)
	}
	m := openMesh(t, 2, func(o *settings) {
		withDirect(o)
		o.TLS = credentials(t, dir, "test", o.Self)
	})
	before := heap()
	noise := make([]byte, 64<<10)
	for name, at := range map[string]string{"routes": address(m[0]), "direct links": m[0].addresses()[0]} {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		sent := 0
		for ; err == nil && sent < 256<<20; sent += len(noise) {
			_, err = conn.Write(noise)
		}
		if failure, ok := errors.AsType[net.Error](err); err == nil || ok && failure.Timeout() {
			t.Errorf("%s: accepted %d bytes of garbage: %v", name, sent, err)
		}
		_ = conn.Close()
	}
	swap(t, m, 5, 0, 5)
	if after := heap(); after > before+8<<20 {
		t.Errorf("%d bytes more are in use", after-before)
	}
}

// A peer that ignores the limits of a stream cannot make a node keep more than they allow.
func TestStreamsAreBounded(t *testing.T) {
	n := &Node{opt: Options{Agents: 2}, bodyCodec: bodyCodec{dim: 10 << 20}}
	p := newPeer(n, 1)
	l := newLink(p, nil, true)
	p.link = l
	for k := range 3 {
		h := header{kind: kindData, seq: uint64(k), total: 40 << 20, raw: 40 << 20}
		var invalid *FrameError
		if err := l.check(&h); k < 2 && err != nil || k == 2 && !errors.As(err, &invalid) {
			t.Errorf("message %d of 40 MB: %v", k, err)
		}
		p.in[exchanges].queue = append(p.in[exchanges].queue, &recvMessage{seq: h.seq, total: int(h.total)})
	}
}
