package cuda

import (
	"fmt"
	"path/filepath"

	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/cuda/nvrtc"
)

// libraries is NVIDIA's libraries, and the kernels that NVRTC has compiled.
type libraries struct {
	cubins     map[string]nvrtc.Binary
	blas       *cublas.API
	lt         *cublas.LtAPI // nil where it lacks functions: then kernels add biases and apply ReLU
	dnn        *cudnn.API    // nil where there is none
	dnnErr     error         // why
	choicesDir string        // where the chosen algorithms of convolutions are kept, "" for nowhere
	memoryDir  string        // where the memory that runs took is kept, "" for nowhere
}

// open binds the libraries of a toolkit and compiles the kernels.
func (t *toolkit) open(p driver.Properties) (l libraries, err error) {
	if l.cubins, err = compileKernels(t.nvrtc.handle, p); err != nil {
		return l, err
	}
	if l.blas, err = cublas.Bind(t.cublas.handle); err != nil {
		return l, err
	}
	if lt, err := cublas.BindLt(t.lt.handle); err == nil {
		l.lt = lt
	}
	if l.dnnErr = t.cudnn.err; l.dnnErr == nil {
		l.dnn, l.dnnErr = cudnn.Bind(t.cudnn.handle)
	}
	if dir, err := cudnn.DefaultDir(); err == nil { // else convolutions are timed at each start
		l.choicesDir = dir
		l.memoryDir = filepath.Join(filepath.Dir(dir), "gpu-memory")
	}
	return l, nil
}

// compileKernels compiles the kernels, or takes them from the user's cache.
func compileKernels(h *dynlib.Handle, p driver.Properties) (map[string]nvrtc.Binary, error) {
	l, err := nvrtc.Open(h)
	if err != nil {
		return nil, err
	}
	if !l.Supports(p.Arch()) {
		return nil, fmt.Errorf("cuda: NVRTC %d.%d (%s) cannot compile for %s (%s): install another version of CUDA's "+
			"libraries", l.Major, l.Minor, l.Path, p.Arch(), p.Name)
	}
	dir, err := nvrtc.DefaultDir()
	if err != nil { // a user without a folder compiles at each start
		return kernels.Compile(l, nil, p.Arch())
	}
	return kernels.Compile(l, l.Cache(dir), p.Arch())
}

// handles is the libraries' handles for the executor's stream, which the executor uses.
type handles struct {
	blas    *cublas.Handle
	lt      *cublas.Lt    // nil where there is none; shares the workspace of blas
	dnn     *cudnn.Handle // nil where there is none
	dnnErr  error         // why
	choices *cudnn.ChoiceCache

	workspace driver.Pointer // The memory that blas and lt compute in.
}

// blasWorkspace is the workspace of cuBLAS, in bytes: NVIDIA's advice for the largest GPUs.
const blasWorkspace = 32 << 20

func (d *Device) openHandles(l libraries) (err error) {
	h, ex := &d.handles, d.exec
	if h.blas, err = l.blas.New(ex.Stream); err != nil {
		return err
	}
	workspace, err := ex.Alloc(blasWorkspace)
	if err != nil {
		return err
	}
	if l.lt != nil {
		if h.lt, err = l.lt.New(ex.Stream, workspace.At, blasWorkspace); err != nil {
			return err
		}
	}
	h.dnnErr = l.dnnErr
	if l.dnn != nil {
		if h.dnn, err = l.dnn.New(ex.Stream); err != nil {
			return err
		}
		h.choices = &cudnn.ChoiceCache{Dir: l.choicesDir, GPU: d.properties.Name, Version: l.dnn.Version()}
	}
	h.workspace = workspace.At
	return h.useWorkspace(workspace.At)
}

// useWorkspace has the products that are sent next use a workspace of blasWorkspace bytes.
func (h *handles) useWorkspace(at driver.Pointer) error {
	if h.lt != nil {
		h.lt.UseWorkspace(at)
	}
	return h.blas.UseWorkspace(at, blasWorkspace)
}

// all returns the handles that are open.
func (h *handles) all() (open []executor.Closer) {
	if h.blas != nil {
		open = append(open, h.blas)
	}
	if h.lt != nil {
		open = append(open, h.lt)
	}
	if h.dnn != nil {
		open = append(open, h.dnn)
	}
	return open
}
