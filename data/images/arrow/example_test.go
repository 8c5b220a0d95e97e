package arrow_test

import (
	"bytes"
	"fmt"
	"log"

	"fspda/data/images/arrow"
)

// A file of one column is written and read.
func Example() {
	names := arrow.Column{Field: arrow.Field{Name: "name", Kind: arrow.String, Bits: 32}}
	names.AppendBytes([]byte("ant"))
	names.AppendBytes([]byte("bee"))
	var file bytes.Buffer
	w, err := arrow.NewWriter(&file, []arrow.Field{names.Field}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Write(&names); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	f, err := arrow.Open(file.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	batches, err := f.Batches(0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Fields()[0].Name, batches[0][0].Len(), string(batches[0][0].Bytes(1)))
	// Output: name 2 bee
}
