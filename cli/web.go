package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newWeb() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "web [RUNS]",
		Short: "Show runs in a browser: those that are done, and those of other processes as they grow",
		Long: `Serve a page that shows the runs in a folder: their curves against iterations, time or bits, several in the same pictures, the data of
the agents and their graph, the bits, the configuration. Runs that are going on are followed. RUNS is the folder of a run or one that
holds runs; the default is runs. Nothing outside it is served, and nothing can be changed.

The page is in the program and loads nothing from elsewhere. Without a host in --listen only programs of this machine can connect.
A run of this very program is shown with its agents and exchanges by fspda train --web.`,
		Example: `  fspda web
  fspda web runs/figure-1-released --listen :9000
  fspda web runs --listen 0.0.0.0:8080`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{fmt.Sprintf("expected one folder, found %d arguments", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := runsFolder
			if len(args) > 0 {
				dir = args[0]
			}
			return serveWeb(cmd.Context(), dir, listen, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", ":8080",
		"HOST:PORT to serve at; without a host this machine alone, port 0 is a free one")
	return cmd
}
