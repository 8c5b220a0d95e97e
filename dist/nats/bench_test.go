package nats

import (
	"context"
	"errors"
	"fmt"
	"testing"

	client "github.com/nats-io/nats.go"

	"fspda/cpu"
	"fspda/dist"
)

// BenchmarkExchange measures an exchange between two nodes with a server each: both send, both
// receive. Large messages use direct links. For comparison, small messages are also measured as a
// plain NATS request and reply of the same size over the same two servers.
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{16, 8_000, 256_000, 1_000_000, 4_000_000, 10_000_000} {
		m := make(mesh, 2)
		for i := range m {
			o := Options{Run: "bench", Self: i, Agents: 2, Dim: size, Pool: dist.NewPool(cpu.New()),
				Server: Server{Listen: "127.0.0.1:0"}, Direct: DirectServer{Listen: "127.0.0.1:0"}}
			if i > 0 {
				o.Server.Join = []string{m[0].Address()}
			}
			n, err := Open(o)
			if err != nil {
				b.Fatal(err)
			}
			defer n.Close()
			m[i] = n
			if err := n.Start(nil, 0); err != nil {
				b.Fatal(err)
			}
		}
		for _, n := range m {
			if err := n.Ready(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("%d bytes/exchange", 4*size), func(b *testing.B) { benchExchange(b, m, size) })
		if 4*size < 1<<20 {
			b.Run(fmt.Sprintf("%d bytes/plain request", 4*size), func(b *testing.B) { benchRequest(b, m, 4*size) })
		}
	}
}

func benchExchange(b *testing.B, m mesh, size int) {
	b.SetBytes(int64(8 * size))
	ctx := context.Background()
	at := func(self, t int) error {
		v := m[self].opt.Pool.Get(size)
		if err := m[self].Send(ctx, dist.Message{T: t, From: self, To: 1 - self,
			Values: []*dist.Buffer{v}}); err != nil {
			return err
		}
		got, err := m[self].Recv(ctx, self, 1-self, t)
		got.Release()
		return err
	}
	done := make(chan error, 1)
	go func() {
		for t := range b.N {
			if err := at(1, t); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for t := range b.N {
		if err := at(0, t); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

func benchRequest(b *testing.B, m mesh, bytes int) {
	b.SetBytes(int64(2 * bytes))
	text := make([]byte, bytes)
	sub, err := m[1].conn.Subscribe("bare", func(msg *client.Msg) { _ = msg.Respond(text) })
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for m[0].server.NumSubscriptions() == 0 {
	}
	for { // until the other server knows the subscription
		if _, err := m[0].conn.Request("bare", nil, 5e9); err == nil {
			break
		} else if !errors.Is(err, client.ErrNoResponders) {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := m[0].conn.Request("bare", text, 5e9); err != nil {
			b.Fatal(err)
		}
	}
}
