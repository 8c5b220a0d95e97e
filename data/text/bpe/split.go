package bpe

import (
	"fmt"
	"strings"

	"github.com/dlclark/regexp2/v2"
)

// gpt2Pattern is what ByteLevel splits by, unless use_regex is false.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// split divides text into pieces. The matches of a pattern are pieces.
type split struct {
	pattern *regexp2.Regexp
	gaps    bool // the text between them are pieces, too; else it is dropped
}

// splitsOf returns the splits that a pre-tokenizer makes in turn, and whether bytes follow.
func splitsOf(s *step) (splits []split, level bool, err error) {
	one := func(pattern string, gaps bool) ([]split, error) {
		p, err := regexp2.Compile(pattern)
		if err != nil {
			return nil, unsupported("the pattern %q (%v)", pattern, err)
		}
		return []split{{p, gaps}}, nil
	}
	switch s.Type {
	case "Sequence":
		for _, part := range s.PreTokenizers {
			if level {
				return nil, false, unsupported("the pre-tokenizer %s after ByteLevel", part.Type)
			}
			var more []split
			if more, level, err = splitsOf(part); err != nil {
				return nil, false, err
			}
			splits = append(splits, more...)
		}
		return splits, level, nil
	case "ByteLevel":
		if s.AddPrefixSpace {
			return nil, false, unsupported("add_prefix_space")
		}
		if s.UseRegex == nil || *s.UseRegex {
			splits, err = one(gpt2Pattern, true)
		}
		return splits, true, err
	case "Digits":
		pattern := `\p{N}+`
		if s.Individual {
			pattern = `\p{N}`
		}
		splits, err = one(pattern, true)
		return splits, false, err
	case "Split":
		var pattern string
		switch {
		case s.Pattern.Regex != nil:
			pattern = *s.Pattern.Regex
		case s.Pattern.String != nil:
			pattern = regexp2.Escape(*s.Pattern.String)
		default:
			return nil, false, fmt.Errorf("its pre-tokenizer Split has no pattern")
		}
		if s.Behavior != "Isolated" && (s.Behavior != "Removed" || !s.Invert) {
			return nil, false, unsupported("the pre-tokenizer Split with behavior %s and invert %t", s.Behavior,
				s.Invert)
		}
		splits, err = one(pattern, s.Behavior == "Isolated")
		return splits, false, err
	}
	return nil, false, unsupported("the pre-tokenizer %s", s.Type)
}

func (s split) pieces(dst []string, text string) ([]string, error) {
	at := 0
	// regexp2 has the character U+007F in no negated class: another control character stands in
	m, err := s.pattern.FindStringMatch(strings.ReplaceAll(text, "\x7f", "\x01"))
	for ; m != nil && err == nil; m, err = s.pattern.FindNextMatch(m) {
		from, n := m.ByteRange()
		if s.gaps && from > at {
			dst = append(dst, text[at:from])
		}
		if n > 0 {
			dst = append(dst, text[from:from+n])
		}
		at = from + n
	}
	if err != nil {
		return nil, fmt.Errorf("bpe: splitting text: %w", err)
	}
	if s.gaps && at < len(text) {
		dst = append(dst, text[at:])
	}
	return dst, nil
}
