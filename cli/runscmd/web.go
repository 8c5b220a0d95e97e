package runscmd

import (
	"context"
	"fmt"
	"io"
	"os"

	"fspda/cli/command"
	"fspda/train"
	"fspda/web"

	"github.com/spf13/cobra"
)

func newWeb() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "web [RUNS]",
		Short: "Show runs in a browser: those that are done, and those of other processes as they grow",
		Long: `Serve a page that shows the runs in a folder: their curves against iterations, time or bits, several in the same
plots, the data of the agents and their graph, the bits, the configuration. Runs that are going on are followed.
RUNS is the folder of a run or one that holds runs; the default is runs, which is made if it is not there yet. Nothing
outside it is served, but for runs to which symbolic links in it lead, and nothing can be changed.

The page is in the program and loads nothing from elsewhere. Without a host in --listen only programs of this machine
can connect. A run of this very program is shown with its agents and exchanges by fspda train --web.`,
		Example: `  fspda web
  fspda web runs/figure-1-released --listen :9000
  fspda web runs --listen 0.0.0.0:8080`,
		Args: command.Arguments(0, 1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := command.RunsDir
			if len(args) > 0 {
				dir = args[0]
			} else if err := command.MakeFolder(dir); err != nil {
				return err
			}
			return serveWeb(cmd.Context(), dir, listen, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", ":8080",
		"HOST:PORT to serve at; without a host only this machine can connect; port 0 is any free port")
	return cmd
}

// serveWeb serves the runs in a folder until ctx ends.
func serveWeb(ctx context.Context, dir, address string, stdout io.Writer) error {
	info, err := os.Stat(dir)
	if err != nil {
		return &train.FolderError{Path: dir, Got: "cannot be opened", Err: err,
			Hint: "name the folder of a run, or one that holds runs"}
	}
	if !info.IsDir() {
		return &train.FolderError{Path: dir, Got: "is not a folder",
			Hint: "name the folder of a run, or one that holds runs"}
	}
	l, loopback, err := web.Listen(address)
	if err != nil {
		return command.UsageErrorf("--listen: %v", err)
	}
	s, err := web.NewServer(web.Options{Dir: dir, Loopback: loopback, Share: doneShare})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := fmt.Fprintf(stdout, "%s shows the runs in %s; Ctrl-C ends it\n", web.URL(l), dir); err != nil {
		return err
	}
	return web.Serve(ctx, l, s)
}

// doneShare is the share of the machine's processors that readers of finished runs may use.
const doneShare = 0.2
