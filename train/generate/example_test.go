package generate_test

import (
	"context"
	"fmt"

	"fspda/device"
	"fspda/train/generate"
)

// alternating predicts the other of two tokens.
type alternating struct{}

func (alternating) Read() (func(out []float64, x device.Vector, tokens []uint16) error, error) {
	return next, nil
}

func next(out []float64, _ device.Vector, tokens []uint16) error {
	last := tokens[len(tokens)-1]
	out[last], out[1-last] = 0, 5
	return nil
}

func Example() {
	o := generate.Options{Vocabulary: 2, Block: 8, Count: 6} // temperature 0: the likeliest
	err := generate.Tokens(context.Background(), alternating{}, nil, []uint16{0}, o, func(t uint16) error {
		fmt.Print(t, " ")
		return nil
	})
	fmt.Println(err)
	// Output: 1 0 1 0 1 0 <nil>
}
