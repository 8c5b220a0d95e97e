package measure

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fspda/device"
)

// KernelsReport holds the rates of kernels, on one core or a Card. Rows were measured at different
// moments: compare shares of limits, not rates.
type KernelsReport struct {
	Card       string          `json:"card,omitempty"` // empty: one core
	Batch      int             `json:"batch"`          // images of the layers of ResNet-50
	PeakGFLOPs float64         `json:"peak_gflops"`    // the fastest multiply-adds seen
	Rows       []KernelRow     `json:"rows"`
	Groups     []GroupRow      `json:"groups"`
	ResNet50   *NetworkRow     `json:"resnet50,omitempty"`
	Skipped    []device.Kernel `json:"skipped,omitempty"` // kernels that the device lacks
}

// KernelRow is the result of one kernel at one shape.
type KernelRow struct {
	Group    string  `json:"group"`
	Name     string  `json:"name"`
	Dims     []int   `json:"dims,omitempty"`
	Count    int     `json:"count,omitempty"` // occurrences in a step of ResNet-50
	Backward bool    `json:"backward,omitempty"`
	FLOPs    float64 `json:"flops,omitempty"`
	Bytes    float64 `json:"bytes,omitempty"`
	Items    float64 `json:"items,omitempty"`
	MeasuredRate
	// GB/s of reading and writing the same vectors without arithmetic
	Bandwidth      float64 `json:"mix,omitempty"`
	BandwidthShare float64 `json:"mix_share,omitempty"`
	Route          string  `json:"route,omitempty"` // the implementation, if the device has several
}

// GroupRow is the total work of a group over its total time. Rows of ResNet-50 count as often as
// they occur in the network.
type GroupRow struct {
	Group string `json:"group"`
	MeasuredRate
}

// MeasuredRate is a measured rate and its limit.
type MeasuredRate struct {
	Time  time.Duration `json:"time_ns"` // time of the fastest run
	Rate  float64       `json:"rate"`
	Unit  string        `json:"unit"`            // unit of rate and limit: GFLOP/s; GB/s; ns for each item
	Limit float64       `json:"limit,omitempty"` // rate of multiply-adds, or of a copy of as many bytes
	Share float64       `json:"share,omitempty"` // rate over limit
}

// NetworkRow is the sum over all convolutions and batch norms of ResNet-50, including fused
// activations and additions.
type NetworkRow struct {
	Batch    int           `json:"batch"`
	Forward  time.Duration `json:"forward_ns"`
	Backward time.Duration `json:"backward_ns"`
	Images   float64       `json:"images_s"` // forward and backward
	Rate     float64       `json:"gflop_s"`  // the convolutions' operations over all the time
	Share    float64       `json:"share"`    // share of the rate of multiply-adds
}

// finish computes rate and share.
func (r *KernelRow) finish(took time.Duration, limit float64) {
	r.Time = took
	switch ns := float64(took.Nanoseconds()); {
	case r.Items > 0:
		r.Unit, r.Rate = "ns", ns/r.Items
	case r.FLOPs > 0:
		r.Unit, r.Rate = "GFLOP/s", r.FLOPs/ns
	default:
		r.Unit, r.Rate = "GB/s", r.Bytes/ns
	}
	if limit > 0 {
		r.Limit, r.Share = limit, r.Rate/limit
	}
}

// work returns the quantity that the rate counts.
func (r *KernelRow) work() float64 {
	switch {
	case r.Items > 0:
		return r.Items
	case r.FLOPs > 0:
		return r.FLOPs
	}
	return r.Bytes
}

func (r *KernelsReport) skip(missing []device.Kernel) {
	for _, k := range missing {
		if !slices.Contains(r.Skipped, k) {
			r.Skipped = append(r.Skipped, k)
		}
	}
}

// sum computes the groups, and the network if all of its jobs were selected and none was skipped.
func (r *KernelsReport) sum(wanted []job) {
	for _, group := range Groups() {
		for _, unit := range []string{"GFLOP/s", "GB/s", "ns"} {
			r.sumGroup(group, unit)
		}
	}
	n, have := 0, 0
	for _, j := range wanted {
		n += j.ofNetwork()
	}
	for _, row := range r.Rows {
		have += row.ofNetwork()
	}
	if full := networkJobs(r.Batch); have == full && n == full {
		r.sumNetwork()
	}
}

func (r *KernelsReport) sumGroup(group, unit string) {
	work, ns, least := 0.0, 0.0, 0.0
	for _, row := range r.Rows {
		if row.Group != group || row.Unit != unit {
			continue
		}
		times := float64(max(1, row.Count))
		work += times * row.work()
		ns += times * float64(row.Time)
		if row.Limit > 0 {
			least += times * row.work() / row.Limit
		}
	}
	if work == 0 {
		return
	}
	g := GroupRow{group, MeasuredRate{Time: time.Duration(ns), Unit: unit, Rate: work / ns}}
	if unit == "ns" {
		g.Rate = ns / work
	}
	if least > 0 {
		g.Limit, g.Share = work/least, least/ns
	}
	r.Groups = append(r.Groups, g)
}

// ofNetwork returns 1 for a row that is part of the sum over ResNet-50, else 0.
func (r *KernelRow) ofNetwork() int {
	if r.Count > 0 && (r.Group == "conv" || r.Group == "norm") {
		return 1
	}
	return 0
}

func networkJobs(batch int) (n int) {
	for _, j := range slices.Concat(convJobs(batch), normJobs(batch)) {
		n += j.ofNetwork()
	}
	return n
}

func (r *KernelsReport) sumNetwork() {
	s := &NetworkRow{Batch: r.Batch}
	flops, least := 0.0, 0.0
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.ofNetwork() == 0 {
			continue
		}
		took := row.Time * time.Duration(row.Count)
		if row.Backward {
			s.Backward += took
		} else {
			s.Forward += took
		}
		if row.FLOPs > 0 {
			flops += float64(row.Count) * row.FLOPs
			least += float64(row.Count) * row.FLOPs / row.Limit
		}
	}
	ns := float64((s.Forward + s.Backward).Nanoseconds())
	s.Images, s.Rate, s.Share = 1e9*float64(r.Batch)/ns, flops/ns, least/ns
	r.ResNet50 = s
}

func (r KernelsReport) String() string {
	var b strings.Builder
	if r.PeakGFLOPs > 0 && r.Card != "" {
		fmt.Fprintf(&b, "%s: %.1f TFLOP/s of a large product at best\n", r.Card, r.PeakGFLOPs/1e3)
	} else if r.PeakGFLOPs > 0 {
		fmt.Fprintf(&b, "one core: %.1f GFLOP/s of multiply-adds at best\n", r.PeakGFLOPs)
	}
	b.WriteString("limit: for GFLOP/s multiply-adds, for GB/s a copy, measured in turns with the row; bw: reading " +
		"and writing the same vectors without arithmetic\n")
	width := 0
	for _, row := range r.Rows {
		width = max(width, len([]rune(row.Name)))
	}
	for _, group := range Groups() {
		r.writeGroup(&b, group, width)
	}
	if n := r.ResNet50; n != nil {
		fmt.Fprintf(&b, "\nResNet-50 conv+BN, batch %d: forward %.1f ms, backward %.1f ms, %.2f images/s, %.1f "+
			"GFLOP/s, %.1f %% of the multiply-adds\n",
			n.Batch, ms(n.Forward), ms(n.Backward), n.Images, n.Rate, 100*n.Share)
	}
	if len(r.Skipped) > 0 {
		fmt.Fprintf(&b, "\nskipped, since the device has no such kernel: %v\n", r.Skipped)
	}
	return b.String()
}

func (r *KernelsReport) writeGroup(b *strings.Builder, group string, width int) {
	head := true
	line := func(name, times string, m MeasuredRate, mix float64, route string) {
		if head {
			fmt.Fprintf(b, "\n%-*s times          time       rate      limit   share   of bw\n", width+2, group)
			head = false
		}
		limit, share := "", ""
		if m.Limit > 0 {
			limit = fmt.Sprintf("%10.2f %5.1f %%", m.Limit, 100*m.Share)
		}
		if mix > 0 {
			share = fmt.Sprintf("%5.1f %%", 100*mix)
		}
		fmt.Fprintf(b, "  %-*s %5s %10.1f µs %10.2f %18s %7s  %s\n", width, name, times, us(m.Time), m.Rate, limit,
			share, strings.TrimSpace(m.Unit+"  "+route))
	}
	for _, row := range r.Rows {
		if row.Group == group {
			times := ""
			if row.Count > 0 {
				times = fmt.Sprint(row.Count)
			}
			line(row.Name, times, row.MeasuredRate, row.BandwidthShare, row.Route)
		}
	}
	for _, g := range r.Groups {
		if g.Group == group {
			line("all, by work", "", g.MeasuredRate, 0, "")
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
