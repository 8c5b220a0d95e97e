package gpt2

import (
	"fmt"
	"slices"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"

	"fspda/data/text"
)

// Size is the number of tokens, and EndOfText the one that ends a text.
const (
	Size      = 50257
	EndOfText = 50256
)

func init() { text.Register("gpt2", Size, open) }

// open makes the vocabulary once: it takes some 30 ms and 10 MB.
var open = sync.OnceValues(func() (text.Tokenizer, error) {
	t := &tokenizer{codec: codec.NewR50kBase(), tokens: make([][]byte, Size)}
	for id := range EndOfText {
		s, err := t.codec.Decode([]uint{uint(id)})
		if err != nil {
			return nil, fmt.Errorf("gpt2: token %d: %w", id, err)
		}
		t.tokens[id] = []byte(s)
	}
	t.tokens[EndOfText] = []byte("<|endoftext|>")
	return t, nil
})

// tokenizer is the [text.Tokenizer].
type tokenizer struct {
	codec  *codec.Codec
	tokens [][]byte
}

// Name implements [text.Tokenizer].
func (*tokenizer) Name() string { return "gpt2" }

// Size implements [text.Tokenizer].
func (*tokenizer) Size() int { return Size }

// EndOfText returns the token that separates documents.
func (*tokenizer) EndOfText() uint16 { return EndOfText }

// chunk is about how many bytes are encoded at once.
const chunk = 1 << 18

// Encode implements [text.Tokenizer]. The words <|endoftext|> in a text are plain text. Long text is
// encoded in parts that end where GPT-2's rules end a piece, so that the tokens are the same.
func (t *tokenizer) Encode(dst []uint16, from []byte) ([]uint16, error) {
	if err := text.CheckUTF8(from); err != nil {
		return nil, err
	}
	for len(from) > 0 {
		n := len(from)
		if n > chunk {
			n = cut(from, chunk)
		}
		ids, _, err := t.codec.Encode(string(from[:n]))
		if err != nil {
			return nil, fmt.Errorf("gpt2: %w", err)
		}
		dst = slices.Grow(dst, len(ids))
		for _, id := range ids {
			dst = append(dst, uint16(id))
		}
		from = from[n:]
	}
	return dst, nil
}

// cut returns a place at or after least where a piece always ends: between a letter and the line end
// after it, or the end.
func cut(b []byte, least int) int {
	for i := least; i < len(b); i++ {
		if b[i] == '\n' && letter(b[i-1]) {
			return i
		}
	}
	return len(b)
}

func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// Token implements [text.Tokenizer].
func (t *tokenizer) Token(id uint16) []byte { return t.tokens[id] }
