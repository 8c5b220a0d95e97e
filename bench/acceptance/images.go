package acceptance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"fspda/internal/rng"
)

// Classes of the made images, and the share that is kept for tests.
const (
	madeClasses = 10
	testEvery   = 10
)

// makeImages writes a folder of JPEG files of photographic size, with gradients and noise, which
// cost a decoder as much as photographs.
func makeImages(ctx context.Context, folder string, s shapes) error {
	numbers := make(chan int)
	errs := make([]error, runtime.NumCPU())
	var wg sync.WaitGroup
	for k := range errs {
		wg.Go(func() {
			for i := range numbers {
				if errs[k] == nil {
					errs[k] = makeImage(folder, i, s.images.width, s.images.height)
				}
			}
		})
	}
	for i := range s.images.count {
		if ctx.Err() != nil {
			break
		}
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

func makeImage(folder string, i, width, height int) (err error) {
	split := "train"
	if i/madeClasses%testEvery == 0 {
		split = "val"
	}
	dir := filepath.Join(folder, split, fmt.Sprintf("class%d", i%madeClasses))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%06d.jpg", i)))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	err = jpeg.Encode(w, drawImage(i, width, height), &jpeg.Options{Quality: 90})
	return errors.Join(err, w.Flush(), f.Close())
}

func drawImage(i, width, height int) image.Image {
	s := rng.New(1, "acceptance", uint64(i))
	m := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio420)
	across, down := 1+s.IntN(3), 1+s.IntN(3)
	for y := range height {
		row := m.Y[y*m.YStride : y*m.YStride+width]
		var grain uint64
		for x := range row {
			if x%8 == 0 {
				grain = s.Uint64()
			}
			row[x] = uint8(40 + (x*across/4+y*down/4)%160 + int(grain&31))
			grain >>= 8
		}
	}
	for k := range m.Cb {
		m.Cb[k] = uint8(100 + k/m.CStride*40/height + 10*(i%madeClasses))
		m.Cr[k] = uint8(90 + k%m.CStride*60/width)
	}
	return m
}
