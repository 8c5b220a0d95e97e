package link

import (
	"context"
	"fmt"
	"testing"

	"fspda/cpu"
	"fspda/dist"
	"fspda/dist/discover/nats"
)

// BenchmarkExchange measures an exchange between two nodes: both send, both receive.
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{16, 8_000, 256_000, 1_000_000, 4_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("%d bytes", 4*size), func(b *testing.B) {
			b.SetBytes(int64(8 * size))
			m := benchMesh(b, size, false)
			b.ResetTimer()
			benchExchange(b, m, size, b.N)
		})
	}
}

func benchMesh(b *testing.B, size int, durable bool) mesh {
	m := mesh{benchNode(b, 0, size, durable), nil}
	m[1] = benchNode(b, 1, size, durable, address(m[0]))
	for _, n := range m {
		if err := n.Ready(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

func benchNode(b *testing.B, self, size int, durable bool, join ...string) *Node {
	n, err := tryOpen(settings{Options{Run: "bench", Self: self, Agents: 2, Dim: size, Pool: dist.NewPool(cpu.New()),
		Durable: durable, Listen: "127.0.0.1:0"},
		nats.Options{Run: "bench", Self: self, Agents: 2, Server: nats.Server{Listen: "127.0.0.1:0", Join: join}}, ""})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(n.Close)
	if err := n.Start(nil, 0); err != nil {
		b.Fatal(err)
	}
	return n
}

func benchExchange(b *testing.B, m mesh, size, steps int) {
	ctx := context.Background()
	done := make(chan error, 2)
	for self := range m {
		go func() {
			for t := range steps {
				v := m[self].opt.Pool.Get(size)
				err := m[self].Send(ctx, dist.Message{T: t, From: self, To: 1 - self, Values: []*dist.Buffer{v}})
				if err == nil {
					var got dist.Message
					got, err = m[self].Recv(ctx, self, 1-self, t)
					got.Release()
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range m {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
