package selftest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"fspda/cpu"
)

// trainings runs a training twice, which must be reproducible, and once on the CPU, which must give
// a similar loss.
func (t Target) trainings() []Check {
	return []Check{{"training", func(ctx context.Context) (string, error) {
		if t.Train == nil {
			return "", SkipError("no training is configured")
		}
		first, loss, err := t.Train(ctx, t.Device)
		if err != nil {
			return "", err
		}
		second, _, err := t.Train(ctx, t.Device)
		if err != nil {
			return "", err
		}
		if !slices.Equal(first, second) {
			return "", errors.New("the second run of the same training differs from the first")
		}
		_, want, err := t.Train(ctx, cpu.New())
		if err != nil {
			return "", fmt.Errorf("on the CPU: %w", err)
		}
		far, bound := math.Abs(loss-want)/math.Abs(want), BoundsOf(t.Precision).Training
		if !(far <= bound) {
			return "", fmt.Errorf("the final loss is %v, on the CPU %v: at most %.2g relative difference is allowed",
				loss, want, bound)
		}
		return fmt.Sprintf("repeats, loss within %.1e of %.0e", far, bound), nil
	}}}
}
