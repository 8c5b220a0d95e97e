package datacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/data"
	"fspda/data/images"
)

// report describes a data set.
type report interface{ print(w io.Writer) error }

// dataReport is the output of fspda data info for pictures.
type dataReport struct {
	Path    string      `json:"path"`
	Kind    string      `json:"kind"`
	Layout  string      `json:"layout,omitempty"` // where the pictures and their classes were found
	Classes []string    `json:"classes"`
	Train   splitReport `json:"train"`
	Test    splitReport `json:"test"`
	Notes   []string    `json:"notes,omitempty"`
}

type splitReport struct {
	Pictures int         `json:"pictures"`
	PerClass [2]int      `json:"per_class"`       // the fewest and the most pictures of a class
	Bytes    int64       `json:"bytes,omitempty"` // size as stored, if known without reading
	Sizes    *sizeReport `json:"sizes,omitempty"`
	Bad      []string    `json:"bad,omitempty"`
}

// sizeReport describes the images that were decoded.
type sizeReport struct {
	Looked int    `json:"looked_at"`
	Least  [2]int `json:"least"` // width and height of the picture with the fewest pixels
	Median [2]int `json:"median"`
	Most   [2]int `json:"most"`
}

func newDataInfo() *cobra.Command {
	var asJSON, all bool
	var o images.Options
	cmd := &cobra.Command{
		Use:   "info PATH",
		Short: "Describe a data set: kind, images, classes, sizes, and bad images on request; of a text, its tokens",
		Args:  onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := inspect(cmd.Context(), args[0], o, all, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(cmd.OutOrStdout(), r)
			}
			return r.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&all, "decode", false, "decode every picture and list the bad ones, not a few for their sizes")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	sourceFlags(cmd.Flags(), &o)
	return cmd
}

// inspect describes the data set at a path.
func inspect(ctx context.Context, path string, o images.Options, all bool, stderr io.Writer) (report, error) {
	if isText(path) {
		return inspectText(path, o, all)
	}
	set, err := images.Open(path, o)
	if _, ok := errors.AsType[*images.FormatError](err); ok {
		if r := inMemory(path); r != nil {
			return r, nil
		}
	}
	if errors.Is(err, images.ErrNoPictures) {
		if r, textErr := inspectText(path, o, all); r != nil || textErr != nil {
			return r, textErr
		}
	}
	if err != nil {
		return nil, err
	}
	defer set.Close() // read only: nothing to lose
	r := &dataReport{Path: path, Kind: set.Kind, Layout: set.Layout, Classes: set.Classes, Notes: set.Notes}
	for _, s := range []struct {
		name string
		from images.Source
		to   *splitReport
	}{{"train", set.Train, &r.Train}, {"test", set.Test, &r.Test}} {
		if s.from == nil {
			continue
		}
		s.to.count(s.from, len(set.Classes))
		g := command.NewProgress(stderr, s.name, int64(s.from.Len()), false)
		err := s.to.decode(ctx, s.from, all, g)
		g.Close()
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// inMemory describes the data sets that are not image files: IDX files and the binary versions of
// CIFAR-10 and CIFAR-100. It returns nil for anything else.
func inMemory(path string) *dataReport {
	for name, kind := range map[string]string{"mnist": "MNIST in IDX files",
		"cifar10":  "CIFAR-10 in its binary or Python version",
		"cifar100": "CIFAR-100 in its binary or Python version"} {
		s, err := data.Open(name, data.OpenOptions{Dir: path})
		if err != nil {
			continue
		}
		r := &dataReport{Path: path, Kind: kind, Notes: s.Notes, Classes: make([]string, s.Classes)}
		for i := range r.Classes {
			r.Classes[i] = fmt.Sprint(i)
		}
		for split, to := range map[*data.Split]*splitReport{&s.Train: &r.Train, &s.Test: &r.Test} {
			to.tally(split.Labels, s.Classes)
			wh := [2]int{s.Shape[1], s.Shape[0]}
			to.Sizes = &sizeReport{Looked: to.Pictures, Least: wh, Median: wh, Most: wh}
		}
		return r
	}
	return nil
}

// tally counts the images of each class.
func (r *splitReport) tally(labels []int32, classes int) {
	counts := make([]int, max(classes, 1))
	for _, y := range labels {
		counts[y]++
	}
	sort.Ints(counts)
	r.Pictures, r.PerClass = len(labels), [2]int{counts[0], counts[len(counts)-1]}
}

func (r *splitReport) count(s images.Source, classes int) {
	labels := make([]int32, s.Len())
	for i := range labels {
		labels[i] = s.Label(i)
		r.Bytes += max(0, s.Bytes(i))
	}
	r.tally(labels, classes)
}

// sampled is the number of images that are decoded to find their sizes.
const sampled = 200

// decode decodes all images, or some spread evenly over the list, on all cores.
func (r *splitReport) decode(ctx context.Context, s images.Source, all bool, g *command.Progress) error {
	step := 1
	if !all {
		step = max(1, s.Len()/sampled)
	}
	n := (s.Len() + step - 1) / step
	sizes, errs := make([][2]int, n), make([]error, n)
	var next, done atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var p images.RGB
			for ctx.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= n {
					return
				}
				if errs[k] = s.Image(&p, k*step); errs[k] == nil {
					sizes[k] = [2]int{p.W, p.H}
				}
				mu.Lock()
				g.Set(done.Add(int64(step)), "")
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.sum(sizes, errs)
	return nil
}

func (r *splitReport) sum(sizes [][2]int, errs []error) {
	var good [][2]int
	for k, err := range errs {
		if err != nil {
			r.Bad = append(r.Bad, err.Error())
		} else {
			good = append(good, sizes[k])
		}
	}
	if len(good) == 0 {
		return
	}
	sort.Slice(good, func(a, b int) bool { return good[a][0]*good[a][1] < good[b][0]*good[b][1] })
	r.Sizes = &sizeReport{Looked: len(good), Least: good[0], Median: good[len(good)/2], Most: good[len(good)-1]}
}

func (r *dataReport) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.Path, r.Kind)
	if r.Layout != "" {
		fmt.Fprintf(&b, "layout    %s\n", r.Layout)
	}
	fmt.Fprintf(&b, "classes   %d: %s\n", len(r.Classes), fewOf(r.Classes))
	r.Train.print(&b, "training")
	r.Test.print(&b, "test")
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note      %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *splitReport) print(b *strings.Builder, name string) {
	if r.Pictures == 0 {
		fmt.Fprintf(b, "%-9s none\n", name)
		return
	}
	fmt.Fprintf(b, "%-9s %s pictures, %d to %d of a class", name, command.Thousands(uint64(r.Pictures)), r.PerClass[0],
		r.PerClass[1])
	if r.Bytes > 0 {
		fmt.Fprintf(b, ", %s", command.Bytes(uint64(r.Bytes)))
	}
	fmt.Fprintln(b)
	if z := r.Sizes; z != nil {
		fmt.Fprintf(b, "          %d×%d to %d×%d pixels, median %d×%d, of %d looked at\n", z.Least[0], z.Least[1],
			z.Most[0], z.Most[1], z.Median[0], z.Median[1], z.Looked)
	}
	for _, bad := range r.Bad {
		fmt.Fprintf(b, "bad       %s\n", bad)
	}
}

func fewOf(classes []string) string {
	var names []string
	for _, c := range classes {
		names = append(names, command.Printable(c))
	}
	if len(names) > 6 {
		return strings.Join(names[:5], ", ") + ", … " + names[len(names)-1]
	}
	return strings.Join(names, ", ")
}
