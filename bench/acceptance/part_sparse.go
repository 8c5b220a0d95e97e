package acceptance

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// sparse is the masked update of two vectors as long as the parameters of ResNet-50, against a copy
// of as many bytes. The 0.1 % are shown too, but not judged: their few megabytes are there before a
// kernel has begun.
func (o *Options) sparse() Part {
	return Part{Name: "vectors/sparse", Limit: o.limit(time.Minute), Run: func(ctx context.Context, b *job) error {
		var r struct {
			Rows []struct {
				Name  string
				Dims  []int
				Rate  float64
				Share float64
			}
		}
		args := []string{"bench", "kernels", "--device", b.Device, "--filter", "vector/add-diff,vector/combine of 4",
			"--each", b.shapes().turn, "--json"}
		if !b.Tiny {
			args[len(args)-2] = "300ms"
		}
		if err := b.report(ctx, "kernels", &r, args...); err != nil {
			return err
		}
		var words []string
		for _, row := range r.Rows {
			if len(row.Dims) == 0 || row.Dims[0] < 1e7 {
				continue
			}
			density, _, masked := strings.Cut(strings.TrimPrefix(row.Name, "add-diff to 2 at "), " %")
			if !strings.HasPrefix(row.Name, "add-diff to 2 at ") || !masked {
				b.out.set(row.Name, row.Share)
				continue
			}
			b.out.set("share at "+density+" %", row.Share)
			words = append(words, fmt.Sprintf("%s %%: %.0f %% of a copy", density, 100*row.Share))
			if _, ok := b.out.Values["share"]; density != "0.1" && (!ok || row.Share < b.out.Values["share"]) {
				b.out.set("share", row.Share)
			}
		}
		if len(words) == 0 {
			return fmt.Errorf("bench kernels has no row of a masked update: it has %d", len(r.Rows))
		}
		b.out.Summary = strings.Join(words, ", ")
		return nil
	}}
}
