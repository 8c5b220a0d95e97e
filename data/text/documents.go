package text

import (
	"bytes"
	"fmt"
)

// Documents divides a training stream into consecutive documents with classes.
type Documents struct {
	Ends       []int64  // where each document ends in the stream
	Class      []int32  // class of each document
	ClassNames []string // names by class
}

// Documents returns the documents of the training stream. Of several files each is a document, and its
// class is its folder or its name. Of one file the documents are the speeches, and the class is the
// speaker; without speakers the file is one document. A speech begins with a block of two lines or
// more, between empty lines, whose first line ends in a colon. Other blocks belong to the speech
// before them, and so does the empty line after a block: the documents together are the stream.
func (c *Corpus) Documents() (*Documents, error) {
	if c.parts != nil {
		d := &Documents{}
		class, end := classes{}, int64(0)
		for _, p := range c.parts {
			end += p.Tokens
			d.add(end, class.of(p.Class, d))
		}
		return d, nil
	}
	text, err := c.Decode(c.Train)
	if err != nil {
		return nil, err
	}
	d := speeches(text)
	return d, c.toTokens(d)
}

func (d *Documents) add(end int64, class int32) {
	d.Ends, d.Class = append(d.Ends, end), append(d.Class, class)
}

// classes numbers names in the order of their first use.
type classes map[string]int32

func (c classes) of(name string, d *Documents) int32 {
	n, ok := c[name]
	if !ok {
		n = int32(len(c))
		c[name] = n
		d.ClassNames = append(d.ClassNames, name)
	}
	return n
}

// speeches divides a text; the ends are in bytes.
func speeches(text []byte) *Documents {
	d, class := &Documents{}, classes{}
	gap := []byte("\n\n")
	for from := 0; from < len(text); {
		to := len(text)
		if i := bytes.Index(text[from:], gap); i >= 0 {
			to = from + i + len(gap)
		}
		name, speaks := speaker(text[from:to])
		switch {
		case speaks:
			d.add(int64(to), class.of(name, d))
		case len(d.Ends) == 0:
			d.add(int64(to), class.of("", d))
		default:
			d.Ends[len(d.Ends)-1] = int64(to)
		}
		from = to
	}
	return d
}

// speaker returns who speaks a block.
func speaker(block []byte) (name string, ok bool) {
	first, rest, _ := bytes.Cut(block, []byte("\n"))
	name = string(bytes.TrimSuffix(first, []byte(":")))
	return name, len(name) < len(first) && name != "" && len(bytes.TrimSpace(rest)) > 0
}

// toTokens turns ends in bytes into ends in tokens. A token across an end belongs to the document
// before it; a document without a token of its own is left out.
func (c *Corpus) toTokens(d *Documents) error {
	lengths := c.lengths()
	ends, class := d.Ends, d.Class
	d.Ends, d.Class = nil, nil
	k, at, last := 0, int64(0), int64(0)
	for i, t := range c.Train {
		for k < len(ends) && ends[k] <= at {
			if int64(i) > last {
				d.add(int64(i), class[k])
				last = int64(i)
			}
			k++
		}
		at += int64(lengths[t])
	}
	if n := int64(len(c.Train)); n > last && len(class) > 0 {
		d.add(n, class[len(class)-1])
	}
	if at < ends[len(ends)-1] {
		return fmt.Errorf("text: documents end at byte %d of %d", ends[len(ends)-1], at)
	}
	return nil
}
