package benchcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fspda/bench/measure"
	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/cpu"
	"fspda/device"
	"fspda/train"
)

func newBenchKernels() *cobra.Command {
	dev := cpu.New()
	o := measure.KernelsOptions{
		Device: dev, Kernels: device.Kernels(), Call: cpu.Call, Peak: cpu.Peak,
		Gemm: cpu.Gemm, Bandwidth: cpu.Traffic,
		Floats: func(n int) []float32 { return dev.NewVector(n).(*cpu.Vector).Data },
	}
	c := train.Default()
	c.Device = "cpu"
	cmd := &cobra.Command{
		Use:   "kernels",
		Short: "Speed of each kernel on one core or a GPU, against multiply-adds or a copy in the same run",
		Long: `Speed of each kernel against multiply-adds or a copy in the same run: on one core, or on a GPU by its own
clock, where a large product is the measure of multiply-adds.`,
		Example: "  fspda bench kernels --filter conv\n  fspda bench kernels --device cuda --batch 128 --filter " +
			"conv,norm,vector",
	}
	cmd.Flags().StringVar(&c.Device, "device", c.Device, "cpu, cuda, cuda:N or auto, as in train")
	cmd.Flags().StringVar(&c.Precision, "precision", c.Precision, "as in train")
	cmd.Flags().StringVar(&o.Filter, "filter", "",
		"only what has this, or one of several by commas, in group/name; groups: "+strings.Join(measure.Groups(), ", "))
	cmd.Flags().DurationVar(&o.Each, "each", 300*time.Millisecond, "how long to measure each kernel and shape")
	cmd.Flags().IntVar(&o.Batch, "batch", 8, "images of the layers of ResNet-50")
	return command.Report(cmd, func(ctx context.Context) (fmt.Stringer, error) {
		if err := c.Check(); err != nil {
			return nil, err
		}
		e, err := setup.OpenDevice(c, 1)
		if err != nil {
			return nil, err
		}
		defer e.Close()
		if card := cardOf(e.Device, c.Precision); card != nil {
			o.Card, o.Device, o.Peak, o.Bandwidth = card, e.Device, card.Peak(largeSide), nil
			o.Floats = func(n int) []float32 { return make([]float32, n) }
		}
		return measure.Kernels(ctx, o)
	})
}

// largeSide is the side of the matrices whose product measures a GPU's peak of multiply-adds.
const largeSide = 4096
