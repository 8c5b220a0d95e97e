package web

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// mostConnections is how many a server holds at a time. What comes beyond is closed at once, so that it costs nothing.
const mostConnections = 256

// Listen opens an address such as ":8080" for a [Server]. Without a host it is that of this machine's own programs, 127.0.0.1; loopback
// tells whether only they can connect.
func Listen(address string) (l net.Listener, loopback bool, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false, fmt.Errorf("web: address %q: want HOST:PORT, or :PORT for this machine alone: %w", address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err = net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, false, fmt.Errorf("web: address %q cannot be opened: %w: choose another port, or 0 for one that is free", address, err)
	}
	a, ok := l.Addr().(*net.TCPAddr)
	return &boundedListener{Listener: l, free: make(chan struct{}, mostConnections)}, ok && a.IP.IsLoopback(), nil
}

// URL is where a browser finds a listener.
func URL(l net.Listener) string {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "http://" + l.Addr().String() + "/"
	}
	host := a.IP.String()
	if a.IP.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(a.Port)) + "/"
}

// Serve answers requests until ctx ends, and then ends all connections. Clients that dawdle are let go.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           deadlines(h),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // what strangers send is no news
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	ended := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer ended()
	if err := srv.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("web: serve %s: %w", l.Addr(), err)
	}
	return nil
}

// deadlines gives each answer its time. A stream moves its own deadline.
func deadlines(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(30 * time.Second)) // not every test server has deadlines
		h.ServeHTTP(w, r)
	})
}

// boundedListener holds a number of connections and closes what comes beyond it.
type boundedListener struct {
	net.Listener
	free chan struct{} // holds one for each open connection
}

// Accept returns the next connection for which there is room.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &boundedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.free })}, nil
		default:
			_ = c.Close()
		}
	}
}

// boundedConn makes room when it is closed.
type boundedConn struct {
	net.Conn
	leave func()
}

func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
