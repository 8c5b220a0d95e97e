package datacmd

import (
	"github.com/spf13/cobra"

	_ "fspda/data/images/parquet" // registers the format parquet

	"fspda/cli/command"
)

func newData() *cobra.Command {
	return command.Group("data", "Fetch, inspect, prepare and verify data sets", newDataInfo(), newDataPrepare(),
		newDataCheck(), newDataMNIST(), newDataCIFAR10(), newDataImageNet())
}

// onePath accepts one argument, the path of a data set.
func onePath(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return command.UsageErrorf("no path given: name a folder, an archive or shards with pictures")
	case 1:
		return nil
	}
	return command.UsageErrorf(
		"unexpected argument %q: one path is enough; put a pattern such as 'shard-{000..147}.tar' in quotes", args[1])
}
