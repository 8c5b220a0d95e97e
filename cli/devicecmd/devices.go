package devicecmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/cuda"
)

func newDevices() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the devices of this machine: GPUs, the libraries that they need, and the engine that will be used",
		Long: `List the devices of this machine: each GPU, its memory, the driver, which of NVIDIA's libraries were found where, what
is missing and how to get it, and what --device auto takes.

The libraries are searched in the folders that FSPDA_CUDA_PATH names, next to the program, among the packages of
Python (those that PyTorch brings), in CUDA toolkits, and where the system's loader looks. No toolkit is needed to
build the program.`,
	}
	return command.Report(cmd, func(context.Context) (fmt.Stringer, error) { return cuda.Find(), nil })
}
