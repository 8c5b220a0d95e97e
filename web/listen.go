package web

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Listen opens an address such as ":8080" for a [Server]. Without a host it listens on 127.0.0.1
// only. The result loopback reports whether only programs of this machine can connect.
func Listen(address string) (l net.Listener, loopback bool, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false, fmt.Errorf("web: address %q: want HOST:PORT, or :PORT for this machine only: %w", address,
			err)
	}
	host = cmp.Or(host, "127.0.0.1")
	l, err = net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, false, fmt.Errorf("web: listen on %q: %w: choose another port, or 0 for any free one", address, err)
	}
	a, ok := l.Addr().(*net.TCPAddr)
	return &limitedListener{Listener: l, free: maxConnections, idle: list.New()}, ok && a.IP.IsLoopback(), nil
}

// URL returns the URL of a listener for a browser.
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

// Serve answers requests until ctx ends, and then closes all connections. It disconnects slow
// clients. For a [Server] with a Share it also limits the rate of new connections.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           deadlines(h),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // do not log malformed requests of clients
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       connContext,
	}
	if s, ok := h.(*Server); ok {
		l = &pacedListener{l, ctx, s.connections}
	}
	ended := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer ended()
	if err := srv.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("web: serve %s: %w", l.Addr(), err)
	}
	return nil
}

// responseTimeout is the time in which a client must read a response. Files and streams extend it
// as they are read.
const responseTimeout = 30 * time.Second

// deadlines sets the write deadline of each response, and marks its connection as busy.
func deadlines(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*trackedConn); ok {
			c.setBusy(true)
			defer c.setBusy(false)
		}
		// the writers of some tests have no deadlines
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTimeout))
		h.ServeHTTP(w, r)
	})
}

// pacedListener accepts connections within a budget. The others wait in the queue of the kernel, or
// are refused by it, at no cost to this process.
type pacedListener struct {
	net.Listener
	ctx    context.Context
	budget *budget
}

// Accept returns the next connection. After ctx ends it does not wait for the budget; the listener
// is closed then.
func (l *pacedListener) Accept() (net.Conn, error) {
	l.budget.wait(l.ctx, connectionCost)
	return l.Listener.Accept()
}
