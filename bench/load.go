package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"fspda/data"
	"fspda/device"
)

// LoadOptions say which pictures [Load] feeds, and how it measures.
type LoadOptions struct {
	Open  func(jpeg data.Decoder, workers int) (*data.Set, error) // the set of pictures
	Crop  int                                                     // side of what a network sees, in pixels
	Jobs  int                                                     // cores to use
	Batch int                                                     // pictures of a batch
	Each  time.Duration                                           // how long to measure each thing
}

// LoadReport is how fast the loader feeds training: pictures a second and core, cropped, mirrored
// and normalised.
type LoadReport struct {
	Jobs     int       `json:"jobs"`
	Pictures int       `json:"pictures"`
	Crop     int       `json:"crop"`
	Rows     []LoadRow `json:"rows"`
	Copies   float64   `json:"copies"` // of as many bytes as a crop has, a second and core
	// what is asked of the packed set: 70 % of Copies, or 10,000 where that is less
	PackedBar  float64 `json:"packed_bar"`
	PackedRate float64 `json:"packed_rate"` // over the bar
}

// LoadRow is one way for pictures to come.
type LoadRow struct {
	From    string  `json:"from"`
	PerCore float64 `json:"per_core"` // pictures a second
	Err     string  `json:"error,omitempty"`
}

const (
	packedPictures = 400 // enough not to fit into a cache
	packedBar      = 10000
	packedShare    = 0.7
	loadRounds     = 5
)

// source is one way to be measured.
type source struct {
	from   string
	loader *data.Loader
	best   float64 // pictures a second
}

// Load measures the loader on files, by each JPEG decoder that the machine has, and on packed
// pictures, of which it makes some in memory where the set is not packed itself. All take turns,
// and the fastest turn counts.
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

// sources opens what is to be measured; the packed set is the last one.
func (o LoadOptions) sources(r *LoadReport) ([]*source, error) {
	var sources []*source
	var files *data.Set
	for _, jpeg := range []data.Decoder{data.Turbo, data.GoJPEG} {
		set, err := o.Open(jpeg, o.Jobs)
		if err != nil {
			if jpeg == data.GoJPEG {
				return nil, err
			}
			r.Rows = append(r.Rows, LoadRow{From: "JPEG, " + string(jpeg), Err: err.Error()})
			continue
		}
		r.Pictures = set.Train.Len()
		if set.Train.Packed() {
			return o.add(nil, "packed", set)
		}
		if sources, err = o.add(sources, "JPEG, "+string(jpeg), set); err != nil {
			return nil, err
		}
		files = set
	}
	packed, err := files.Unpack(packedPictures, o.Crop*8/7, data.PictureOptions{Crop: o.Crop, Workers: o.Jobs})
	if err != nil {
		return nil, err
	}
	return o.add(sources, "packed", packed)
}

// add opens a loader over all training pictures of a set, with every one read once before.
func (o LoadOptions) add(sources []*source, from string, set *data.Set) ([]*source, error) {
	all := make([]int32, set.Train.Len())
	for i := range all {
		all[i] = int32(i)
	}
	var b device.Batch
	for at := 0; at < len(all); at += o.Batch {
		if err := set.Train.Gather(&b, all[at:min(at+o.Batch, len(all))]); err != nil {
			return nil, err
		}
	}
	l, err := data.NewLoader(set.Train, all, 0, data.LoaderOptions{Batch: min(o.Batch, len(all)), Ahead: o.Jobs - 1})
	if err != nil {
		return nil, err
	}
	return append(sources, &source{from: from, loader: l}), nil
}

// round takes batches for a while.
func (f *source) round(ctx context.Context, d time.Duration) error {
	pictures, begin := 0, time.Now()
	for ctx.Err() == nil && time.Since(begin) < d {
		b, err := f.loader.Next()
		if err != nil {
			return err
		}
		pictures += b.N()
		f.loader.Release(b)
	}
	f.best = max(f.best, float64(pictures)/time.Since(begin).Seconds())
	return ctx.Err()
}

// copies is memory to copy crops from and to, for each core, more than the caches hold.
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

// round returns how many crops were copied in a second, by all cores.
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

// WriteTo writes the report for people.
func (r LoadReport) WriteTo(w io.Writer) (int64, error) {
	n := 0
	say := func(format string, args ...any) {
		k, _ := fmt.Fprintf(w, format, args...) // w is a terminal or a buffer: there is nobody to tell
		n += k
	}
	say("%d pictures, %d×%d crops, cores %d: pictures a second and core, decoded, cropped, scaled, mirrored, normalised\n\n", r.Pictures, r.Crop, r.Crop, r.Jobs)
	for _, row := range r.Rows {
		if row.Err != "" {
			say("%-14s %s\n", row.From, row.Err)
			continue
		}
		say("%-14s %9.0f\n", row.From, row.PerCore)
	}
	say("%-14s %9.0f\n\n", "copy", r.Copies)
	say("The packed set reaches %.2f of what is asked of it: %.0f, the less of 10,000 and 70 %% of a copy of the crop's numbers.\n", r.PackedRate, r.PackedBar)
	return int64(n), nil
}
