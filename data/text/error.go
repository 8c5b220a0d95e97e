package text

import (
	"fmt"
	"strconv"
)

// FormatError reports a file that is damaged or of another format than expected.
type FormatError struct {
	Path string
	Got  string // what was found
	Want string // what was expected
	Hint string // what to do; may be empty
	Err  error  // the cause, or nil
}

func (e *FormatError) Error() string {
	s := "text: " + e.Path + ": " + e.Got + ", want " + e.Want
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	if e.Err != nil {
		s += " (" + e.Err.Error() + ")"
	}
	return s
}

// ExitCode returns 2, the exit status for bad input.
func (e *FormatError) ExitCode() int { return 2 }

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// CharError reports a character that a tokenizer does not know.
type CharError struct {
	Char      rune
	At        int // of the character, counted from 0
	Tokenizer string
	Known     int // characters that it knows
}

func (e *CharError) Error() string {
	return fmt.Sprintf(
		"text: character %d is %s, which is not among the %d characters of the tokenizer %s: remove it, "+
			"or use a tokenizer that knows every text (byte, gpt2)",
		e.At,
		strconv.QuoteRune(e.Char),
		e.Known,
		e.Tokenizer,
	)
}

// ExitCode returns 2, the exit status for bad input.
func (e *CharError) ExitCode() int { return 2 }
