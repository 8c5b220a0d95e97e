package datacmd

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fspda/cli/command"
	"fspda/data"
	"fspda/data/images"
	"fspda/data/text"
)

// textReport is the output of fspda data info for a text.
type textReport struct {
	Path       string       `json:"path"`
	Kind       string       `json:"kind"`
	Tokenizer  string       `json:"tokenizer,omitempty"` // empty: not known
	Vocabulary int          `json:"vocabulary"`
	Train      streamReport `json:"train"`
	Val        streamReport `json:"val"`
}

type streamReport struct {
	Tokens int    `json:"tokens"`
	Bytes  int64  `json:"bytes,omitempty"` // size as text, if the tokenizer is known
	SHA256 string `json:"sha256"`          // SHA-256 of the tokens, as train.bin and val.bin hold them behind a header
}

// isText reports whether a path is a file of text by its name.
func isText(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && slices.Contains([]string{".txt", ".text", ".md"},
		strings.ToLower(filepath.Ext(path)))
}

// hasTexts reports whether a folder has files of text.
func hasTexts(path string) bool {
	for _, pattern := range []string{"*.txt", "*/*.txt"} {
		if found, err := fs.Glob(os.DirFS(path), pattern); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// inspectText describes a text. It returns nil for a path that holds none.
func inspectText(path string, o images.Options, all bool) (report, error) {
	c, err := text.Open(path, text.OpenOptions{})
	if err != nil && !hasTexts(path) &&
		(errors.Is(err, fs.ErrNotExist) || !isText(path) && data.Recognize(path) != "text") {

		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer c.Close() // read only: nothing to lose
	if all || o != (images.Options{}) {
		return nil, command.UsageErrorf("%s is a text: --decode, --labels, --image-column and --label-column are of "+
			"pictures: leave them out", path)
	}
	r := &textReport{Path: path, Kind: "text", Vocabulary: c.Vocabulary, Train: stream(c, c.Train),
		Val: stream(c, c.Val)}
	if c.Mapped() {
		r.Kind = "files of tokens"
	}
	if c.Tokenizer != nil {
		r.Tokenizer = c.Tokenizer.Name()
	}
	return r, nil
}

// stream describes the training or the validation stream of a text.
func stream(c *text.Corpus, tokens []uint16) streamReport {
	h, b := sha256.New(), make([]byte, 0, 1<<16)
	for k, t := range tokens {
		if b = append(b, byte(t), byte(t>>8)); len(b) == cap(b) || k == len(tokens)-1 {
			h.Write(b)
			b = b[:0]
		}
	}
	return streamReport{Tokens: len(tokens), Bytes: c.Bytes(tokens), SHA256: hex.EncodeToString(h.Sum(nil))}
}

func (r *textReport) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.Path, r.Kind)
	fmt.Fprintf(&b, "tokenizer  %s, vocabulary %s\n", cmp.Or(r.Tokenizer, "not known"),
		command.Thousands(uint64(r.Vocabulary)))
	for _, s := range []struct {
		name string
		streamReport
	}{{"training", r.Train}, {"validation", r.Val}} {
		fmt.Fprintf(&b, "%-10s %s tokens", s.name, command.Thousands(uint64(s.Tokens)))
		if s.Bytes > 0 {
			fmt.Fprintf(&b, ", %s of text", command.Bytes(uint64(s.Bytes)))
		}
		fmt.Fprintf(&b, ", SHA-256 %s\n", s.SHA256)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
