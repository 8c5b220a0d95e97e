package acceptance

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
)

// memory runs several agents of the large network on the device, and compares its memory with the
// forecast.
func (o *Options) memory() Part {
	return Part{Name: "memory/agents", Limit: o.limit(2 * time.Minute), Run: func(ctx context.Context, b *job) error {
		out, err := b.folder("memory")
		if err != nil {
			return err
		}
		s := b.shapes()
		args := []string{"--device", b.Device, "--model", s.trained, "--data", "synthetic-images", "--crop",
			strconv.Itoa(s.crop), "--agents", strconv.Itoa(s.crowd.agents), "--batch", strconv.Itoa(s.crowd.batch),
			"--data-train", strconv.Itoa(2 * s.crowd.agents * s.crowd.batch), "--data-test", "64",
			"--partition", "shuffled", "--alpha", "0.01", "--iterations", strconv.Itoa(s.crowd.iterations),
			"--eval-points", "1", "--eval-agents", "1"}
		if b.Device != "cpu" {
			args = append(args, "--precision", b.judged()[0])
		}
		if _, err := b.train(ctx, "run", out, args); err != nil {
			return err
		}
		var sum struct {
			Memory []struct {
				Name   string
				Agents int
				Need   float64 `json:"need_bytes"`
				Taken  float64 `json:"taken_bytes"`
			}
		}
		if err := decode(b.out.Reports["run"], &sum); err != nil {
			return err
		}
		if len(sum.Memory) == 0 {
			b.out.Summary = "the device has no memory of its own"
			return nil
		}
		m := sum.Memory[0]
		b.out.set("forecast", m.Need)
		b.out.set("taken", m.Taken)
		b.out.set("far", math.Abs(m.Taken/m.Need-1))
		b.out.Summary = fmt.Sprintf("%d agents of %s: forecast %.2f GB, taken %.2f GB", m.Agents, s.trained, m.Need/1e9,
			m.Taken/1e9)
		return nil
	}}
}
