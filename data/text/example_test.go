package text_test

import (
	"fmt"
	"os"
	"path/filepath"

	"fspda/data/text"
)

// A text becomes two streams of tokens, which nanoGPT reads too.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	in := filepath.Join(dir, "in.txt")
	if err := os.WriteFile(in, []byte("to be or not to be, that is the question"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := text.Prepare(in, "char", dir); err != nil {
		fmt.Println(err)
		return
	}
	c, err := text.Open(dir, text.OpenOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	val, _ := c.Decode(c.Val)
	fmt.Println(c.Vocabulary, len(c.Train), c.Train[:5], string(val))
	// Output: 14 36 [12 8 0 3 4] tion
}
