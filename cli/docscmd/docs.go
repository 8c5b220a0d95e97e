package docscmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"fspda/cli/command"
	"fspda/docs"
	"fspda/train/config"
	"fspda/web"
)

func newDocs() *cobra.Command {
	var listen string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "docs [PAGE]",
		Short: "Read the manual, which is in the program",
		Long: `Read the manual, which is in the program and needs no network: without an argument the list of its pages, with one
that page as text, with --listen all of it in a browser.`,
		Example: "  fspda docs\n  fspda docs training\n  fspda docs --listen :8081",
		Args:    command.Arguments(0, 1, "one page"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, begun string) (found []string, _ cobra.ShellCompDirective) {
			for _, p := range docs.Pages() {
				if len(args) == 0 && strings.HasPrefix(p.Name, begun) {
					found = append(found, p.Name+"\t"+p.Title)
				}
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case asJSON && (listen != "" || len(args) > 0):
				return command.UsageErrorf("--json prints the list of pages only: leave it out, or leave out what " +
					"else is given")
			case listen != "" && len(args) > 0:
				return command.UsageErrorf("--listen serves all pages: leave %s out", args[0])
			case listen != "":
				return serveDocs(cmd.Context(), listen, cmd.OutOrStdout())
			case len(args) == 0:
				return listPages(cmd.OutOrStdout(), asJSON)
			}
			return printPage(cmd.OutOrStdout(), args[0])
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "",
		"HOST:PORT to serve the manual at; without a host only this machine can connect; port 0 is any free port")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list of pages as JSON")
	return cmd
}

func listPages(w io.Writer, asJSON bool) error {
	if asJSON {
		list := []map[string]string{}
		for _, p := range docs.Pages() {
			list = append(list, map[string]string{"page": p.Name, "title": p.Title})
		}
		return command.PrintJSON(w, list)
	}
	for _, p := range docs.Pages() {
		if _, err := fmt.Fprintf(w, "%-18s %s\n", p.Name, p.Title); err != nil {
			return err
		}
	}
	return nil
}

func printPage(w io.Writer, name string) error {
	var names []string
	for _, p := range docs.Pages() {
		if p.Name == strings.TrimSuffix(name, ".md") {
			_, err := fmt.Fprint(w, p.Text)
			return err
		}
		names = append(names, p.Name)
	}
	hint := ""
	if near := config.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? "
	}
	return command.UsageErrorf("no page %q: %sthe pages are %s", name, hint, strings.Join(names, ", "))
}

func serveDocs(ctx context.Context, address string, w io.Writer) error {
	l, _, err := web.Listen(address)
	if err != nil {
		return command.UsageErrorf("--listen: %v", err)
	}
	if _, err := fmt.Fprintf(w, "%s is the manual; Ctrl-C ends it\n", web.URL(l)); err != nil {
		return err
	}
	return web.Serve(ctx, l, docs.Handler())
}

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a manual page for each command into a folder",
		Example: "  fspda man ~/.local/share/man/man1",
		Args:    command.Arguments(1, 1, "the folder of the manual pages"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.MakeFolder(args[0]); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return command.CannotWrite(args[0], "make room, or name another folder", doc.GenManTree(root,
				&doc.GenManHeader{Title: "FSPDA", Section: "1", Source: "fspda", Manual: "fspda"}, args[0]))
		},
	}
}
