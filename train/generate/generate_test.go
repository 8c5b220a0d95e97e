package generate

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
)

// counter is a model for which the token after t is most likely t+1; it notes the contexts.
type counter struct{ contexts [][]uint16 }

func (c *counter) Read() (func(out []float64, x device.Vector, tokens []uint16) error, error) {
	return c.next, nil
}

func (c *counter) next(out []float64, _ device.Vector, tokens []uint16) error {
	c.contexts = append(c.contexts, slices.Clone(tokens))
	clear(out)
	out[(int(tokens[len(tokens)-1])+1)%len(out)] = 3
	return nil
}

func collect(t *testing.T, m Model, prompt []uint16, o Options) (all []uint16) {
	t.Helper()
	if err := Tokens(context.Background(), m, nil, prompt, o, func(token uint16) error {
		all = append(all, token)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// With temperature 0 the likeliest token follows, and the context slides.
func TestGreedy(t *testing.T) {
	c := &counter{}
	got := collect(t, c, []uint16{7, 8, 9, 1}, Options{Vocabulary: 10, Block: 3, Count: 5})
	if !slices.Equal(got, []uint16{2, 3, 4, 5, 6}) || !slices.Equal(c.contexts[0], []uint16{8, 9, 1}) ||
		!slices.Equal(c.contexts[4], []uint16{3, 4, 5}) {
		t.Errorf("%d with contexts %d", got, c.contexts)
	}
	short := &counter{}
	collect(t, short, []uint16{1}, Options{Vocabulary: 10, Block: 3, Count: 4})
	if !slices.Equal(short.contexts[1], []uint16{1, 2}) {
		t.Errorf("contexts %d", short.contexts)
	}
}

// The draws depend on seed and sample alone.
func TestSeeds(t *testing.T) {
	o := Options{Choice: Choice{Temperature: 2}, Vocabulary: 10, Block: 3, Count: 40, Seed: 1}
	a := collect(t, &counter{}, []uint16{0}, o)
	if !slices.Equal(a, collect(t, &counter{}, []uint16{0}, o)) {
		t.Error("the same seed gives another text")
	}
	o.Sample = 1
	if slices.Equal(a, collect(t, &counter{}, []uint16{0}, o)) {
		t.Error("another sample is the same text")
	}
}

// The frequencies are the softmax at the temperature over the k largest logits; equal ones stay.
func TestFrequencies(t *testing.T) {
	logits := []float64{1, 3, 2, 2, -1}
	for _, c := range []Choice{{Temperature: 1}, {Temperature: 0.5, TopK: 2}, {Temperature: 3, TopK: 1}} {
		want, sum := make([]float64, len(logits)), 0.0
		for i, v := range logits {
			if c.TopK == 2 && v < 2 || c.TopK == 1 && v < 3 {
				continue
			}
			want[i] = math.Exp(v / c.Temperature)
			sum += want[i]
		}
		s := rng.New(3, "sample")
		const n = 20000
		got := make([]float64, len(logits))
		for range n {
			k, err := c.Draw(logits, make([]float64, len(logits)), &s)
			if err != nil {
				t.Fatal(err)
			}
			got[k]++
		}
		for i := range want {
			p := want[i] / sum
			if math.Abs(got[i]/n-p) > 5*math.Sqrt(p*(1-p)/n) {
				t.Errorf("%+v: token %d in %v of the draws, want %v", c, i, got[i]/n, p)
			}
		}
	}
	if k, err := (Choice{}).Draw([]float64{1, 2, 2}, nil, nil); k != 1 || err != nil {
		t.Errorf("of equal logits token %d, %v", k, err)
	}
}

// Bad input is refused, and an error of the reader ends the text.
func TestErrors(t *testing.T) {
	full := errors.New("full")
	see := func(uint16) error { return full }
	good := Options{Vocabulary: 10, Block: 3, Count: 2}
	for want, c := range map[string]struct {
		prompt []uint16
		change func(*Options)
	}{
		"no tokens":                   {nil, func(*Options) {}},
		"token 0 of the prompt is 12": {[]uint16{12}, func(*Options) {}},
		"temperature -1":              {[]uint16{1}, func(o *Options) { o.Temperature = -1 }},
		"temperature NaN":             {[]uint16{1}, func(o *Options) { o.Temperature = math.NaN() }},
		"top-k -2":                    {[]uint16{1}, func(o *Options) { o.TopK = -2 }},
		"full":                        {[]uint16{1}, func(*Options) {}},
	} {
		o := good
		c.change(&o)
		err := Tokens(context.Background(), &counter{}, nil, c.prompt, o, see)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := (Choice{}).Draw([]float64{1, math.NaN()}, nil, nil); err == nil {
		t.Error("no error for a logit that is no number")
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if err := Tokens(stopped, &counter{}, nil, []uint16{1}, good, see); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
