package selftest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"fspda/cpu"
)

// trainings plays twice, which must repeat, and once on the CPU, which must come out alike.
func (t Target) trainings() []Check {
	return []Check{{"training", func(ctx context.Context) (string, error) {
		if t.Train == nil {
			return "", &ErrLeftOut{"there is nothing to train"}
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
			return "", errors.New("the same training came out otherwise the second time")
		}
		_, want, err := t.Train(ctx, cpu.New())
		if err != nil {
			return "", fmt.Errorf("on the CPU: %w", err)
		}
		far, bound := math.Abs(loss-want)/math.Abs(want), BoundsOf(t.Precision).Training
		if !(far <= bound) {
			return "", fmt.Errorf("the loss at the end is %v, on the CPU %v: want them within %.2g", loss, want, bound)
		}
		return fmt.Sprintf("repeats, loss within %.1e of %.0e", far, bound), nil
	}}}
}
