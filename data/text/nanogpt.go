package text

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"fspda/internal/bounded"
	"fspda/internal/pickle"
)

// pickledMeta is the file in which nanoGPT describes tokens that are characters.
const pickledMeta = "meta.pkl"

// readPickledMeta reads the characters of nanoGPT's meta.pkl; nil: there is none.
func readPickledMeta(dir string) (*Meta, error) {
	path := filepath.Join(dir, pickledMeta)
	if notExist(path) {
		return nil, nil
	}
	content, err := bounded.File(path, maxMeta)
	if err != nil {
		return nil, err
	}
	chars, err := charsOf(content)
	if err != nil {
		return nil, &FormatError{Path: path, Got: err.Error(),
			Want: "the characters of nanoGPT's character-level texts",
			Hint: "prepare the text with fspda data prepare text, or remove the file: tokens need no " +
				"description to train",
			Err: err}
	}
	return &Meta{description: description{Name: "char", Chars: chars, Vocabulary: utf8.RuneCountInString(chars)}}, nil
}

// charsOf returns the characters that itos, a dictionary of tokens, holds.
func charsOf(content []byte) (string, error) {
	v, err := pickle.Load(content, plain{})
	if err != nil {
		return "", err
	}
	meta, _ := v.(*pickle.Dict)
	if meta == nil {
		return "", fmt.Errorf("its pickle is no dictionary")
	}
	itos, _ := meta.Get("itos").(*pickle.Dict)
	if itos == nil {
		return "", fmt.Errorf("it has no dictionary itos")
	}
	var chars strings.Builder
	for i, k := range itos.Keys {
		c, _ := itos.Values[i].(string)
		if k != int64(i) || utf8.RuneCountInString(c) != 1 {
			return "", fmt.Errorf("token %v of itos is %q", k, c)
		}
		chars.WriteString(c)
	}
	return chars.String(), nil
}

// plain is a reader of pickles that refuses all classes.
type plain struct{}

func (plain) Construct(class pickle.Global, _ []any) (any, error) {
	return nil, fmt.Errorf("it makes a %s, want only texts and numbers", class)
}

func (plain) Persistent(any) (any, error) { return nil, fmt.Errorf("it refers to other files") }

func (plain) SetState(any, any) error { return fmt.Errorf("it sets attributes of objects") }
