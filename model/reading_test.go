package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/cpu/isa"
	"fspda/internal/rng"
)

// readerOf returns an engine of a small language model, its parameters, and tokens to read.
func readerOf(t testing.TB, name string, o Transformer, tokens int) (*Engine, []float32, []uint16) {
	t.Helper()
	n, err := Open(name, Options{Classes: 19, Transformer: o})
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New(cpu.Threads(2))
	t.Cleanup(func() { dev.Close() })
	s, text := rng.New(8, "model test"), make([]uint16, tokens)
	for i := range text {
		text[i] = uint16(s.IntN(19))
	}
	return NewEngine(n, dev), round(transformerParams(n)), text
}

// A text that is read token by token, after a prompt, and beyond the positions of the network, has
// the bits of windows that are computed anew, with every instruction set.
func TestReadHasTheBitsOfNext(t *testing.T) {
	used := isa.Active
	defer func() { isa.Active = used }()
	for _, c := range []struct {
		name   string
		prompt int
		Transformer
	}{
		{"gpt-nano", 1, Transformer{Layers: 2, Heads: 2, Width: 34, Block: 20}},
		{"gpt-nano", 35, Transformer{Layers: 2, Heads: 3, Width: 39, Block: 70, GELU: "erf", NoBias: true}},
		{"llama-nano", 2, Transformer{Layers: 2, Heads: 2, Width: 32, Block: 20}},
	} {
		e, params, text := readerOf(t, c.name, c.Transformer, c.Block+5)
		x := e.dev.NewVector(e.Dim())
		e.dev.Write(x, params)
		for _, set := range isa.Available() {
			isa.Active = set
			other := NewEngine(e.Network, e.dev) // programs keep the instruction set that they were loaded with
			next, err := other.Read()
			if err != nil {
				t.Fatal(err)
			}
			got, want := make([]float64, 19), make([]float64, 19)
			for end := c.prompt; end <= len(text); end++ {
				window := text[max(0, end-c.Block):end]
				if err := next(got, x, window); err != nil {
					t.Fatal(err)
				}
				if err := other.Next(want, x, window); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s, %v: logits after %d tokens have other bits: %v, want %v", e.name, set, end, got[:3],
						want[:3])
				}
			}
			if _, ok := other.plans[planKey{1, 1, Continue}]; !ok {
				t.Error("no token was read alone")
			}
		}
	}
}

// Attention in blocks, of windows beyond 256 tokens, differs by rounding.
func TestReadLongWindows(t *testing.T) {
	e, params, text := readerOf(t, "gpt-nano", Transformer{Layers: 2, Heads: 1, Width: 8, Block: 300}, 300)
	x := e.dev.NewVector(e.Dim())
	e.dev.Write(x, params)
	next, err := e.Read()
	if err != nil {
		t.Fatal(err)
	}
	got, want := make([]float64, 19), make([]float64, 19)
	for _, end := range []int{257, 258, 300} {
		if err := next(got, x, text[:end]); err != nil {
			t.Fatal(err)
		}
		if err := e.Next(want, x, text[:end]); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if math.Abs(got[i]-w) > 2e-6*(1+math.Abs(w)) {
				t.Errorf("%d tokens: logit %d is %v, want %v", end, i, got[i], w)
			}
		}
	}
}

// Another text, other parameters, and a text with a change begin anew; bad tokens are refused and
// leave what was read.
func TestReadBeginsAnew(t *testing.T) {
	e, params, text := readerOf(t, "gpt-nano", Transformer{Layers: 1, Heads: 1, Width: 6, Block: 12}, 12)
	x, y := e.dev.NewVector(e.Dim()), e.dev.NewVector(e.Dim())
	e.dev.Write(x, params)
	slices.Reverse(params)
	e.dev.Write(y, params)
	next, err := e.Read()
	if err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(text[:7])
	changed[2] = (changed[2] + 1) % 19
	got, want := make([]float64, 19), make([]float64, 19)
	for i, tokens := range [][]uint16{text[:5], changed, changed[:3], text[:12], text[:12], text[:6]} {
		at := x
		if i == 5 {
			at = y
		}
		if err := next(got, at, tokens); err != nil {
			t.Fatal(err)
		}
		if err := e.Next(want, at, tokens); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("text %d: %v, want %v", i, got[:3], want[:3])
		}
	}
	for want, tokens := range map[string][]uint16{"want a language model": nil, "windows of 13": make([]uint16, 13),
		"is 19, want an integer from 0 to 18": append(slices.Clone(text[:6]), 19)} {
		if err := next(got, y, tokens); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d tokens: error %v, want %q", len(tokens), err, want)
		}
	}
	if err := next(got, y, text[:7]); err != nil {
		t.Error(err)
	}
	_, err = (&Engine{Network: &Network{name: "an MLP"}}).Read()
	if err == nil || !strings.Contains(err.Error(), "an MLP") {
		t.Errorf("error %v", err)
	}
}

// A token at the end of a long window costs little more than one at its beginning, and much less
// than the window.
func BenchmarkRead(b *testing.B) {
	e, params, text := readerOf(b, "gpt-nano", Transformer{Layers: 4, Heads: 4, Width: 128, Block: 1024}, 1024)
	x := e.dev.NewVector(e.Dim())
	e.dev.Write(x, params)
	out := make([]float64, 19)
	for _, at := range []int{16, 256, 1000} {
		b.Run(fmt.Sprint(at), func(b *testing.B) {
			for b.Loop() {
				next, err := e.Read()
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := next(out, x, text[:at]); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				begin := time.Now()
				for k := range 8 {
					if err := next(out, x, text[:at+k+1]); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(time.Since(begin).Microseconds())/8, "µs/token")
				begin = time.Now()
				if err := e.Next(out, x, text[:at+8]); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(begin).Microseconds()), "µs/window")
			}
		})
	}
}
