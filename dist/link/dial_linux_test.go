package link

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
)

// silentAddress returns an address of this machine at which a connection is neither accepted nor
// refused:
// its listener accepts nobody, and its queue is full.
func silentAddress(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprint("127.0.0.1:", name.(*syscall.SockaddrInet4).Port)
	for {
		c, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = c.Close() })
	}
}

// Addresses that cannot be reached do not hide the one that can, which is dialed first from then
// on.
func TestAddressesSideBySide(t *testing.T) {
	m := openMesh(t, 2, func(o *settings) { o.Listen, o.Log = "127.0.0.1:0", zap.NewNop() })
	var addresses []string
	for range 6 {
		addresses = append(addresses, silentAddress(t))
	}
	addresses = append(addresses, m[0].addresses()[0])
	p := newPeer(m[1], 0) // m[1].peers[0] is dialed at the same time
	for k, most := range []time.Duration{time.Minute, dialStagger} {
		took := time.Hour
		for try := 0; try < 20 && took > most; try++ { // a busy machine may delay some
			began := time.Now()
			if _, err := p.dialDirect(testContext(t), addresses); err != nil {
				t.Fatal(err)
			}
			took = time.Since(began)
		}
		if took > most {
			t.Errorf("dial %d took %v, want at most %v", k, took, most)
		}
		if p.first != len(addresses)-1 {
			t.Errorf("address %d is dialed first from now on, want %d", p.first, len(addresses)-1)
		}
	}
}
