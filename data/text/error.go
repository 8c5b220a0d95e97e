package text

import (
	"fmt"
	"strconv"

	"fspda/data/format"
)

// FormatError reports a malformed file or folder.
type FormatError = format.Error

// CharError reports a character that a tokenizer does not know.
type CharError struct {
	Char      rune
	At        int // position of the character, counted from 0
	Tokenizer string
	Known     int // characters that it knows
}

func (e *CharError) Error() string {
	return fmt.Sprintf("text: character %d is %s, which is not among the %d characters of the tokenizer %s: remove "+
		"it, or use a tokenizer that knows every text (byte, gpt2)", e.At, strconv.QuoteRune(e.Char), e.Known,
		e.Tokenizer)
}

// ExitCode returns 2, the exit status for bad input.
func (e *CharError) ExitCode() int { return 2 }
