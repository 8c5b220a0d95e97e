package nats_test

import (
	"context"
	"fmt"
	"log"

	"fspda/device/devicetest"
	"fspda/dist"
	"fspda/dist/nats"
)

// Two nodes in one process exchange a message over their embedded servers.
func Example() {
	dev := devicetest.NewFloat64()
	pool := dist.NewPool(dev)
	var nodes [2]*nats.Node
	for i := range nodes {
		o := nats.Options{Run: "example", Self: i, Agents: 2, Pool: pool, Dim: 3,
			Server: nats.Server{Listen: "127.0.0.1:0"}}
		if i > 0 {
			o.Server.Join = []string{nodes[0].Address()}
		}
		n, err := nats.Open(o)
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
