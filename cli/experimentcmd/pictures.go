package experimentcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/internal/bounded"
	"fspda/web"
)

// picturesFile describes the pictures of a figure's folder, so that plot draws them again.
const picturesFile = "pictures.json"

// pictures is the content of picturesFile.
type pictures struct {
	Caption  []string  `json:"caption"`
	Raw      bool      `json:"raw,omitempty"`
	TimeUnit string    `json:"time_unit"`
	Curves   []drawn   `json:"curves"`
	Pictures []picture `json:"pictures"`
}

// drawn is a curve: the mean of some runs.
type drawn struct {
	Name  string   `json:"name"`
	Group string   `json:"group,omitempty"`
	Style int      `json:"style"` // The Style of [web.Curve].
	Runs  []string `json:"runs"`  // folders, below the figure's
}

// picture is a file of panels.
type picture struct {
	Name   string      `json:"name"` // The name of the file, without its ending.
	Title  string      `json:"title"`
	Across int         `json:"across"`
	Panels []web.Panel `json:"panels"`
}

func (p *pictures) comparison(of picture, curves []web.Curve, l web.Layout) *web.Comparison {
	return &web.Comparison{Title: of.Title, Panels: of.Panels, Across: of.Across, Caption: p.Caption, Curves: curves,
		Raw: p.Raw, Layout: l, TimeUnit: p.TimeUnit}
}

func (p *pictures) draw(folder string, curves []web.Curve, l web.Layout) error {
	var errs []error
	for _, of := range p.Pictures {
		errs = append(errs, p.comparison(of, curves, l).WriteImages(filepath.Join(folder, of.Name)))
	}
	return errors.Join(errs...)
}

func (p *pictures) save(folder string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("describe the pictures of %s: %w", folder, err)
	}
	return command.WriteFile(filepath.Join(folder, picturesFile), string(text)+"\n")
}

func drawnCurve(folder string, s bench.Setting, c web.Curve) (d drawn, err error) {
	d = drawn{Name: c.Name, Group: c.Group, Style: c.Style}
	for _, o := range s.Outcomes {
		run, err := filepath.Rel(folder, o.Folder)
		if err != nil {
			return d, fmt.Errorf("describe the pictures of %s: %w", folder, err)
		}
		d.Runs = append(d.Runs, filepath.ToSlash(run))
	}
	return d, nil
}

func (d drawn) read(folder string) (web.Curve, error) {
	var runs []web.Curve
	for _, name := range d.Runs {
		run, err := web.ReadCurve(filepath.Join(folder, filepath.FromSlash(name)), d.Name)
		if err != nil {
			return run, err
		}
		runs = append(runs, run)
	}
	c := web.MeanCurve(d.Name, d.Group, runs)
	c.Style = d.Style
	return c, nil
}

// redraw draws the pictures of a figure's folder again, from its runs, with another layout. It
// returns false for a folder that does not describe any.
func redraw(folder, out string, l web.Layout) (ok bool, err error) {
	path := filepath.Join(folder, picturesFile)
	text, err := bounded.File(path, 16<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var p pictures
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return true, fmt.Errorf("%s does not describe pictures: %w: run the figure again, which keeps its runs", path,
			err)
	}
	var curves []web.Curve
	for _, d := range p.Curves {
		c, err := d.read(folder)
		if err != nil {
			return true, err
		}
		curves = append(curves, c)
	}
	if err := command.MakeFolder(out); err != nil {
		return true, err
	}
	return true, p.draw(out, curves, l)
}
