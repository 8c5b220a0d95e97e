package acceptance

import (
	"context"
	"fmt"
	"time"
)

// selftest is fspda selftest in a precision.
func (o *Options) selftest(precision string) Part {
	return Part{"selftest/" + precision, o.limit(2 * time.Minute), func(ctx context.Context, b *kit) error {
		var r struct {
			Results []struct{ Name, Verdict, Saw string }
			Failed  int
		}
		args := []string{"selftest", "--device", b.Device, "--precision", precision, "--json"}
		if only := b.shapes().checks; only != "" {
			args = append(args, "--only", only)
		}
		err := b.report(ctx, "selftest", &r, args...)
		if len(r.Results) == 0 {
			return err
		}
		out := 0
		for _, c := range r.Results {
			switch c.Verdict {
			case "FAILED":
				b.out.note(c.Name + ": " + c.Saw)
			case "left out":
				out++
			}
		}
		b.out.set("checks", float64(len(r.Results)))
		b.out.set("failed", float64(r.Failed))
		b.out.Saw = fmt.Sprintf("%d of %d checks failed, %d do not apply", r.Failed, len(r.Results), out)
		if r.Failed > 0 { // that is what it found, and no failure to find it
			return nil
		}
		return err
	}}
}
