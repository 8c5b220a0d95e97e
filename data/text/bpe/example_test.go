package bpe_test

import (
	"fmt"
	"strings"

	"fspda/data/text/bpe"
)

// A tokenizer.json of another kind is refused by its name.
func ExampleNew() {
	_, err := bpe.New([]byte(`{"model": {"type": "WordPiece", "vocab": {"a": 0}}}`))
	fmt.Println(strings.Split(err.Error(), ":")[0])
	// Output:
	// it has a model of the type "WordPiece", which is not supported
}
