package acceptance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// repeat runs trainings twice and requires bit-identical models.
func (o *Options) repeat() Part {
	return Part{Name: "training/repeat", Limit: o.limit(2 * time.Minute), Run: func(ctx context.Context, b *job) error {
		s := b.shapes()
		images := []string{"--model", "resnet18", "--data", "synthetic-images", "--crop", "64", "--agents", "2",
			"--batch", "32", "--data-train", "200", "--data-test", "20",
			"--partition", "shuffled", "--alpha", "0.01", "--iterations", strconv.Itoa(s.repeat)}
		runs := map[string][]string{"mlp-fp32": s.figure1("--iterations", strconv.Itoa(s.curve), "--precision",
			"fp32", "--metrics", "test")}
		for _, precision := range all {
			if b.Device == "cpu" && precision != "fp32" {
				continue
			}
			runs["resnet18-"+precision] = with(images, "--precision", precision)
		}
		if b.Tiny {
			runs["resnet18-fp32"] = with(runs["resnet18-fp32"], "--crop", "32", "--batch", "4", "--data-train", "40")
		}
		same := 0
		names := slices.Sorted(maps.Keys(runs))
		for _, name := range names {
			ok, err := b.runTwice(ctx, name, with(runs[name], "--device", b.Device, "--deterministic", "--eval-points",
				"1"))
			if err != nil {
				return err
			}
			if ok {
				same++
			} else {
				b.out.note(name + ": the second run left other models than the first")
			}
		}
		b.out.set("runs", float64(len(names)))
		b.out.set("same", float64(same))
		b.out.Summary = fmt.Sprintf("%d of %d trainings repeat to the last bit (%s)", same, len(names),
			strings.Join(names, ", "))
		return nil
	}}
}

// runTwice runs a training two times and compares the models.
func (b *job) runTwice(ctx context.Context, name string, args []string) (same bool, err error) {
	var sums [2]string
	for i := range sums {
		out, err := b.folder(fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			return false, err
		}
		if _, err := b.train(ctx, name, out, args); err != nil {
			return false, err
		}
		if sums[i], err = modelsOf(out); err != nil {
			return false, err
		}
		if err := os.RemoveAll(out); err != nil {
			return false, err
		}
	}
	return sums[0] == sums[1], nil
}

// modelsOf returns the checksum of all vectors of the agents in the last checkpoint of a run.
func modelsOf(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "checkpoints", "iter-*", "*.safetensors"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s has no checkpoint", folder)
	}
	slices.Sort(files)
	h := sha256.New()
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		h.Write(text)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
