package measure

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"fspda/data"
	"fspda/device"
)

// LoadOptions configures [Load].
type LoadOptions struct {
	Open  func(jpeg data.Decoder, workers int) (*data.Set, error) // opens the set of images
	Crop  int                                                     // side of the crops in pixels
	Jobs  int                                                     // cores to use
	Batch int                                                     // images in a batch
	Each  time.Duration                                           // duration of each measurement
}

// LoadReport is the throughput of the data loader: images per second and core, cropped, mirrored
// and normalised.
type LoadReport struct {
	Jobs   int       `json:"jobs"`
	Images int       `json:"pictures"`
	Crop   int       `json:"crop"`
	Rows   []LoadRow `json:"rows"`
	Copies float64   `json:"copies"` // copies of a crop per second and core
	// target for the packed set: 70 % of Copies, at most 10,000
	PackedBar  float64 `json:"packed_bar"`
	PackedRate float64 `json:"packed_rate"` // rate of the packed set over PackedBar
}

// LoadRow is the result of one source.
type LoadRow struct {
	From    string  `json:"from"`
	PerCore float64 `json:"per_core"` // images per second
}

const (
	packedImages = 400 // too many for the caches
	packedBar    = 10000
	packedShare  = 0.7
	loadRounds   = 5
)

// source is a source of images to measure.
type source struct {
	from   string
	loader *data.Loader
	best   float64 // images per second
}

// Load measures the loader on JPEG files, with each decoder, and on packed images, which
// it creates in memory unless the set is packed. All sources take turns, and the fastest turn
// counts.
func Load(ctx context.Context, o LoadOptions) (LoadReport, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.Jobs))
	r := LoadReport{Jobs: o.Jobs, Crop: o.Crop}
	sources, err := o.sources(&r)
	if err != nil {
		return r, err
	}
	defer func() {
		for _, f := range sources {
			f.loader.Close()
		}
	}()
	copies := newCopies(o.Crop, o.Jobs)
	for range loadRounds {
		for _, f := range sources {
			if err := f.round(ctx, o.Each/loadRounds); err != nil {
				return r, err
			}
		}
		r.Copies = max(r.Copies, copies.round(o.Each/loadRounds)/float64(o.Jobs))
	}
	for _, f := range sources {
		r.Rows = append(r.Rows, LoadRow{From: f.from, PerCore: f.best / float64(o.Jobs)})
	}
	r.PackedBar = min(packedBar, packedShare*r.Copies)
	r.PackedRate = sources[len(sources)-1].best / float64(o.Jobs) / r.PackedBar
	return r, nil
}

// sources opens the sources to measure; the packed set is the last.
func (o LoadOptions) sources(r *LoadReport) ([]*source, error) {
	var sources []*source
	var files *data.Set
	for _, jpeg := range []data.Decoder{data.LibJPEG, data.GoJPEG} {
		set, err := o.Open(jpeg, o.Jobs)
		if err != nil {
			return nil, err
		}
		r.Images = set.Train.Len()
		if set.Train.Packed() {
			return o.add(nil, "packed", set)
		}
		if sources, err = o.add(sources, "JPEG, "+string(jpeg), set); err != nil {
			return nil, err
		}
		files = set
	}
	packed, err := files.Unpack(packedImages, o.Crop*8/7, data.ImageOptions{Crop: o.Crop, Workers: o.Jobs})
	if err != nil {
		return nil, err
	}
	return o.add(sources, "packed", packed)
}

// add opens a loader over all training images of a set, after reading each once.
func (o LoadOptions) add(sources []*source, from string, set *data.Set) ([]*source, error) {
	all := make([]int32, set.Train.Len())
	for i := range all {
		all[i] = int32(i)
	}
	var b device.Batch
	for batch := range slices.Chunk(all, o.Batch) {
		if err := set.Train.Gather(&b, batch); err != nil {
			return nil, err
		}
	}
	l, err := data.NewLoader(set.Train, all, 0, data.LoaderOptions{Batch: min(o.Batch, len(all)), Ahead: o.Jobs - 1})
	if err != nil {
		return nil, err
	}
	return append(sources, &source{from: from, loader: l}), nil
}

func (f *source) round(ctx context.Context, d time.Duration) error {
	images, begin := 0, time.Now()
	for ctx.Err() == nil && time.Since(begin) < d {
		b, err := f.loader.Next()
		if err != nil {
			return err
		}
		images += b.N()
		f.loader.Release(b)
	}
	f.best = max(f.best, float64(images)/time.Since(begin).Seconds())
	return ctx.Err()
}

// copies is memory for copying crops, for each core more than the caches hold.
type copies struct {
	crop     int // floats
	from, to [][]float32
}

func newCopies(side, jobs int) *copies {
	const floats = 16 << 20
	c := &copies{crop: 3 * side * side}
	for range jobs {
		c.from = append(c.from, make([]float32, floats))
		c.to = append(c.to, make([]float32, floats))
		copy(c.to[len(c.to)-1], c.from[len(c.from)-1])
	}
	return c
}

// round returns the number of crops that all cores copy per second.
func (c *copies) round(d time.Duration) float64 {
	rates := make(chan float64)
	for i := range c.from {
		go func() {
			n, begin := 0, time.Now()
			for at := 0; time.Since(begin) < d; n++ {
				if at+c.crop > len(c.from[i]) {
					at = 0
				}
				copy(c.to[i][at:at+c.crop], c.from[i][at:])
				at += c.crop
			}
			rates <- float64(n) / time.Since(begin).Seconds()
		}()
	}
	sum := 0.0
	for range c.from {
		sum += <-rates
	}
	return sum
}

func (r LoadReport) String() string {
	text := fmt.Sprintf("%d pictures, %d×%d crops, cores %d: pictures a second and core, decoded, cropped, scaled, "+
		"mirrored, normalised\n\n", r.Images, r.Crop, r.Crop, r.Jobs)
	for _, row := range append(r.Rows, LoadRow{From: "copy", PerCore: r.Copies}) {
		text += fmt.Sprintf("%-14s %9.0f\n", row.From, row.PerCore)
	}
	return text + fmt.Sprintf("\nThe packed set reaches %.2f of its target: %.0f, the lesser of 10,000 and 70 %% of "+
		"the copies.\n", r.PackedRate, r.PackedBar)
}
