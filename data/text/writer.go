package text

import (
	"fmt"
	"io"
	"unicode/utf8"
)

// Writer writes tokens as text. It holds an incomplete character back until its last byte comes, so
// that every write is valid UTF-8 if the text is.
type Writer struct {
	to   io.Writer
	t    Tokenizer
	held []byte
}

// NewWriter returns a Writer of the tokens of t.
func NewWriter(to io.Writer, t Tokenizer) *Writer { return &Writer{to: to, t: t} }

// Token writes a token. It returns an error for a token outside of the vocabulary.
func (w *Writer) Token(id uint16) error {
	if int(id) >= w.t.Size() {
		return fmt.Errorf("text: token %d, want 0 to %d", id, w.t.Size()-1)
	}
	w.held = append(w.held, w.t.Token(id)...)
	return w.write(complete(w.held))
}

func (w *Writer) Flush() error { return w.write(len(w.held)) }

func (w *Writer) write(n int) error {
	if n == 0 {
		return nil
	}
	_, err := w.to.Write(w.held[:n])
	w.held = append(w.held[:0], w.held[n:]...)
	return err
}

// complete returns the length of b without an incomplete character at its end.
func complete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return len(b) - n
			}
			break
		}
	}
	return len(b)
}
