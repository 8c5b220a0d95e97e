package acceptance

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// idle is the share of an iteration of the large network in which the device waits, while the
// loader feeds it from a packed set of images, and from the files that these came from.
func (o *Options) idle() Part {
	return Part{Name: "loader/idle", Limit: o.limit(150 * time.Second), Run: func(ctx context.Context, b *job) error {
		files := b.Data
		if files == "" {
			files = filepath.Join(b.dir, "images")
			if err := makeImages(ctx, files, b.shapes()); err != nil {
				return err
			}
			made := b.shapes().images
			b.out.note(fmt.Sprintf("%d made pictures of %d×%d pixels", made.count, made.width, made.height))
		}
		packed := filepath.Join(b.dir, "packed")
		if _, err := b.program(ctx, "data", "prepare", files, "--out", packed); err != nil {
			b.out.note(fmt.Sprintf("not packed, as it may be already: %v", err))
			packed = files
		}
		if err := b.measureFed(ctx, "packed", packed); err != nil {
			return err
		}
		b.out.set("idle", b.out.Values["idle packed"])
		b.out.Summary = fmt.Sprintf("idle %.1f %% from a packed set, %.4g images/s", 100*b.out.Values["idle packed"],
			b.out.Values["images packed"])
		if files == packed {
			return nil
		}
		if err := b.measureFed(ctx, "files", files); err != nil {
			return err
		}
		b.out.Summary += fmt.Sprintf("; %.1f %% from JPEG files, %.4g images/s", 100*b.out.Values["idle files"],
			b.out.Values["images files"])
		return nil
	}}
}

// measureFed measures steps on a set of images.
func (b *job) measureFed(ctx context.Context, name, folder string) error {
	s := b.shapes()
	var r struct {
		Iteration float64 `json:"iteration_ns"`
		Agents    int     `json:"agents"`
		Batch     int     `json:"batch"`
		Idle      float64 `json:"idle"`
	}
	args := []string{"bench", "step", "--device", b.Device, "--data", "folder", "--data-dir", folder, "--model",
		s.trained, "--crop", strconv.Itoa(s.crop), "--agents", "2",
		"--partition", "shuffled", "--alpha", "0.0001", "--batch", strconv.Itoa(s.loaded), "--time", s.turn, "--json"}
	if b.Device != "cpu" {
		args = append(args, "--precision", b.judged()[0])
	}
	if err := b.report(ctx, name, &r, args...); err != nil {
		return err
	}
	b.out.set("idle "+name, r.Idle)
	b.out.set("images "+name, 1e9*float64(r.Agents*r.Batch)/r.Iteration)
	return nil
}
