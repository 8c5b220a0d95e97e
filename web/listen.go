package web

import (
	"container/list"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Listen opens an address such as ":8080" for a [Server]. Without a host it is that of this
// machine's own programs, 127.0.0.1; loopback tells whether only they can connect.
func Listen(address string) (l net.Listener, loopback bool, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false, fmt.Errorf("web: address %q: want HOST:PORT, or :PORT for this machine alone: %w", address,
			err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err = net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, false, fmt.Errorf("web: address %q cannot be opened: %w: choose another port, or 0 for one that is free", address, err)
	}
	a, ok := l.Addr().(*net.TCPAddr)
	return &limitedListener{Listener: l, free: maxConnections, idle: list.New()}, ok && a.IP.IsLoopback(), nil
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

// Serve answers requests until ctx ends, and then ends all connections. Clients that dawdle are let
// go. A [Server] that has a share of the processors accepts connections within it.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           deadlines(h),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // what strangers send is no news
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

// responseTimeout is how long a reader may take for an answer. One of many bytes moves its deadline,
// and so does a stream.
const responseTimeout = 30 * time.Second

// deadlines gives each answer its time, and keeps its connection while it is at work.
func deadlines(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*trackedConn); ok {
			c.setBusy(true)
			defer c.setBusy(false)
		}
		// not every test server has deadlines
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTimeout))
		h.ServeHTTP(w, r)
	})
}

// pacedListener accepts no more connections than the budget has room for. The kernel keeps some
// waiting, and turns the others away at no cost to this program.
type pacedListener struct {
	net.Listener
	ctx    context.Context
	budget *budget
}

// Accept returns the next connection. Once ctx ends it waits no longer; the listener is closed
// then.
func (l *pacedListener) Accept() (net.Conn, error) {
	l.budget.wait(l.ctx, connectionCost)
	return l.Listener.Accept()
}
