package bounded

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// MaxYAML is the size in bytes of the longest YAML that is parsed. The parser takes a thousand
// times as much memory in the worst case.
const MaxYAML = 64 << 10

const (
	maxDepth  = 16 // deepest nesting of brackets
	maxIndent = 64 // columns before the first word of a line
)

// Open opens a regular file. Other files are refused before they are opened: opening a named pipe
// would wait for a writer, and reading a device may never end.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}

// File reads a regular file of at most limit bytes.
func File(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes, the most that is read", path, limit)
	}
	return b, err
}

// YAMLFile reads a regular file of at most MaxYAML bytes, without a byte order mark.
func YAMLFile(path string) ([]byte, error) {
	text, err := File(path, MaxYAML)
	return Unmarked(text), err
}

// Unmarked returns text without the byte order mark that editors on Windows begin it with.
func Unmarked(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

// YAML returns an error for text that takes much memory to parse: it is longer than MaxYAML, or
// [Nesting] refuses it.
func YAML(text []byte) error {
	if len(text) > MaxYAML {
		return fmt.Errorf("it has %d bytes, at most %d are read", len(text), MaxYAML)
	}
	return Nesting(text)
}

// Nesting returns an error for YAML that is nested deeply, or repeats parts of itself by anchors,
// or has a second document, which no reader would see, or numbers such as 010, which YAML reads as
// octal. The memory to parse other YAML is proportional to its length.
func Nesting(text []byte) error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		indent := len(line) - len(bytes.TrimLeft(line, " \t-?:"))
		if indent > maxIndent && len(bytes.TrimSpace(line)) > 0 {
			return fmt.Errorf("line %d is indented by %d columns, at most %d are read", n, indent, maxIndent)
		}
	}
	depth, begun := 0, false
	for _, t := range lexer.Tokenize(string(text)) {
		switch t.Type {
		case token.CommentType:
			continue
		case token.DocumentHeaderType:
			if begun {
				return fmt.Errorf("line %d begins a second document, of which nothing would be read: remove it",
					t.Position.Line)
			}
		case token.AnchorType, token.AliasType:
			return fmt.Errorf("line %d has an anchor or an alias, %q: write the value out", t.Position.Line, t.Value)
		case token.OctetIntegerType:
			if !strings.Contains(t.Value, "o") {
				return fmt.Errorf("line %d has the number %s, whose leading 0 makes it octal in YAML: leave the 0 "+
					"out; write 0o if octal is meant, or quotes if it is a text", t.Position.Line, t.Value)
			}
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
		if depth > maxDepth {
			return fmt.Errorf("line %d nests brackets more than %d deep", t.Position.Line, maxDepth)
		}
		begun = true
	}
	return nil
}
