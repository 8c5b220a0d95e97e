package benchcmd

import (
	"time"

	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/data"
	"fspda/train"
)

func newBenchLoad() *cobra.Command {
	c := train.Default()
	c.Data, c.DataTrain, c.DataTest, c.Crop = "synthetic-images", 400, 10, 224
	o := bench.LoadOptions{}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Pictures a second and core that the loader feeds, from files and from a packed set",
		Example: `  fspda bench load --data folder --data-dir DIR
  fspda bench load --jobs 1`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Crop = c.Crop
			o.Open = func(jpeg data.Decoder, workers int) (*data.Set, error) {
				c := c
				c.JPEG, c.Threads = string(jpeg), workers
				return setup.OpenData(c)
			}
			switch {
			case o.Jobs < 1:
				return &train.ConfigError{Key: "jobs", Want: "expected a number of cores above 0"}
			case o.Each <= 0:
				return &train.ConfigError{Key: "time", Got: o.Each.String(),
					Want: "expected a time above 0, such as 5s"}
			case o.Batch < 1:
				return &train.ConfigError{Key: "batch", Want: "expected a number of pictures above 0"}
			}
			r, err := bench.Load(cmd.Context(), o)
			if err != nil {
				return err
			}
			return command.PrintReport(cmd.OutOrStdout(), asJSON, r)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&c.Data, "data", c.Data, "set of pictures: synthetic-images, imagenet or folder")
	fs.StringVar(&c.DataDir, "data-dir", "", "folder, archive, shards or packed set of the pictures")
	fs.IntVar(&c.DataTrain, "data-train", c.DataTrain, "synthetic-images: how many")
	fs.IntVar(&c.Crop, "crop", c.Crop, "side of what a network sees, in pixels")
	fs.IntVar(&o.Jobs, "jobs", 1, "cores to use")
	fs.IntVar(&o.Batch, "batch", 32, "pictures of a batch")
	fs.DurationVar(&o.Each, "time", 5*time.Second, "how long to measure each thing")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
