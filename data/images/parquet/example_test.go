package parquet_test

import (
	"fmt"
	"log"

	"fspda/data/images"
	_ "fspda/data/images/parquet"
)

// With this package imported, images.Open reads the shards of Hugging Face.
func Example() {
	set, err := images.Open("testdata", images.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()
	fmt.Println(set.Kind, set.Classes, set.Train.Len(), set.Test.Len())
	fmt.Println(set.Train.Name(1))
	// Output:
	// parquet [ant bee cat] 20 4
	// train-00000-of-00002.parquet/bee_1.JPEG
}
