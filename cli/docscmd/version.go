package docscmd

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"fspda/cli/command"
)

func newVersion() *cobra.Command {
	var sbom, licenses bool
	cmd := command.Report(&cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit, the Go release and the features of this program, or its parts",
		Long: `Print the version, the commit, the Go release and the features of this program. assembly: kernels in assembly;
gpu: it can use NVIDIA GPUs if the machine has them; static: it needs no other file.

With --sbom it prints the modules that it was built from, as CycloneDX 1.6 in JSON, and with --licenses their licences.`,
		Args: command.NoArgs,
	}, func(context.Context) (fmt.Stringer, error) { return command.ReadBuild(), nil })
	report := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if licenses {
			return printLicenses(cmd.OutOrStdout())
		}
		if sbom {
			return command.PrintJSON(cmd.OutOrStdout(), billOfMaterials())
		}
		return report(cmd, args)
	}
	cmd.Flags().BoolVar(&sbom, "sbom", false, "print a software bill of materials")
	cmd.Flags().BoolVar(&licenses, "licenses", false, "print the licences of the program and of all that is linked into it")
	return cmd
}

// licenseText is the output of deploy/licenses.sh, compressed.
//
//go:generate sh -c "../../deploy/licenses.sh | gzip -n9 >licenses.txt.gz"
//go:embed licenses.txt.gz
var licenseText []byte

// printLicenses prints the licences of the program and of all modules that are linked into it.
func printLicenses(w io.Writer) error {
	text, err := gzip.NewReader(bytes.NewReader(licenseText))
	if err == nil {
		_, err = io.Copy(w, text)
	}
	return err
}

// part is a component of a CycloneDX bill of materials.
type part struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// bill is a CycloneDX bill of materials.
type bill struct {
	Format   string         `json:"bomFormat"`
	Spec     string         `json:"specVersion"`
	Version  int            `json:"version"`
	Metadata map[string]any `json:"metadata"`
	Parts    []part         `json:"components"`
}

// billOfMaterials lists the modules of this program, which the linker wrote into it.
func billOfMaterials() bill {
	b := command.ReadBuild()
	all := bill{"CycloneDX", "1.6", 1, map[string]any{"component": part{"application", "fspda", b.Version,
		"pkg:golang/fspda@" + b.Version}}, []part{{"library", "std", b.Go, "pkg:golang/std@" + b.Go}}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all.Parts = append(all.Parts, part{"library", m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version})
	}
	return all
}
