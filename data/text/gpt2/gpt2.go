package gpt2

import (
	"bytes"
	"errors"
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

func (*tokenizer) Name() string { return "gpt2" }

func (*tokenizer) Size() int { return Size }

// EndOfText returns the token that separates documents.
func (*tokenizer) EndOfText() (id uint16, ok bool) { return EndOfText, true }

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
		part, other, err := substitute(from[:n])
		if err != nil {
			return nil, err
		}
		ids, _, err := t.codec.Encode(string(part))
		if err != nil {
			return nil, fmt.Errorf("gpt2: %w", err)
		}
		dst = slices.Grow(dst, len(ids))
		for _, id := range ids {
			if id < EndOfText && other != 0 && len(t.tokens[id]) == 1 && t.tokens[id][0] == other {
				id = deleted
			}
			dst = append(dst, uint16(id))
		}
		from = from[n:]
	}
	return dst, nil
}

// deleted is the token of the character U+007F.
const deleted = 221

// substitute returns a text whose characters U+007F, which the library leaves out, are replaced by
// another control character that the text does not have; 0: it is as it was. No token of several
// characters has one of them.
func substitute(b []byte) (to []byte, other byte, err error) {
	if bytes.IndexByte(b, 0x7f) < 0 {
		return b, 0, nil
	}
	for _, c := range []byte("\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19") {
		if bytes.IndexByte(b, c) < 0 {
			return bytes.ReplaceAll(b, []byte{0x7f}, []byte{c}), c, nil
		}
	}
	return nil, 0, errors.New("gpt2: the text has U+007F and all other control characters: use the tokenizer byte")
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

func (t *tokenizer) Token(id uint16) []byte { return t.tokens[id] }
