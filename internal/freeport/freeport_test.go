package freeport

import (
	"net"
	"testing"
)

// A reserved port is not reserved again, and servers may listen there one after the other.
func TestReserve(t *testing.T) {
	given := map[int]bool{}
	for range 1000 { // of 12,768: without reservations some 40 are given twice
		p, err := Reserve()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if given[p.Number] || p.Number < first || p.Number > last {
			t.Fatalf("port %d, given before: %v", p.Number, given[p.Number])
		}
		given[p.Number] = true
		for range 2 {
			l, err := net.Listen("tcp", p.Address())
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
	}
}
