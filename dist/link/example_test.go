package link_test

import (
	"context"
	"fmt"
	"log"

	"fspda/device/devicetest"
	"fspda/dist"
	"fspda/dist/discover/nats"
	"fspda/dist/link"
)

// Two nodes in one process exchange a message. They find each other over their embedded NATS
// servers.
func Example() {
	dev := devicetest.NewFloat64()
	pool := dist.NewPool(dev)
	var nodes [2]*link.Node
	var join []string
	for i := range nodes {
		found, err := nats.Open(nats.Options{Run: "example", Self: i, Agents: 2,
			Server: nats.Server{Listen: "127.0.0.1:0", Join: join}})
		if err != nil {
			log.Fatal(err)
		}
		join = append(join, found.Address())
		n, err := link.Open(link.Options{Run: "example", Self: i, Agents: 2, Pool: pool, Dim: 3, Discovery: found,
			Listen: "127.0.0.1:0"})
		if err != nil {
			log.Fatal(err)
		}
		defer n.Close()
		if err := n.Start(nil, 0); err != nil {
			log.Fatal(err)
		}
		nodes[i] = n
	}
	ctx := context.Background()
	if err := nodes[0].Ready(ctx); err != nil {
		log.Fatal(err)
	}
	b := pool.Get(3)
	dev.Write(b.V, []float32{1, 2, 3})
	if err := nodes[0].Send(ctx, dist.Message{T: 7, From: 0, To: 1, Values: []*dist.Buffer{b}}); err != nil {
		log.Fatal(err)
	}
	m, err := nodes[1].Recv(ctx, 1, 0, 7)
	if err != nil {
		log.Fatal(err)
	}
	values := make([]float32, 3)
	dev.Read(values, m.Values[0].V)
	m.Release()
	fmt.Println(values)
	// Output: [1 2 3]
}
