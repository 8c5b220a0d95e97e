// Package deps is temporary: it keeps go.mod whole while the rooms are being built.
package deps

import (
	_ "github.com/agnivade/levenshtein"
	_ "github.com/chewxy/hm"
	_ "github.com/goccy/go-yaml"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/spf13/cobra"
	_ "github.com/spf13/pflag"
	_ "go.uber.org/zap"
	_ "go4.org/unsafe/assume-no-moving-gc"
	_ "golang.org/x/sys/cpu"
	_ "golang.org/x/term"
	_ "gonum.org/v1/gonum/blas/gonum"
	_ "gonum.org/v1/gonum/mat"
	_ "gonum.org/v1/plot"
	_ "gonum.org/v1/plot/plotter"
	_ "gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg"
	_ "gonum.org/v1/plot/vg/vgsvg"
	_ "google.golang.org/protobuf/encoding/protowire"
	_ "gorgonia.org/gorgonia"
	_ "gorgonia.org/tensor"
)
