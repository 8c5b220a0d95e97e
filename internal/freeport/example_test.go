package freeport_test

import (
	"fmt"
	"net"

	"fspda/internal/freeport"
)

// A server listens at a reserved port.
func ExampleReserve() {
	p, err := freeport.Reserve()
	if err != nil {
		panic(err)
	}
	defer p.Close()
	server, err := net.Listen("tcp", p.Address())
	fmt.Println(err)
	defer server.Close()
	// Output: <nil>
}
