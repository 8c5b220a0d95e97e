package vec

import (
	"math"
	"testing"
)

func TestLogOf(t *testing.T) {
	worst, at := 0.0, 0.0
	try := func(x float64) {
		want := math.Log(x)
		if e := math.Abs(logOf(x)-want) / max(math.Abs(want), 0x1p-300); e > worst {
			worst, at = e, x
		}
	}
	for x := 1.0; x < 1e6; x *= 1.00037 {
		try(x)
		try(1 / x)
		try(1 + 1/(x*x)) // near 1 the digits of the logarithm are those of x-1
	}
	try(math.MaxFloat64)
	try(0x1p-1022)
	if worst > 0x1p-33 {
		t.Errorf("logarithm of %v is %v, want %v: relative error %v", at, logOf(at), math.Log(at), worst)
	}
	if got := logOf(1); got != 0 || math.Signbit(got) {
		t.Errorf("logarithm of 1 is %v", got)
	}
	if got := logOf(math.NaN()); got == got {
		t.Errorf("logarithm of NaN is %v", got)
	}
}

func BenchmarkLogOf(b *testing.B) {
	s := 0.0
	for i := 0; b.Loop(); i++ {
		s += logOf(1 + float64(i&1023))
	}
	if s == 0 {
		b.Fatal("no logarithm")
	}
}
