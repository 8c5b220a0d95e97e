package parquet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"fspda/data/images"
)

// Known names of the columns.
var (
	contentColumns = []string{"image.bytes", "img.bytes", "image", "img", "jpg", "png"}
	pathColumns    = []string{"image.path", "img.path"}
	labelColumns   = []string{"label", "labels", "cls", "fine_label"}
)

// shard is an open file.
type shard struct {
	name                 string
	file                 *os.File
	footer               *footer
	content, path, label int // columns; path is -1 if there is none
}

// openShard opens a file and finds its columns.
func openShard(name string) (s *shard, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close() // return the first error
		}
	}()
	s = &shard{name: name, file: f}
	info, err := f.Stat()
	if err == nil {
		s.footer, err = readFooter(f, info.Size())
	}
	if err != nil {
		return nil, damaged(name, err)
	}
	return s, s.find()
}

func damaged(name string, err error) error {
	e := &images.FormatError{Path: name, Got: err.Error(), Want: "an intact parquet file", Hint: "fetch the file again",
		Err: err}
	if errors.As(err, new(unknown)) {
		e.Want, e.Hint = "compression SNAPPY, GZIP, ZSTD, LZ4_RAW or none, and values in PLAIN, RLE_DICTIONARY or "+
			"one of the DELTA encodings", "write the file again in one of these"
	}
	return e
}

// find sets the columns.
func (s *shard) find() error {
	at := func(names []string, fits func(l leaf) bool) int {
		for _, n := range names {
			for i, l := range s.footer.leaves {
				if l.path == n && !l.repeated && fits(l) {
					return i
				}
			}
		}
		return -1
	}
	isBytes := func(l leaf) bool { return l.physical == byteArrays }
	isInt := func(l leaf) bool { return l.physical == int32Values || l.physical == int64Values }
	s.content, s.path, s.label = at(contentColumns, isBytes), at(pathColumns, isBytes), at(labelColumns, isInt)
	if s.content >= 0 && s.label >= 0 {
		return s.checkCodecs()
	}
	var have []string
	for _, l := range s.footer.leaves {
		have = append(have, fmt.Sprintf("%s (%s)", l.path, l.physical))
	}
	return &images.FormatError{Path: s.name, Got: "the columns " + strings.Join(have, ", "),
		Want: "image.bytes (BYTE_ARRAY) and label (INT64)",
		Hint: "also known are " + strings.Join(append(contentColumns[1:4:4], labelColumns[1:]...), ", ")}
}

// checkCodecs rejects files whose images could not be read later.
func (s *shard) checkCodecs() error {
	for _, g := range s.footer.groups {
		for _, at := range []int{s.content, s.path, s.label} {
			if at >= 0 && !g.chunks[at].codec.known() {
				return damaged(s.name, unknown{fmt.Sprintf("column %s with the compression %s",
					s.footer.leaves[at].path, g.chunks[at].codec)})
			}
		}
	}
	return nil
}

// classNames returns the names that the datasets library stores in its files, in JSON.
func (s *shard) classNames() []string {
	var meta struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(s.footer.meta["huggingface"]), &meta) != nil {
		return nil
	}
	var label struct {
		Names []string `json:"names"`
	}
	name := s.footer.leaves[s.label].path
	if json.Unmarshal(meta.Info.Features[name], &label) != nil {
		return nil
	}
	return label.Names
}
