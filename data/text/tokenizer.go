package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Tokenizer maps text to tokens and back. It is safe for concurrent use.
type Tokenizer interface {
	// Name is the name by which a corpus names it: char, byte, gpt2.
	Name() string
	// Size is the number of tokens V, at most 65,536.
	Size() int
	// Encode appends the tokens of text to dst. A character that it does not know is a *[CharError].
	Encode(dst []uint16, text []byte) ([]uint16, error)
	// Token returns the bytes of a token below Size, which may be a part of a character. The caller
	// does not change them.
	Token(id uint16) []byte
}

// Same reports whether two tokenizers give the same tokens.
func Same(a, b Tokenizer) bool { return describe(a) == describe(b) }

// maxVocabulary is how many tokens 16 bits tell apart.
const maxVocabulary = 1 << 16

// Names lists the tokenizers of this program.
func Names() []string {
	names := []string{"char", "byte"}
	for _, r := range registered {
		names = append(names, r.name)
	}
	return names
}

// registration is a tokenizer that does not depend on the text.
type registration struct {
	name string
	size int
	open func() (Tokenizer, error)
}

var registered []registration

// Register adds a tokenizer with a number of tokens that does not depend on the text. Call it from
// init functions. It panics if the name is taken.
func Register(name string, size int, open func() (Tokenizer, error)) {
	if slices.Contains(Names(), name) {
		panic("text: Register: a tokenizer is already named " + name)
	}
	registered = append(registered, registration{name, size, open})
}

// NewTokenizer returns the tokenizer of a name. For char it has the given characters, in
// ascending order; the others ignore them.
func NewTokenizer(name, chars string) (Tokenizer, error) {
	switch name {
	case "char":
		return newChars(chars)
	case "byte":
		return Bytes{}, nil
	}
	for _, r := range registered {
		if r.name == name {
			return r.open()
		}
	}
	return nil, fmt.Errorf("text: there is no tokenizer %q, want %s", name, strings.Join(Names(), ", "))
}

// Bytes is the tokenizer byte: a token is a byte.
type Bytes struct{}

func (Bytes) Name() string { return "byte" }

func (Bytes) Size() int { return 256 }

// Encode implements [Tokenizer]. It has no errors.
func (Bytes) Encode(dst []uint16, text []byte) ([]uint16, error) {
	dst = slices.Grow(dst, len(text))
	for _, b := range text {
		dst = append(dst, uint16(b))
	}
	return dst, nil
}

func (Bytes) Token(id uint16) []byte { return []byte{byte(id)} }

// Chars is the tokenizer char: a token is one of the characters of a text, by its rank.
type Chars struct {
	chars []rune // ascending
	bytes [][]byte
	ids   map[rune]uint16
}

// CharsOf returns the tokenizer of the characters of a text. It returns an error for text that is
// empty, not UTF-8, or has more than 65,536 different characters.
func CharsOf(text []byte) (*Chars, error) {
	if err := CheckUTF8(text); err != nil {
		return nil, err
	}
	seen := map[rune]bool{}
	for _, r := range string(text) {
		seen[r] = true
	}
	chars := make([]rune, 0, len(seen))
	for r := range seen {
		chars = append(chars, r)
	}
	slices.Sort(chars)
	return newChars(string(chars))
}

// CheckUTF8 returns an error that names the first byte that is not UTF-8.
func CheckUTF8(text []byte) error {
	if utf8.Valid(text) {
		return nil
	}
	at := 0
	for {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n <= 1 {
			return fmt.Errorf("text: byte %d is %#02x, which is not UTF-8: convert the text to UTF-8, or use the "+
				"tokenizer byte, which takes any file", at, text[at])
		}
		at += n
	}
}

// newChars returns the tokenizer of characters that are ascending.
func newChars(chars string) (*Chars, error) {
	c := &Chars{ids: map[rune]uint16{}}
	for _, r := range chars {
		if n := len(c.chars); n > 0 && c.chars[n-1] >= r || n == maxVocabulary {
			return nil, fmt.Errorf("text: tokenizer char: character %d is %q, want at most %d characters in "+
				"ascending order", n, r, maxVocabulary)
		}
		c.ids[r] = uint16(len(c.chars))
		c.chars = append(c.chars, r)
		c.bytes = append(c.bytes, []byte(string(r)))
	}
	if len(c.chars) == 0 {
		return nil, fmt.Errorf("text: tokenizer char: there are no characters, want a text that is not empty")
	}
	return c, nil
}

func (*Chars) Name() string { return "char" }

func (c *Chars) Size() int { return len(c.chars) }

// Chars returns the characters in ascending order.
func (c *Chars) Chars() string { return string(c.chars) }

func (c *Chars) Encode(dst []uint16, text []byte) ([]uint16, error) {
	at := 0
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		id, ok := c.ids[r]
		if !ok || r == utf8.RuneError && n <= 1 {
			return nil, &CharError{Char: r, At: at, Tokenizer: c.Name(), Known: len(c.chars)}
		}
		dst = append(dst, id)
		text = text[n:]
		at++
	}
	return dst, nil
}

func (c *Chars) Token(id uint16) []byte { return c.bytes[id] }
