package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"fspda/cuda/cudnn"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/internal/wholefile"
)

// Estimates of the memory that the driver and its libraries take besides blocks.
const (
	graphBytes   = 1 << 20   // the graph of a gradient of some hundred kernels
	libraryBytes = 128 << 20 // kernels that cuBLAS and cuDNN load at first use
)

// At most maxOverheads measured values are stored for the same work, the newest ones. A value above
// mostEstimates estimates includes memory that other processes took, and is not stored.
const (
	maxOverheads  = 5
	mostEstimates = 8
)

// overheads stores the memory that runs took of a GPU besides blocks, as files in a folder.
type overheads struct {
	dir     string // "" stores nothing
	machine string // everything that the values depend on besides the work
	blocks  int    // bytes of blocks when the device had been opened
	stored  atomic.Bool
}

// overheadFile is the content of a file: the values, the work and machine for which they were
// measured, and a checksum that detects damage.
type overheadFile struct {
	For   string   `json:"for"`
	Bytes []uint64 `json:"bytes"` // one value for each of the newest runs, oldest first
	Sum   string   `json:"sum"`
}

// openOverheads notes everything that the values depend on, and the blocks that exist now, on the
// executor.
func (d *Device) openOverheads(dir string, driverVersion int, dnn *cudnn.API) {
	o, library := &d.overheads, uintptr(0)
	if dnn != nil {
		library = dnn.Version()
	}
	all := kernels.Digest(slices.Collect(maps.Keys(kernels.Files()))...)
	o.dir, o.blocks = dir, d.exec.ReservedBytes()
	o.machine = fmt.Sprintf("%s of %d bytes, driver %d, cuDNN %d, kernels %s, %+v, cooperative launches %t",
		d.properties.Name, d.properties.Memory, driverVersion, library, all, d.settings, d.hasCooperativeLaunches())
}

func (o *overheads) file(work string, sets int) (f overheadFile, path string) {
	f.For = fmt.Sprintf("%s, %d sets of vectors, on %s", work, sets, o.machine)
	sum := sha256.Sum256([]byte(f.For))
	return f, filepath.Join(o.dir, hex.EncodeToString(sum[:16])+".json")
}

// digest returns the checksum of a file's other fields.
func (f overheadFile) digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s;%v", f.For, f.Bytes))
	return hex.EncodeToString(sum[:8])
}

// read returns the stored values of the same work, oldest first, none if there are none. The error
// says that a file cannot be used.
func (o *overheads) read(work string, sets int) ([]uint64, error) {
	want, path := o.file(work, sets)
	if o.dir == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cuda: reading the memory that earlier runs took: %w", err)
	}
	var f overheadFile
	if json.Unmarshal(bytes.TrimSpace(text), &f) != nil || f.For != want.For || f.Sum != f.digest() {
		return nil, fmt.Errorf("cuda: reading the memory that earlier runs took: %s is damaged and not used; a run to "+
			"its end replaces it", path)
	}
	return f.Bytes, nil
}

func (o *overheads) write(work string, sets int, values []uint64) error {
	f, path := o.file(work, sets)
	f.Bytes = values
	f.Sum = f.digest()
	text, err := json.Marshal(f)
	if err == nil {
		err = wholefile.Write(path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cuda: storing the memory that a run took: %w", err)
	}
	return nil
}

// estimate returns the value of [Device.Overhead] where nothing was measured.
func estimate(sets int) uint64 {
	return libraryBytes + graphBytes*uint64(min(sets, executor.MaxGraphs))
}

// Overhead returns the bytes besides blocks: graphs for each set of vectors, and the libraries'
// kernels. If earlier runs of the same work have measured them, it is the median of the newest
// five, of an even number the smaller one in the middle: so neither one run in which other
// processes took memory nor one in which they gave memory back decides alone. Otherwise it is an
// estimate. The error says why stored values were not used.
func (d *Device) Overhead(work string, sets int) (bytes uint64, measured bool, err error) {
	known, err := d.overheads.read(work, sets)
	if len(known) == 0 {
		return estimate(sets), false, err
	}
	slices.Sort(known)
	return known[(len(known)-1)/2], true, nil
}

// KeepOverhead stores the memory that the run that ends has taken besides blocks, for later
// forecasts of the same work. It stores one value in the life of a device, because graphs and
// kernels of earlier runs stay loaded in later ones, and none if the device has timed candidates of
// convolutions, whose kernels stay loaded. So a stored value implies that the choices of the work
// are stored too. It leaves out values that are not possible: none or less, or more than eight
// times the estimate, which other processes have taken.
func (d *Device) KeepOverhead(work string, sets int) error {
	o, took := &d.overheads, 0
	if o.dir == "" {
		return nil
	}
	err := d.exec.Do(func() error {
		if d.handles.choices.Timed() || !o.stored.CompareAndSwap(false, true) {
			return nil
		}
		free, _, err := d.exec.FreeMemory()
		took = int(d.freeWhenOpen) - int(free) - (d.exec.ReservedBytes() - o.blocks)
		return err
	})
	if err != nil || took <= 0 || uint64(took) > mostEstimates*estimate(sets) {
		return err
	}
	values, _ := o.read(work, sets) // a damaged file is replaced, as Overhead has said
	values = append(values, uint64(took))
	// If two processes store at the same time, one value may be lost, which harms nothing.
	return o.write(work, sets, values[max(0, len(values)-maxOverheads):])
}
