package dist

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// exchange counts both messages of one edge and returns their sum.
func exchangeBits(vectors, k, d int) (total Ledger) {
	for _, higher := range []bool{false, true} {
		total.Send(Sent{Values: vectors * k, ValueBits: 32, Mask: k, Dim: d, Indices: higher})
	}
	return total
}

// Bits of one active edge: 2vk + ιk for one vector and 4vk + ιk for two, 2vd without a mask.
func TestEdgeFormulas(t *testing.T) {
	const d, k = 79510, 7948
	for _, c := range []struct {
		name                      string
		got                       Ledger
		shared, packed, reference uint64
	}{
		{"SA", exchangeBits(1, k, d), 64 * k, 64*k + 17*k, 64*k + 64*k},
		{"STORM", exchangeBits(2, k, d), 128 * k, 128*k + 17*k, 128*k + 64*k},
		{"dense", exchangeBits(1, d, d), 64 * d, 64 * d, 64 * d},
	} {
		if c.got.SharedSeed != c.shared || c.got.Packed != c.packed || c.got.Reference != c.reference ||
			c.got.Messages != 2 {
			t.Errorf("%s: %+v, want %d, %d, %d", c.name, c.got, c.shared, c.packed, c.reference)
		}
	}
}

// Figure 1, bits of one iteration in units of d: SA 10%, STORM 6.7%, DSGD at 0.013 on 16 edges.
func TestFigureOne(t *testing.T) {
	const d = 79510
	sa, storm, dsgd := exchangeBits(1, 7948, d), exchangeBits(2, 5325, d), exchangeBits(1, d, d)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"SA reference", float64(sa.Reference) / d, 12.80},
		{"SA shared", float64(sa.SharedSeed) / d, 6.40},
		{"STORM reference", float64(storm.Reference) / d, 12.86},
		{"STORM shared", float64(storm.SharedSeed) / d, 8.57},
		{"DSGD", float64(dsgd.Reference) * 16 * 0.013 / d, 13.31},
	} {
		if math.Abs(c.got-c.want) > 0.005 {
			t.Errorf("%s: %.4f d, want %.2f d", c.name, c.got, c.want)
		}
	}
}

// Every unidirectional message carries indices; those of a top-k even with shared seeds.
func TestOneWayMessages(t *testing.T) {
	var randk, topk, coded Ledger
	randk.Send(Sent{Values: 100, ValueBits: 32, Mask: 100, Dim: 1000, Indices: true})
	topk.Send(Sent{Values: 100, ValueBits: 32, Mask: 100, Dim: 1000, Indices: true, DataDependent: true})
	coded.Send(Sent{Values: 1000, ValueBits: 1 + 4, ExtraBits: 32, Mask: 1000, Dim: 1000, Indices: true})
	if want := (Ledger{Messages: 1, SharedSeed: 3200, Packed: 4200, Reference: 9600}); randk != want {
		t.Errorf("randk %+v, want %+v", randk, want)
	}
	if want := (Ledger{Messages: 1, SharedSeed: 4200, Packed: 4200, Reference: 9600}); topk != want {
		t.Errorf("topk %+v, want %+v", topk, want)
	}
	if want := (Ledger{Messages: 1, SharedSeed: 5032, Packed: 5032, Reference: 5032}); coded != want {
		t.Errorf("qsgd %+v, want %+v", coded, want)
	}
}

func TestIndexBits(t *testing.T) {
	for d, want := range map[int]int{1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 79510: 17, 25557032: 25, 1 << 20: 20} {
		if got := IndexBits(d); got != want {
			t.Errorf("IndexBits(%d) = %d, want %d", d, got, want)
		}
	}
}

func TestLedgerBits(t *testing.T) {
	a := Ledger{11, 22, 33, 44, 55, 66}
	for mode, want := range map[Accounting]uint64{SharedSeed: 22, Packed: 33, Reference: 44} {
		if got := a.Bits(mode); got != want {
			t.Errorf("%s: %d, want %d", mode, got, want)
		}
	}
}

// A ledger survives a checkpoint, also above 2^53, where float64 would round.
func TestLedgerRoundTrip(t *testing.T) {
	want := Ledger{1<<60 + 1, 1<<61 + 3, 1<<62 + 5, 1<<63 + 7, 9, 11}
	var fromJSON, fromYAML Ledger
	text, err := json.Marshal(want)
	if err == nil {
		err = json.Unmarshal(text, &fromJSON)
	}
	if err != nil || fromJSON != want {
		t.Errorf("JSON %s: %+v, %v", text, fromJSON, err)
	}
	text, err = yaml.Marshal(want)
	if err == nil {
		err = yaml.Unmarshal(text, &fromYAML)
	}
	if err != nil || fromYAML != want {
		t.Errorf("YAML %s: %+v, %v", text, fromYAML, err)
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if r, ok := recover().(string); !ok || !strings.HasPrefix(r, "dist: ") {
			t.Errorf("%s: panic %q, want one from dist", what, r)
		}
	}()
	f()
}

func TestLedgerPanics(t *testing.T) {
	var l Ledger
	mustPanic(t, "mask beyond the vector", func() { l.Send(Sent{Values: 5, ValueBits: 32, Mask: 5, Dim: 4}) })
	mustPanic(t, "negative", func() { l.Send(Sent{Values: -1}) })
	mustPanic(t, "accounting", func() { l.Bits("honest") })
}
