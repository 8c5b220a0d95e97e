package disttest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// A system does not give the ports from firstPort to below lastPort to connections: Linux gives
// ports from 32768 on, macOS and Windows from 49152 on.
const firstPort, lastPort = 20000, 32768

// UnusedPort returns a port of this machine at which no program listens. It is not one that the
// system gives to a connection of another program before the test listens there, as a port that a
// listener got for ":0" and has closed may be.
func UnusedPort(tb testing.TB) int {
	tb.Helper()
	var err error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			if err := l.Close(); err != nil {
				tb.Fatal(err)
			}
			return port
		}
	}
	tb.Fatalf("none of 100 ports from %d to %d is unused: %v", firstPort, lastPort-1, err)
	return 0
}
