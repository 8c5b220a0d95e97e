package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/cpu"
	"fspda/device"
)

func newBenchKernels() *cobra.Command {
	dev := cpu.New()
	o := bench.KernelsOptions{
		Device: dev, Kernels: device.Kernels(), Call: cpu.Call, Peak: cpu.Peak,
		Gemm: cpu.Gemm, Traffic: cpu.Traffic,
		Floats: func(n int) []float32 { return dev.NewVector(n).(*cpu.Vector).Data },
	}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "kernels",
		Short: "Speed of each kernel on one core, against multiply-adds or a copy in the same run",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := bench.Kernels(cmd.Context(), o)
			if errors.Is(err, context.Canceled) {
				return errStopped
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), r)
			}
			_, err = r.WriteTo(cmd.OutOrStdout())
			return err
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&o.Filter, "filter", "", "only what has this, or one of several by commas, in group/name; groups: "+strings.Join(bench.Groups(), ", "))
	cmd.Flags().DurationVar(&o.Each, "each", 300*time.Millisecond, "how long to measure each kernel and shape")
	cmd.Flags().IntVar(&o.Batch, "batch", 8, "images of the layers of ResNet-50")
	return cmd
}
