package bare

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"

	"fspda/bench/measure"
)

// NATS measures NATS itself: a request and a reply of equal size between two servers in this
// process that are joined by a route.
func NATS() measure.Wire { return natsWire("bare NATS, request and reply", [2]*tls.Config{}) }

// SecureNATS is NATS with a TLS route; servers holds the credentials of both.
func SecureNATS(servers [2]*tls.Config) measure.Wire { return natsWire("bare NATS, TLS", servers) }

func natsWire(name string, by [2]*tls.Config) measure.Wire {
	return measure.Wire{Name: name, MaxSize: 1 << 20,
		Open: func(_ context.Context, size int) (func() error, func(), error) { return openServers(size, by) }}
}

func openServers(size int, by [2]*tls.Config) (swap func() error, end func(), err error) {
	var undo []func()
	end = func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	var conns [2]*client.Conn
	var routes []*url.URL
	for i := range conns {
		s, err := natsServer(i, routes, by[i])
		if err != nil {
			return nil, nil, err
		}
		undo = append(undo, s.Shutdown)
		routes = []*url.URL{{Scheme: "nats-route", Host: s.ClusterAddr().String()}}
		if conns[i], err = client.Connect("", client.InProcessServer(s)); err != nil {
			return nil, nil, err
		}
		undo = append(undo, conns[i].Close)
	}
	text := make([]byte, size)
	if _, err := conns[1].Subscribe("bare", func(m *client.Msg) { _ = m.Respond(text) }); err != nil {
		return nil, nil, err
	}
	swap = func() error {
		_, err := conns[0].Request("bare", text, 10*time.Second)
		return err
	}
	return swap, end, waitForRoute(swap)
}

// waitForRoute waits until the first server knows the subscription at the second.
func waitForRoute(swap func() error) error {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if err := swap(); err == nil || !errors.Is(err, client.ErrNoResponders) || time.Since(begin) > 10*time.Second {
			return err
		}
	}
}

func natsServer(i int, routes []*url.URL, by *tls.Config) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{ServerName: fmt.Sprint("bare-", i), Host: "127.0.0.1",
		Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, NoSystemAccount: true, Routes: routes,
		DisableShortFirstPing: true, Cluster: server.ClusterOpts{Name: "bare", Host: "127.0.0.1",
			Port: server.RANDOM_PORT, PoolSize: -1, TLSConfig: by, TLSTimeout: 5,
			Compression: server.CompressionOpts{Mode: server.CompressionOff}}})
	if err != nil {
		return nil, err
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, errors.New("the NATS server did not start within 10 s")
	}
	return s, nil
}
