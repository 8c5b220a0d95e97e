package data

import (
	"errors"
	"fmt"
	"strings"

	"fspda/internal/pickle"
)

// pythonRecords returns the records of a file of the Python version, in the form of the binary
// version: labels, then red, green and blue.
func (c *cifarSet) pythonRecords(content []byte) ([]byte, error) {
	v, err := pickle.Load(content, numpy{})
	if err != nil {
		return nil, err
	}
	d, ok := v.(*pickle.Dict)
	if !ok {
		return nil, errors.New("its pickle is no dictionary")
	}
	array, ok := d.Get("data").(*bytesArray)
	if !ok || len(array.shape) != 2 || array.shape[1] != cifarPixels {
		return nil, fmt.Errorf("its data is no array of bytes in rows of %d", cifarPixels)
	}
	var labels [][]any
	for _, name := range c.pythonLabels {
		l, ok := d.Get(name).(*pickle.List)
		if !ok || len(l.Items) != array.shape[0] {
			return nil, fmt.Errorf("it has no list %s of %d labels", name, array.shape[0])
		}
		labels = append(labels, l.Items)
	}
	records := make([]byte, 0, array.shape[0]*c.record())
	for i := range array.shape[0] {
		for k := range labels {
			v, ok := labels[k][i].(int64)
			if !ok || v < 0 || v > 255 {
				return nil, fmt.Errorf("label %d of %s is %v", i, c.pythonLabels[k], labels[k][i])
			}
			records = append(records, byte(v))
		}
		records = append(records, array.bytes[i*cifarPixels:][:cifarPixels]...)
	}
	return records, nil
}

// numpy makes arrays of bytes of a pickle.
type numpy struct{}

// bytesArray is an array of bytes in C order.
type bytesArray struct {
	shape []int
	bytes string
}

// byteType is the type of numbers of an array.
type byteType string

// Construct makes arrays without elements, their types, and bytes that Python 3 wrote for Python 2.
func (numpy) Construct(class pickle.Global, args []any) (any, error) {
	switch name := strings.Replace(string(class), "._core.", ".core.", 1); {
	case name == "numpy.core.multiarray._reconstruct" && len(args) == 3 && args[0] == pickle.Global("numpy.ndarray"):
		return &bytesArray{}, nil
	case name == "numpy.dtype" && len(args) > 0:
		kind, _ := args[0].(string)
		t := byteType(kind)
		return &t, nil
	case name == "_codecs.encode" && len(args) == 2 && args[1] == "latin1":
		text, _ := args[0].(string)
		raw := make([]byte, 0, len(text))
		for _, r := range text {
			if r > 255 {
				return nil, fmt.Errorf("%q is no byte", r)
			}
			raw = append(raw, byte(r))
		}
		return string(raw), nil
	}
	return nil, fmt.Errorf("it makes a %s, want only arrays of bytes", class)
}

func (numpy) Persistent(any) (any, error) { return nil, errors.New("it refers to other files") }

func (numpy) SetState(object, state any) error {
	switch o := object.(type) {
	case *byteType: // the byte order, which bytes have not
		return nil
	case *bytesArray:
		// version, shape, type, whether columns come first, bytes
		s, ok := state.([]any)
		if !ok || len(s) != 5 {
			break
		}
		kind, _ := s[2].(*byteType)
		sizes, isTuple := s[1].([]any)
		raw, isText := s[4].(string)
		if kind == nil || *kind != "u1" || s[3] != false && s[3] != int64(0) || !isTuple || !isText {
			break
		}
		size := int64(1)
		for _, v := range sizes {
			n, ok := v.(int64)
			if !ok || n < 0 || n > 1<<31 || size*n > 1<<40 {
				return errors.New("its array has no lengths")
			}
			size *= n
			o.shape = append(o.shape, int(n))
		}
		if size == int64(len(raw)) {
			o.bytes = raw
			return nil
		}
		return fmt.Errorf("its array has %d bytes, want %d", len(raw), size)
	}
	return errors.New("it holds another array than of bytes")
}
