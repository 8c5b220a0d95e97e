package measure

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Wire is a way for two endpoints on this machine to exchange bytes.
type Wire struct {
	Name    string
	MaxSize int // limit of a message in bytes; 0 is none
	// Open prepares exchanges of size bytes each way. Each call of swap makes one: both ends send
	// and receive. swap is called by one goroutine.
	Open func(ctx context.Context, size int) (swap func() error, end func(), err error)
}

// ExchangeOptions configures [Exchange].
type ExchangeOptions struct {
	Wires []Wire // all are compared with the first
	Sizes []int  // bytes in each direction
	Each  time.Duration
	// Progress is called after each size with its rows, if it is not nil.
	Progress func(rows []ExchangeRow)
}

// ExchangeReport is the speed of exchanges on this machine.
type ExchangeReport struct {
	Rows []ExchangeRow `json:"rows"`
}

// ExchangeRow is the result of one size over one wire.
type ExchangeRow struct {
	Bytes  int     `json:"bytes"` // bytes in each direction
	Wire   string  `json:"wire"`
	Median float64 `json:"median_us"` // median of an exchange over all rounds
	Low    float64 `json:"low_us"`    // medians of the fastest and the slowest round
	High   float64 `json:"high_us"`
	Rate   float64 `json:"mb_per_s"` // both ways together, by the median
	Count  int     `json:"exchanges"`
}

const rounds = 5

// Exchange measures each size over all wires in turns, so that other load on the machine affects
// all alike.
func Exchange(ctx context.Context, o ExchangeOptions) (r ExchangeReport, err error) {
	for _, size := range o.Sizes {
		rows, err := o.size(ctx, size)
		if err != nil {
			return r, err
		}
		r.Rows = append(r.Rows, rows...)
		if o.Progress != nil {
			o.Progress(rows)
		}
	}
	return r, nil
}

// wireRun is an open wire with its measurements.
type wireRun struct {
	name    string
	swap    func() error
	end     func()
	times   []float64 // µs
	medians []float64 // medians of the rounds
}

// size measures one size over all wires that support it.
func (o ExchangeOptions) size(ctx context.Context, size int) (rows []ExchangeRow, err error) {
	var all []*wireRun
	defer func() {
		for _, w := range all {
			w.end()
		}
	}()
	for _, w := range o.Wires {
		if w.MaxSize > 0 && size > w.MaxSize {
			continue
		}
		swap, end, err := w.Open(ctx, size)
		if err != nil {
			return nil, fmt.Errorf("measure: measure %s: %w", w.Name, err)
		}
		all = append(all, &wireRun{name: w.Name, swap: swap, end: end})
	}
	for range rounds {
		for _, w := range all {
			if err := w.round(ctx, o.Each/rounds); err != nil {
				return nil, fmt.Errorf("measure: measure %s: %w", w.name, err)
			}
		}
	}
	for _, w := range all {
		rows = append(rows, w.row(size))
	}
	return rows, nil
}

// round exchanges for a duration. The first exchanges are not counted.
func (w *wireRun) round(ctx context.Context, d time.Duration) error {
	const warm = 2
	var times []float64
	for begin, k := time.Now(), 0; k < warm+1 || time.Since(begin) < d; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := time.Now()
		if err := w.swap(); err != nil {
			return err
		}
		if k >= warm {
			times = append(times, float64(time.Since(at).Nanoseconds())/1e3)
		}
	}
	w.times = append(w.times, times...)
	w.medians = append(w.medians, median(times))
	return nil
}

func (w *wireRun) row(size int) ExchangeRow {
	m := median(w.times)
	return ExchangeRow{Bytes: size, Wire: w.name, Median: m, Low: slices.Min(w.medians), High: slices.Max(w.medians),
		Rate: 2 * float64(size) / m, Count: len(w.times)}
}

// String returns the report as text, each wire relative to the first.
func (r ExchangeReport) String() string {
	text := fmt.Sprintf("exchanges between two endpoints on this machine, each of which sends and receives so many "+
		"bytes\n\n%10s  %-34s %10s  %-19s %9s  %s\n", "bytes", "over", "µs", "rounds", "MB/s", "time / first")
	var first ExchangeRow
	for _, row := range r.Rows {
		if row.Bytes != first.Bytes {
			first = row
		}
		text += fmt.Sprintf("%10d  %-34s %10.0f  %8.0f to %-8.0f %8.0f  %.2f (%+.0f µs)\n", row.Bytes, row.Wire,
			row.Median, row.Low, row.High, row.Rate, row.Median/first.Median, row.Median-first.Median)
	}
	return text
}

// median returns the upper median.
func median(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }
