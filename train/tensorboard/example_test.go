package tensorboard_test

import (
	"fmt"
	"os"
	"path/filepath"

	"fspda/train/tensorboard"
)

// A run writes its loss, stops, and resumes from its checkpoint of iteration 100.
func Example() {
	dir, err := os.MkdirTemp("", "events")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	for _, from := range []int64{0, 100} {
		w, err := tensorboard.Create(dir)
		if err != nil {
			fmt.Println(err)
			return
		}
		if from > 0 {
			w.Restart(from, 1.7e9+500)
		}
		// errors are kept until Close
		w.Scalar("train/loss", from, 1.7e9+float64(from), 1/float64(from+1))
		if err := w.Close(); err != nil {
			fmt.Println(err)
		}
		fmt.Println(filepath.Base(w.Path()))
	}
	// Output:
	// events.out.tfevents.000000.fspda
	// events.out.tfevents.000001.fspda
}
