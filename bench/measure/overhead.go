package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fspda/train"
)

// OverheadOptions configures [Overhead].
type OverheadOptions struct {
	What     string       // name of the gradient
	Bytes    int          // bytes of an exchange, each way
	Gradient func() error // computes one gradient
	Exchange func() error // makes one exchange
	Each     time.Duration
}

// OverheadReport is the slowdown of a gradient by concurrent exchanges.
type OverheadReport struct {
	What             string  `json:"what"`
	Bytes            int     `json:"bytes"`
	Baseline         float64 `json:"alone_ms"`  // median of a gradient
	One              float64 `json:"one_ms"`    // time with one exchange that starts with the gradient
	Continuous       float64 `json:"always_ms"` // time with continuous exchanges
	OneSlower        float64 `json:"one_slower"`
	ContinuousSlower float64 `json:"always_slower"`
	// noise of a gradient without exchanges: half the interquartile range over the median
	Noise     float64 `json:"noise"`
	Gradients int     `json:"gradients"` // gradients in each kind of measurement
	Exchange  float64 `json:"exchange_ms"`
	Exchanges float64 `json:"exchanges_per_gradient"` // continuous exchanges
}

// Overhead times gradients without exchanges, with one, and with continuous ones, in turns,
// so that other load on the machine affects all three alike.
func Overhead(ctx context.Context, o OverheadOptions) (r OverheadReport, err error) {
	r = OverheadReport{What: o.What, Bytes: o.Bytes}
	if o.Each <= 0 {
		return r, &train.ConfigError{Key: "time", Got: o.Each.String(), Want: "expected a time above 0, such as 10s"}
	}
	if err := o.gradient(new([]float64)); err != nil { // the first run allocates memory
		return r, err
	}
	var alone, one, always, exchanges []float64
	swaps := 0
	for begin := time.Now(); len(always) < 3 || time.Since(begin) < o.Each; {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if err := o.gradient(&alone); err != nil {
			return r, err
		}
		if _, err := o.with(&one, &exchanges, 1); err != nil {
			return r, err
		}
		n, err := o.with(&always, &exchanges, 0)
		if err != nil {
			return r, err
		}
		swaps += n
	}
	r.Baseline, r.One, r.Continuous, r.Exchange, r.Gradients = median(alone), median(one), median(always), median(
		exchanges), len(alone)
	r.OneSlower, r.ContinuousSlower = r.One/r.Baseline-1, r.Continuous/r.Baseline-1
	r.Noise = (quantile(alone, 0.75) - quantile(alone, 0.25)) / 2 / r.Baseline
	r.Exchanges = float64(swaps) / float64(len(always))
	return r, nil
}

// gradient computes one gradient and appends its time in ms.
func (o OverheadOptions) gradient(times *[]float64) error {
	at := time.Now()
	if err := o.Gradient(); err != nil {
		return err
	}
	*times = append(*times, 1e3*time.Since(at).Seconds())
	return nil
}

// with computes a gradient concurrently with up to limit exchanges, 0 being as many as fit, and
// returns their number. All have ended when it returns.
func (o OverheadOptions) with(times, exchanges *[]float64, limit int) (n int, err error) {
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for limit == 0 || n < limit {
			at := time.Now()
			if err := o.Exchange(); err != nil {
				done <- err
				return
			}
			*exchanges = append(*exchanges, 1e3*time.Since(at).Seconds())
			n++
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
		}
		done <- nil
	}()
	err = o.gradient(times)
	close(stop)
	if swapped := <-done; err == nil {
		err = swapped
	}
	return n, err
}

// quantile returns the part-quantile of v.
func quantile(v []float64, part float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[int(part*float64(len(s)-1))]
}

func (r OverheadReport) String() string {
	return fmt.Sprintf(`%s on one core, beside exchanges of %d bytes each way; %d gradients of each kind
  alone                        %9.1f ms    noise %.1f %%
  one exchange with each       %9.1f ms    %+.1f %%    %.1f ms an exchange
  exchanges without a pause    %9.1f ms    %+.1f %%    %.1f of them in the time of a gradient
`, r.What, r.Bytes, r.Gradients, r.Baseline, 100*r.Noise, r.One, 100*r.OneSlower, r.Exchange,
		r.Continuous, 100*r.ContinuousSlower, r.Exchanges)
}
