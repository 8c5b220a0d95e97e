package parquet

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	pq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"fspda/data/images"
)

// Names under which the columns are known.
var (
	contentColumns = []string{"image.bytes", "img.bytes", "image", "img", "jpg", "png"}
	pathColumns    = []string{"image.path", "img.path"}
	labelColumns   = []string{"label", "labels", "cls", "fine_label"}
)

// maxPage is how large a page may be, in bytes; what claims more is not believed. Pages hold whole pictures.
const maxPage = 1 << 30

// shard is an open file.
type shard struct {
	name                 string
	file                 *os.File
	reader               *file.Reader
	content, path, label int // columns; path is -1 where there is none
}

// openShard opens a file and finds its columns.
func openShard(name string) (s *shard, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close() // the first error is the one to tell
		}
	}()
	s = &shard{name: name, file: f}
	props := pq.NewReaderProperties(memory.DefaultAllocator)
	props.BufferedStreamEnabled = true // pages one by one, not a column at once
	props.BufferSize = 1 << 18
	props.MaxCompressedPageSize, props.MaxUncompressedPageSize = maxPage, maxPage
	err = guard(func() error {
		s.reader, err = file.NewParquetReader(f, file.WithReadProps(props))
		return err
	})
	if err != nil {
		return nil, damaged(name, err)
	}
	return s, s.find()
}

// guard turns a panic of the library, which a damaged file can bring about, into an error.
func guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return do()
}

func damaged(name string, err error) error {
	return &images.FormatError{Path: name, Got: err.Error(), Want: "an intact parquet file", Hint: "fetch the file again", Err: err}
}

// find sets the columns.
func (s *shard) find() error {
	schema := s.reader.MetaData().Schema
	at := func(names []string, fits func(i int) bool) int {
		for _, n := range names {
			for i := range schema.NumColumns() {
				if c := schema.Column(i); c.Path() == n && c.MaxRepetitionLevel() == 0 && fits(i) {
					return i
				}
			}
		}
		return -1
	}
	isBytes := func(i int) bool { return schema.Column(i).PhysicalType() == pq.Types.ByteArray }
	isInt := func(i int) bool {
		t := schema.Column(i).PhysicalType()
		return t == pq.Types.Int32 || t == pq.Types.Int64
	}
	s.content, s.path, s.label = at(contentColumns, isBytes), at(pathColumns, isBytes), at(labelColumns, isInt)
	if s.content >= 0 && s.label >= 0 {
		return nil
	}
	var have []string
	for i := range schema.NumColumns() {
		have = append(have, fmt.Sprintf("%s (%s)", schema.Column(i).Path(), schema.Column(i).PhysicalType()))
	}
	return &images.FormatError{Path: s.name, Got: "the columns " + strings.Join(have, ", "), Want: "image.bytes (BYTE_ARRAY) and label (INT64)",
		Hint: "also known are " + strings.Join(append(contentColumns[1:4:4], labelColumns[1:]...), ", ")}
}

// classNames are those that the datasets library writes into its files, in JSON.
func (s *shard) classNames() []string {
	text := s.reader.MetaData().KeyValueMetadata().FindValue("huggingface")
	if text == nil {
		return nil
	}
	var meta struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(*text), &meta) != nil {
		return nil
	}
	var label struct {
		Names []string `json:"names"`
	}
	name := s.reader.MetaData().Schema.Column(s.label).Path()
	if json.Unmarshal(meta.Info.Features[name], &label) != nil {
		return nil
	}
	return label.Names
}
