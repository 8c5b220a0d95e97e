package parquet

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"fspda/data/images"
)

// Kind is the kind of parquet sets in [images.Set].
const Kind = "parquet"

const ending = ".parquet"

func init() {
	images.Register(images.Format{Name: Kind, Recognise: recognise, Open: open})
}

// recognise checks the first bytes of the first file.
func recognise(path string) bool {
	files, err := images.Expand(path, ending)
	if err != nil || len(files) == 0 {
		return false
	}
	f, err := os.Open(files[0])
	if err != nil {
		return false
	}
	defer f.Close() // read only: an error loses no data
	var magic [4]byte
	_, err = f.ReadAt(magic[:], 0)
	return err == nil && string(magic[:]) == "PAR1"
}

// maxClasses limits the number of classes.
const maxClasses = 1 << 20

func open(path string, o images.Options) (*images.Set, error) {
	files, err := images.Expand(path, ending)
	if err != nil {
		return nil, err
	}
	train, test, left := images.Splits(files)
	s := &images.Set{Path: path, Kind: Kind}
	for _, f := range left {
		s.Notes = append(s.Notes, "ignored in favour of the shards of validation: "+f)
	}
	var lists []*rows
	for _, part := range []struct {
		files []string
		to    *images.Source
	}{{train, &s.Train}, {test, &s.Test}} {
		if len(part.files) == 0 {
			continue
		}
		r, err := openRows(path, part.files, o.MaxPixels)
		if err != nil {
			_ = s.Close() // return the first error
			return nil, err
		}
		s.OnClose(r)
		*part.to = r
		lists = append(lists, r)
	}
	if s.Classes, err = classes(path, lists); err != nil {
		_ = s.Close() // return the first error
		return nil, err
	}
	return s, nil
}

// classes returns the names stored in the files, or the numbers up to the largest label.
func classes(path string, lists []*rows) ([]string, error) {
	names := lists[0].classes
	for _, r := range lists[1:] {
		if len(names) > 0 && len(r.classes) > 0 && !slices.Equal(names, r.classes) {
			return nil, &images.FormatError{Path: path, Got: "other class names for testing than for training",
				Want: "the same"}
		}
	}
	if len(names) == 0 {
		for i := range lists[0].most() + 1 {
			names = append(names, strconv.Itoa(int(i)))
		}
	}
	for _, r := range lists {
		if most := r.most(); int(most) >= len(names) {
			return nil, &images.FormatError{Path: path, Got: fmt.Sprintf("label %d", most),
				Want: fmt.Sprintf("0 to %d, the classes for training", len(names)-1)}
		}
	}
	return names, nil
}
