package benchcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fspda/bench/measure"
	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/data"
	"fspda/train"
	"fspda/train/config"
)

func newBenchLoad() *cobra.Command {
	c := train.Default()
	c.Data, c.DataTrain, c.DataTest, c.Crop = "synthetic-images", 400, 10, 224
	o := measure.LoadOptions{}
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Images a second and core that the loader feeds, from files and from a packed set",
		Example: `  fspda bench load --data folder --data-dir DIR
  fspda bench load --jobs 1`,
	}
	fs := cmd.Flags()
	fs.StringVar(&c.Data, "data", c.Data, "set of images: synthetic-images, imagenet or folder")
	fs.StringVar(&c.DataDir, "data-dir", "", "folder, archive, shards or packed set of the images")
	fs.IntVar(&c.DataTrain, "data-train", c.DataTrain, "synthetic-images: how many")
	fs.IntVar(&c.Crop, "crop", c.Crop, "side of what a network sees, in pixels")
	fs.IntVar(&o.Jobs, "jobs", 1, "cores to use")
	fs.IntVar(&o.Batch, "batch", 32, "images of a batch")
	fs.DurationVar(&o.Each, "time", 5*time.Second, "how long to measure each thing")
	return command.Report(cmd, func(ctx context.Context) (fmt.Stringer, error) {
		o.Crop = c.Crop
		o.Open = func(jpeg data.Decoder, workers int) (*data.Set, error) {
			c := c
			c.JPEG, c.Threads = string(jpeg), workers
			return setup.OpenData(c)
		}
		switch {
		case o.Jobs < 1:
			return nil, config.Invalid("jobs", o.Jobs, "expected a number of cores above 0")
		case o.Each <= 0:
			return nil, config.Invalid("time", o.Each, "expected a time above 0, such as 5s")
		case o.Batch < 1:
			return nil, config.Invalid("batch", o.Batch, "expected a number of images above 0")
		}
		return measure.Load(ctx, o)
	})
}
