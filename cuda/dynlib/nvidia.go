package dynlib

import "fmt"

// Driver is libcuda, which comes with the kernel module of the GPU and with nothing else.
func Driver() *Library {
	return &Library{
		Name:  "the NVIDIA driver",
		Files: []string{"libcuda.so.1"},
		Extra: []string{"/usr/lib/wsl/lib/libcuda.so.1"},
		// in containers, on NixOS
		Last: []string{"/usr/local/nvidia/lib64/libcuda.so.1", "/usr/local/nvidia/lib/libcuda.so.1",
			"/run/opengl-driver/lib/libcuda.so.1"},
		Hint: "install the driver of the GPU (on a container: run it with --gpus all)",
	}
}

// Majors are the versions of CUDA whose libraries work with a driver of version driver (1000·major
// + 10·minor) on GPUs of the compute capability cc (10·major + minor), the best first. CUDA 13
// ended the support of GPUs before 7.5.
func Majors(driver, cc int) []int {
	var all []int
	for _, major := range []int{13, 12} {
		if driver/1000 >= major && (major < 13 || cc >= 75) {
			all = append(all, major)
		}
	}
	return all
}

// NVRTC compiles kernels at run time. It finds its built-in functions only where they have been
// opened before.
func NVRTC(major int) *Library {
	return &Library{
		Name:  "NVRTC",
		Files: []string{fmt.Sprintf("libnvrtc.so.%d", major)},
		Wheel: []string{fmt.Sprintf("nvidia/cu%d/lib", major), "nvidia/cuda_nvrtc/lib"},
		First: []string{fmt.Sprintf("libnvrtc-builtins.so.%d.*", major)},
		Hint:  pip(major, "cuda-nvrtc"),
	}
}

// CUBLAS multiplies matrices. It opens cuBLASLt by itself, from its own folder.
func CUBLAS(major int) *Library {
	l := cublas("cuBLAS", "libcublas.so.%d", major)
	l.First = []string{fmt.Sprintf("libcublasLt.so.%d", major)}
	return l
}

// CUBLASLt multiplies matrices and does more to the product.
func CUBLASLt(major int) *Library { return cublas("cuBLASLt", "libcublasLt.so.%d", major) }

func cublas(name, file string, major int) *Library {
	return &Library{
		Name:  name,
		Files: []string{fmt.Sprintf(file, major)},
		Wheel: []string{fmt.Sprintf("nvidia/cu%d/lib", major), "nvidia/cublas/lib"},
		Hint:  pip(major, "cublas"),
	}
}

// lastCUDNNForVolta is the last version of cuDNN with kernels for GPUs before 7.5.
const lastCUDNNForVolta = 91002

// CUDNN convolves, on GPUs of the compute capability cc, beside other libraries of the given
// version of CUDA. It opens parts of itself by name, and must not get those of another
// installation.
func CUDNN(major, cc int) *Library {
	l := &Library{
		Name:  "cuDNN",
		Files: []string{"libcudnn.so.9"},
		Wheel: []string{"nvidia/cudnn/lib"},
		Then:  []string{"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9", "libcudnn_*.so.9"},
		Hint:  pip(major, "cudnn"),
	}
	if cc < 75 {
		l.Hint = fmt.Sprintf("pip install 'nvidia-cudnn-cu%d<9.11'", major)
	}
	l.Refuse = func(path string) error { return cudnnEvidence(path).fits(major, cc) }
	l.Accept = func(h *Handle) error { return acceptCUDNN(h, major, cc) }
	return l
}

// pip tells how to get a library without a toolkit.
func pip(major int, name string) string {
	if major >= 13 && name != "cudnn" {
		return fmt.Sprintf("pip install 'nvidia-%s==%d.*'", name, major)
	}
	return fmt.Sprintf("pip install nvidia-%s-cu%d", name, major)
}

// versions are functions of cuDNN that need no GPU.
type versions struct {
	Version func() uintptr `sym:"cudnnGetVersion"`
	CUDA    func() uintptr `sym:"cudnnGetCudartVersion"`
}

func acceptCUDNN(h *Handle, major, cc int) error {
	var v versions
	if err := Bind(&v, h); err != nil {
		return err
	}
	says, seen := evidence{cuda: int(v.CUDA()) / 1000, version: int(v.Version())}, cudnnEvidence(h.Path)
	if seen.cuda != 0 && seen.cuda != says.cuda || seen.version != 0 && seen.version != says.version {
		return fmt.Errorf("it says that it is %s for CUDA %d, for parts of that one are open in this program already",
			says, says.cuda)
	}
	return says.fits(major, cc)
}

// fits tells whether that cuDNN works beside other libraries of a version of CUDA, on GPUs of the
// compute capability cc.
func (e evidence) fits(major, cc int) error {
	if e.cuda != 0 && e.cuda != major {
		return fmt.Errorf("%s is built for CUDA %d, want one for CUDA %d", e, e.cuda, major)
	}
	if cc < 75 && e.version > lastCUDNNForVolta {
		return fmt.Errorf("%s has no kernels for compute capability %d.%d, want 9.10.2 or older", e, cc/10, cc%10)
	}
	return nil
}

func (e evidence) String() string {
	if e.version == 0 {
		return "it"
	}
	return fmt.Sprintf("version %d.%d.%d", e.version/10000, e.version/100%100, e.version%100)
}
