package gpt2_test

import (
	"fmt"

	"fspda/data/text"
	_ "fspda/data/text/gpt2" // registers the tokenizer
)

// A program that imports the package can name the tokenizer.
func Example() {
	t, err := text.NewTokenizer("gpt2", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := t.Encode(nil, []byte("Hello, world!"))
	fmt.Println(tokens, err, string(t.Token(tokens[2])))
	// Output: [15496 11 995 0] <nil>  world
}
