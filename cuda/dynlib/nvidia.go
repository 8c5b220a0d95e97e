package dynlib

import "fmt"

// Driver is libcuda. It is installed with the kernel module of the GPU only.
func Driver() *Library {
	return &Library{
		Name:           "the NVIDIA driver",
		Files:          []string{"libcuda.so.1"},
		PreferredPaths: []string{"/usr/lib/wsl/lib/libcuda.so.1"},
		// these exist in containers and on NixOS
		FallbackPaths: []string{"/usr/local/nvidia/lib64/libcuda.so.1", "/usr/local/nvidia/lib/libcuda.so.1",
			"/run/opengl-driver/lib/libcuda.so.1"},
		Hint: "install the driver of the GPU (on a container: run it with --gpus all)",
	}
}

// Majors returns the CUDA major versions whose libraries work with a driver version (1000·major +
// 10·minor) and a compute capability (10·major + minor), best first. CUDA 13 dropped GPUs below
// 7.5.
func Majors(driver, cc int) []int {
	var all []int
	for _, major := range []int{13, 12} {
		if driver/1000 >= major && (major < 13 || cc >= 75) {
			all = append(all, major)
		}
	}
	return all
}

// NVRTC compiles kernels at run time. It finds its built-in functions only if their library is
// already open.
func NVRTC(major int) *Library {
	return &Library{
		Name:       "NVRTC",
		Files:      []string{fmt.Sprintf("libnvrtc.so.%d", major)},
		WheelDirs:  []string{fmt.Sprintf("nvidia/cu%d/lib", major), "nvidia/cuda_nvrtc/lib"},
		LoadBefore: []string{fmt.Sprintf("libnvrtc-builtins.so.%d.*", major)},
		Hint:       pip(major, "cuda-nvrtc"),
	}
}

// CUBLAS multiplies matrices. It opens cuBLASLt from its own folder.
func CUBLAS(major int) *Library {
	l := cublas("cuBLAS", "libcublas.so.%d", major)
	l.LoadBefore = []string{fmt.Sprintf("libcublasLt.so.%d", major)}
	return l
}

// CUBLASLt multiplies matrices with an epilogue.
func CUBLASLt(major int) *Library { return cublas("cuBLASLt", "libcublasLt.so.%d", major) }

func cublas(name, file string, major int) *Library {
	return &Library{Name: name, Files: []string{fmt.Sprintf(file, major)},
		WheelDirs: []string{fmt.Sprintf("nvidia/cu%d/lib", major), "nvidia/cublas/lib"}, Hint: pip(major, "cublas")}
}

// lastCUDNNForVolta is the last cuDNN version with kernels for GPUs below 7.5.
const lastCUDNNForVolta = 91002

// CUDNN computes convolutions, on GPUs of compute capability cc, with other libraries of the given
// CUDA version. It opens parts of itself by name, which must come from the same installation.
func CUDNN(major, cc int) *Library {
	l := &Library{
		Name:      "cuDNN",
		Files:     []string{"libcudnn.so.9"},
		WheelDirs: []string{"nvidia/cudnn/lib"},
		LoadAfter: []string{"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9"},
		// These have attention, engines that compile at run time and additions of later versions.
		// Convolutions do without, and some need libraries that a machine may lack.
		LoadOptional: []string{"libcudnn_*.so.9"},
		Hint:         pip(major, "cudnn"),
	}
	if cc < 75 {
		l.Hint = fmt.Sprintf("pip install 'nvidia-cudnn-cu%d<9.11'", major)
	}
	l.Precheck = func(path string) error { return inspectCUDNN(path).fits(major, cc) }
	l.Accept = func(h *Handle) error { return acceptCUDNN(h, major, cc) }
	return l
}

// pip returns the command that installs a library without a toolkit.
func pip(major int, name string) string {
	if major >= 13 && name != "cudnn" {
		return fmt.Sprintf("pip install 'nvidia-%s==%d.*'", name, major)
	}
	return fmt.Sprintf("pip install nvidia-%s-cu%d", name, major)
}

// versions binds functions of cuDNN that need no GPU.
type versions struct {
	Version func() uintptr `sym:"cudnnGetVersion"`
	CUDA    func() uintptr `sym:"cudnnGetCudartVersion"`
}

func acceptCUDNN(h *Handle, major, cc int) error {
	var v versions
	if err := Bind(&v, h); err != nil {
		return err
	}
	reported, inspected := cudnnBuild{cuda: int(v.CUDA()) / 1000, version: int(v.Version())}, inspectCUDNN(h.Path)
	if inspected.cuda != 0 && inspected.cuda != reported.cuda ||
		inspected.version != 0 && inspected.version != reported.version {
		return fmt.Errorf("it reports %s for CUDA %d, because parts of that version are already open in this program",
			reported, reported.cuda)
	}
	return reported.fits(major, cc)
}

// fits returns an error if the cuDNN cannot be used with a CUDA version and a compute capability.
func (e cudnnBuild) fits(major, cc int) error {
	if e.cuda != 0 && e.cuda != major {
		return fmt.Errorf("%s is built for CUDA %d, want one for CUDA %d", e, e.cuda, major)
	}
	if cc < 75 && e.version > lastCUDNNForVolta {
		return fmt.Errorf("%s has no kernels for compute capability %d.%d, want 9.10.2 or older", e, cc/10, cc%10)
	}
	return nil
}

func (e cudnnBuild) String() string {
	if e.version == 0 {
		return "this cuDNN"
	}
	return fmt.Sprintf("version %d.%d.%d", e.version/10000, e.version/100%100, e.version%100)
}
