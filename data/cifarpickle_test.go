package data

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

// pickled writes a batch as Python 2 wrote the released files: a dictionary with an array of bytes
// and lists of labels, of protocol 2.
func pickled(pixels []byte, rows int, labels map[string][]int) []byte {
	var b bytes.Buffer
	text := func(s string) { b.WriteString("U" + string(rune(len(s))) + s) }
	long := func(op byte, v int) {
		b.WriteByte(op)
		_ = binary.Write(&b, binary.LittleEndian, uint32(v))
	}
	b.WriteString("\x80\x02}q\x01(")
	text("data")
	b.WriteString("cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85U\x01b\x87Rq\x04(K\x01")
	long('J', rows)
	b.WriteString("M\x00\x0c\x86cnumpy\ndtype\nq\x05U\x02u1K\x00K\x01\x87Rq\x06(K\x03U\x01|NNNJ\xff\xff\xff\xff" +
		"J\xff\xff\xff\xffK\x00tb\x89")
	long('T', len(pixels))
	b.Write(pixels)
	b.WriteString("tb")
	for name, all := range labels {
		text(name)
		b.WriteString("](")
		for _, v := range all {
			b.WriteString("K" + string([]byte{byte(v)}))
		}
		b.WriteString("e")
	}
	b.WriteString("u.")
	return b.Bytes()
}

// cifarPython is the set of cifarBinary in the Python version.
func cifarPython() map[string][]byte {
	files := map[string][]byte{}
	for name, records := range cifarBinary() {
		var pixels []byte
		var labels []int
		for len(records) > 0 {
			labels, pixels = append(labels, int(records[0])), append(pixels, records[1:1+cifarPixels]...)
			records = records[1+cifarPixels:]
		}
		name = strings.TrimSuffix(strings.Replace(name, "batches-bin", "batches-py", 1), ".bin")
		files[name] = pickled(pixels, len(labels), map[string][]int{"labels": labels})
	}
	return files
}

// The Python version is the set of the binary version.
func TestCIFARPython(t *testing.T) {
	want, err := LoadCIFAR10(writeTree(t, cifarBinary()), None)
	if err != nil {
		t.Fatal(err)
	}
	dir := writeTree(t, cifarPython())
	got, err := LoadCIFAR10(dir, None)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Train.Labels, want.Train.Labels) || !bytes.Equal(got.Train.Pixels, want.Train.Pixels) ||
		!bytes.Equal(got.Test.Pixels, want.Test.Pixels) {
		t.Error("the Python version is another set")
	}
	if name := Recognize(dir); name != "cifar10" {
		t.Errorf("the folder is recognized as %q", name)
	}
	for want, change := range map[string]func(files map[string][]byte){
		"no data_batch_3":          nil, // replaced below
		"its data is no array":     func(f map[string][]byte) { replaceAll(f, "data", "dato") },
		"no list labels of":        func(f map[string][]byte) { replaceAll(f, "labels", "lobels") },
		"want only arrays":         func(f map[string][]byte) { replaceAll(f, "_reconstruct", "_resonstruct") },
		"another array than of":    func(f map[string][]byte) { replaceAll(f, "u1", "u2") },
		"its pickle cannot be rea": func(f map[string][]byte) { cutAll(f) },
	} {
		files := cifarPython()
		if change == nil {
			delete(files, "cifar-10-batches-py/data_batch_3")
		} else {
			change(files)
		}
		if _, err := LoadCIFAR10(writeTree(t, files), None); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func replaceAll(files map[string][]byte, old, by string) {
	for name := range files {
		files[name] = bytes.ReplaceAll(files[name], []byte(old), []byte(by))
	}
}

func cutAll(files map[string][]byte) {
	for name := range files {
		files[name] = files[name][:len(files[name])-3]
	}
}

// CIFAR-100's files have the fine labels beside the coarse ones.
func TestCIFAR100Python(t *testing.T) {
	half := func(blue byte) []byte {
		var pixels []byte
		var fine, coarse []int
		for c := range 100 {
			fine, coarse = append(fine, c), append(coarse, c%20)
			pixels = append(pixels, bytes.Repeat([]byte{byte(c)}, 2048)...)
			pixels = append(pixels, bytes.Repeat([]byte{blue}, 1024)...)
		}
		return pickled(pixels, 100, map[string][]int{"fine_labels": fine, "coarse_labels": coarse})
	}
	s, err := LoadCIFAR100(writeTree(t, map[string][]byte{"cifar-100-python/train": half(1),
		"cifar-100-python/test": half(2)}),
		None)
	if err != nil {
		t.Fatal(err)
	}
	if s.Train.Labels[42] != 42 || s.Train.Pixels[42*cifarPixels] != 42 || s.Train.Pixels[42*cifarPixels+2] != 1 ||
		s.Test.Pixels[2] != 2 {
		t.Errorf("labels %v, pixels %v", s.Train.Labels[:50], s.Train.Pixels[42*cifarPixels:][:6])
	}
}
