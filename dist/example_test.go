package dist_test

import (
	"context"
	"fmt"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/dist"
)

// Agents 0 and 1 of a ring exchange: each computes the edge and the mask, and only values are sent.
func Example() {
	const seed, d = 1, 8
	g, _ := dist.ParseGraph("ring", 2, seed)
	process, _ := dist.ParseProcess("one-edge", g, seed)
	mask, _ := dist.ParseMask("randk", 0.5, []int{d}, seed)
	net, dev := dist.NewLocal(g.N), devicetest.NewFloat64()
	pool := dist.NewPool(dev)

	heard := make(chan []float32, g.N)
	agent := func(self int) {
		for _, e := range process.Active(nil, 0) {
			peer, _ := e.Peer(self)
			coordinates := mask.Draw(nil, 0, self, peer)
			x := dev.NewVector(d)
			dev.Write(x, []float32{0, 1, 2, 3, 4, 5, 6, 7})
			b := pool.Get(len(coordinates))
			dev.Do(device.Gather(b.V, x, dev.NewIndex(coordinates, nil)))
			_ = net.Send(context.Background(), dist.Message{T: 0, From: self, To: peer, Values: []*dist.Buffer{b}})
			m, _ := net.Recv(context.Background(), self, peer, 0)
			values := make([]float32, len(coordinates))
			dev.Read(values, m.Values[0].V)
			m.Release()
			heard <- values
		}
	}
	go agent(0)
	go agent(1)
	fmt.Println(<-heard, <-heard)
	// Output: [0 1 3 5] [0 1 3 5]
}

func ExampleParseGraph() {
	g, err := dist.ParseGraph("torus", 6, 1)
	fmt.Println(g, len(g.Edges), g.Neighbours(4), err)
	_, err = dist.ParseGraph("er(0.5", 6, 1)
	fmt.Println(err)
	// Output:
	// torus 9 [1 3 5] <nil>
	// dist: graph "er(0.5": the bracket that opens in "er(0.5" does not close at the end
}

func ExampleParseProcess() {
	g, _ := dist.ParseGraph("path", 4, 1)
	p, _ := dist.ParseProcess("periodic(3)", g, 1)
	for t := range 3 {
		fmt.Println(t, p.Active(nil, t))
	}
	// Output:
	// 0 []
	// 1 []
	// 2 [{0 0 1} {1 1 2} {2 2 3}]
}

// The published 10% of the MLP, one edge: 6.40 d bits with shared seeds, 12.80 d as published
// curves count.
func ExampleLedger() {
	mask, _ := dist.ParseMask("randk-per-layer", 0.1, []int{78400, 100, 1000, 10}, 1)
	var both dist.Ledger
	for _, higher := range []bool{false, true} {
		both.Send(dist.Sent{Values: mask.Len(), ValueBits: 32, Mask: mask.Len(), Dim: mask.Dim(), Indices: higher})
	}
	d := float64(mask.Dim())
	fmt.Printf("%d %.2f %.2f\n", mask.Len(), float64(both.SharedSeed)/d, float64(both.Reference)/d)
	// Output: 7948 6.40 12.80
}

// A compressed vector, and its encoding.
func ExampleCompressor() {
	sizes := []int{6}
	mask, err := dist.ParseMask("randk", 1.0/3, sizes, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	q, err := dist.ParseCompressor("topk", dist.CompressorOptions{Mask: mask, Sizes: sizes, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	var p dist.Payload
	if err := q.Compress(&p, []float32{0.1, -3, 0, 0.5, 2, 1}, 0, 0, 0); err != nil {
		fmt.Println(err)
		return
	}
	text, err := q.Encode(nil, p, dist.SharedSeed, false)
	fmt.Println(p.Coords, p.Vectors[0], len(text), err)
	// Output: [1 4] [-3 2] 9 <nil>
}
