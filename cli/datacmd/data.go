package datacmd

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/cli/command"
	"fspda/data/images"
	_ "fspda/data/images/parquet" // registers tables
)

func newData() *cobra.Command {
	return command.Group("data", "Fetch, inspect, prepare and verify data sets", newDataInfo(), newDataPrepare(),
		newDataCheck(), newDataMNIST(), newDataCIFAR10(), newDataCIFAR100(), newDataFashionMNIST(), newDataImageNet(),
		newDataFineWebEdu(), newDataHuggingFace())
}

// sourceFlags are the flags of commands that open any source of images.
func sourceFlags(fs *pflag.FlagSet, o *images.Options) {
	fs.StringVar(&o.Labels, "labels", "",
		"ImageNet's tars: the file with the classes of the validation pictures, if it is not in the same folder")
	fs.StringVar(&o.ImageColumn, "image-column", "",
		"tables: the column of the images; empty finds usual names such as image")
	fs.StringVar(&o.LabelColumn, "label-column", "",
		"tables: the column of the labels; empty finds usual names such as label")
}

// onePath accepts one argument, the path of a data set.
func onePath(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return command.UsageErrorf("no path given: name a folder, an archive or shards of pictures, or a text")
	case 1:
		return nil
	}
	return command.UsageErrorf(
		"unexpected argument %q: one path is enough; put a pattern such as 'shard-{000..147}.tar' in quotes", args[1])
}
