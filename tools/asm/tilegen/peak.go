package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peakChains is the number of independent multiply-adds: more than the latency times the number of
// units of any processor.
const peakChains = 14

// peak writes a loop of multiply-adds between registers: no matrix product can be faster.
func peak(c *build.Context, s set) {
	name := "peak" + s.name
	c.Function(name)
	c.Attributes(attr.NOSPLIT)
	c.SignatureExpr("func(x float32, n int)")
	c.Doc(fmt.Sprintf("%s does n times %d fused multiply-adds of %d numbers, between registers.", name, peakChains,
		s.lanes))
	n := c.GP64()
	c.Load(c.Param("n"), n)
	p, err := c.Param("x").Resolve()
	if err != nil {
		panic("tilegen: " + err.Error())
	}
	x := s.vector(c)
	c.VBROADCASTSS(p.Addr, x)
	chains := make([]reg.VecVirtual, peakChains)
	for i := range chains {
		chains[i] = s.vector(c)
		c.VMOVAPS(x, chains[i])
	}
	c.Label("again")
	for _, chain := range chains {
		c.VFMADD231PS(x, x, chain)
	}
	c.DECQ(n)
	c.JNZ(operand.LabelRef("again"))
	c.VZEROUPPER()
	c.RET()
}
