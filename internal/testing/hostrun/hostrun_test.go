package hostrun

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"fspda/cuda/dynlib"
	"fspda/cuda/kernels"
)

// unit has kernels that check that the host behaves as a GPU does.
const unit = `
typedef unsigned long long u64;

extern "C" __global__ void reverse(int *x) { // through shared memory
  __shared__ int held[256];
  held[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * blockDim.x + threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void shuffles(int *x) {
  // rows of 32: value, down 3, up 3 in halves, xor 5, lane 7, lanes above 20
  int lane = threadIdx.x, v = 100 + lane;
  x[lane] = v;
  x[32 + lane] = __shfl_down_sync(0xffffffffu, v, 3);
  x[64 + lane] = __shfl_up_sync(0xffffffffu, v, 3, 16);
  x[96 + lane] = __shfl_xor_sync(0xffffffffu, v, 5);
  x[128 + lane] = __shfl_sync(0xffffffffu, v, 7);
  x[160 + lane] = (int)__ballot_sync(0xffffffffu, lane > 20);
  double d = __shfl_xor_sync(0xffffffffu, 0.5 * lane, 16);
  x[192 + lane] = (int)(2 * d);
}

extern "C" __global__ void poisoned(float *x) {
  DYNAMIC_SHARED(bytes);
  x[threadIdx.x] = ((float *)bytes)[threadIdx.x];
  ((float *)bytes)[threadIdx.x] = 1.0f;
}

extern "C" __global__ void diverges(int *x, int at) {
  if ((int)threadIdx.x < at) __syncthreads();
  else __syncwarp();
  x[threadIdx.x] = 1;
}

extern "C" __global__ void races(int *x) { // a barrier is missing
  __shared__ int held[64];
  held[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = threadIdx.x ? held[threadIdx.x - 1] : -1;
}

extern "C" __global__ void follows(int *x) { // a block relies on the one before
  if (threadIdx.x == 0) x[blockIdx.x] = blockIdx.x ? x[blockIdx.x - 1] + 1 : 1;
}

#define BOUND 64
#define BOUNDED(threads) extern "C" __global__ void __launch_bounds__(threads, 2)
BOUNDED(BOUND) bounded(int *x) { x[threadIdx.x] = 7; }

extern "C" __global__ void slants(float *x) { // reads four numbers at an address for one
  float4 v = *(const float4 *)(x + 1);
  x[threadIdx.x] = v.x;
}

extern "C" __global__ void unwritten(float *x) {
  __shared__ float held[32];
  x[threadIdx.x] = held[threadIdx.x];
  held[threadIdx.x] = 1.0f;
}

extern "C" __global__ void strays(int *x) {
  if (threadIdx.x == 3) x[0] = __shfl_sync(0xfffffff0u, 1, 0);
}

extern "C" __global__ void cooperates(int *x, int wanted) {
  // x[0] counts blocks; each pair of warps counts its threads in shared memory
  DYNAMIC_SHARED(bytes);
  int *held = (int *)bytes, pair = threadIdx.x / 64;
  if (threadIdx.x % 64 == 0) held[pair] = 0;
  barrier_sync(1 + pair, 64);
  if (pair == 1) atomicAdd(&held[pair], 1);
  barrier_sync(1 + pair, 64);
  if (threadIdx.x == 0) {
    atomicAdd(&x[0], 1);
    while (*(volatile int *)x < wanted) spin_wait();
  }
  __syncthreads();
  if (threadIdx.x < 2) x[1 + 2 * blockIdx.x + threadIdx.x] = held[threadIdx.x] + 1000 * x[0];
}
`

func testKernels() []*kernels.Kernel {
	x := kernels.Param{Name: "x", Kind: kernels.Pointer}
	var all []*kernels.Kernel
	for _, name := range []string{"reverse", "shuffles", "poisoned", "diverges", "strays", "cooperates", "races",
		"follows", "unwritten", "bounded", "slants"} {
		all = append(all, &kernels.Kernel{Name: name, Unit: "test.cu", Params: []kernels.Param{x}})
	}
	for _, i := range []int{3, 5} {
		all[i].Params = append(all[i].Params, kernels.Param{Name: "n", Kind: kernels.Int32})
	}
	return all
}

func opened(t *testing.T) (*Library, map[string]*kernels.Kernel) {
	t.Helper()
	all := testKernels()
	l, err := openUnits(map[string]string{"test.cu": unit}, all)
	if _, ok := errors.AsType[*dynlib.Error](err); errors.Is(err, ErrNoCompiler) || ok && !dynlib.Supported {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]*kernels.Kernel{}
	for _, k := range all {
		named[k.Name] = k
	}
	return l, named
}

func launch(k *kernels.Kernel, blocks, threads, shared int, args ...uint64) kernels.Call {
	return kernels.Call{Kernel: k, Args: args, Launch: kernels.Launch{Grid: [3]uint32{uint32(blocks), 1, 1},
		Block: [3]uint32{uint32(threads), 1, 1}, Shared: uint32(shared)}}
}

func TestBarriersAndShuffles(t *testing.T) {
	l, k := opened(t)
	var m Memory
	x := make([]int32, 512)
	for i := range x {
		x[i] = int32(i)
	}
	if err := l.Launch(&m, launch(k["reverse"], 2, 256, 0, uint64(At(&m, x)))); err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if want := int32(i/256*256 + 255 - i%256); x[i] != want {
			t.Fatalf("number %d is %d, want %d", i, x[i], want)
		}
	}
	if err := l.Launch(&m, launch(k["shuffles"], 1, 32, 0, uint64(At(&m, x)))); err != nil {
		t.Fatal(err)
	}
	for lane := range 32 {
		down, up, xor := lane+3, lane-3, lane^5
		if down > 31 {
			down = lane
		}
		if lane%16 < 3 {
			up = lane
		}
		ballot := int32(-1) << 21
		for row, want := range []int32{int32(100 + lane), int32(100 + down), int32(100 + up), int32(100 + xor), 107,
			ballot, int32(lane ^ 16)} {
			if x[32*row+lane] != want {
				t.Errorf("row %d, lane %d: %d, want %d", row, lane, x[32*row+lane], want)
			}
		}
	}
}

// Dynamic shared memory holds NaN when a block begins, whatever the previous block wrote.
func TestSharedMemoryIsPoisoned(t *testing.T) {
	l, k := opened(t)
	var m Memory
	x := make([]float32, 32)
	if err := l.Launch(&m, launch(k["poisoned"], 2, 32, 128, uint64(At(&m, x)))); err != nil {
		t.Fatal(err)
	}
	for i, v := range x {
		if v == v {
			t.Errorf("number %d is %v", i, v)
		}
	}
}

// A kernel that relies on the order of threads or blocks gives a wrong result in another order.
func TestOrders(t *testing.T) {
	l, k := opened(t)
	for _, c := range []struct {
		kernel          string
		blocks, threads int
		want            func(i int) int32
	}{
		{"races", 1, 64, func(i int) int32 { return int32(i - 1) }},
		{"follows", 64, 32, func(i int) int32 { return int32(i + 1) }},
	} {
		for order, right := range map[string]bool{"ascending": true, "descending": false, "0": false, "5": false,
			"": false} {
			var m Memory
			x := make([]int32, 64)
			for i := range x {
				x[i] = int32(i)
			}
			if err := l.Order(order); err != nil {
				t.Fatal(err)
			}
			if err := l.Launch(&m, launch(k[c.kernel], c.blocks, c.threads, 0, uint64(At(&m, x)))); err != nil {
				t.Fatal(err)
			}
			same := true
			for i := range x {
				same = same && x[i] == c.want(i)
			}
			if same != right {
				t.Errorf("%s in order %q: right is %v, want %v", c.kernel, order, same, right)
			}
		}
	}
	if err := l.Order("backwards"); err == nil || !strings.Contains(err.Error(), "backwards") {
		t.Errorf("%v", err)
	}
}

// A block that exceeds its kernel's launch bounds is rejected.
func TestLaunchBounds(t *testing.T) {
	l, k := opened(t)
	var m Memory
	x := make([]int32, 128)
	if err := l.Launch(&m, launch(k["bounded"], 1, 64, 0, uint64(At(&m, x)))); err != nil || x[63] != 7 {
		t.Errorf("%d, %v", x[63], err)
	}
	if err := l.Launch(&m, launch(k["bounded"], 1, 65, 0, uint64(At(&m, x)))); err == nil ||
		!strings.Contains(err.Error(), "launch bounds") {
		t.Errorf("%v", err)
	}
}

// Shared arrays hold NaN when a block begins, whatever the previous block wrote.
func TestSharedArraysArePoisoned(t *testing.T) {
	l, k := opened(t)
	var m Memory
	x := make([]float32, 32)
	if err := l.Launch(&m, launch(k["unwritten"], 2, 32, 0, uint64(At(&m, x)))); err != nil {
		t.Fatal(err)
	}
	for i, v := range x {
		if v == v {
			t.Errorf("number %d is %v", i, v)
		}
	}
}

// TestMain lets the test binary act as a program that makes a misaligned access.
func TestMain(m *testing.M) {
	if os.Getenv(misalignedVariable) != "" {
		runMisaligned()
	}
	os.Exit(m.Run())
}

const misalignedVariable = "HOSTRUN_TEST_SLANTS"

func runMisaligned() {
	all := testKernels()
	l, err := openUnits(map[string]string{"test.cu": unit}, all)
	if err != nil {
		fmt.Println(err)
		os.Exit(0)
	}
	var m Memory
	x := make([]float32, 32)
	err = l.Launch(&m, launch(all[len(all)-1], 1, 4, 0, uint64(At(&m, x))))
	fmt.Println("it ran", err)
	os.Exit(0)
}

// The checked build ends a program that reads four numbers at a misaligned address.
func TestChecked(t *testing.T) {
	opened(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), misalignedVariable+"=1", CheckedVariable+"=1")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "-lubsan") {
		t.Skip("the compiler lacks the sanitizer library")
	}
	if err == nil || !strings.Contains(string(out), "misaligned address") || !strings.Contains(string(out), "test.cu") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A barrier that not all threads reach is an error, after which the library still works.
func TestDivergence(t *testing.T) {
	l, k := opened(t)
	var m Memory
	x := make([]int32, 512)
	for range 2 {
		err := l.Launch(&m, launch(k["diverges"], 1, 64, 0, uint64(At(&m, x)), 40))
		if err == nil || !strings.Contains(err.Error(), "wait for each other") || !strings.Contains(err.Error(),
			"diverges") {
			t.Errorf("a barrier for some threads: %v", err)
		}
		if err := l.Launch(&m, launch(k["strays"], 1, 32, 0, uint64(At(&m, x)))); err == nil ||
			!strings.Contains(err.Error(), "without its own") {
			t.Errorf("a warp operation without the calling lane: %v", err)
		}
		if err := l.Launch(&m, launch(k["diverges"], 3, 64, 0, uint64(At(&m, x)), 64)); err != nil {
			t.Errorf("a barrier for all threads: %v", err)
		}
	}
	if err := l.Launch(&m, launch(k["reverse"], 0, 32, 0, uint64(At(&m, x)))); err == nil ||
		!strings.Contains(err.Error(), "empty grid") {
		t.Errorf("no block: %v", err)
	}
}

// The blocks of a cooperative launch run at the same time, each with its own shared memory. Waiting
// for more blocks than there are is an error.
func TestCooperative(t *testing.T) {
	l, k := opened(t)
	var m Memory
	for _, blocks := range []int{3, 1, 4} {
		x := make([]int32, 1+2*blocks)
		c := launch(k["cooperates"], blocks, 128, 8, uint64(At(&m, x)), uint64(blocks))
		c.Cooperative = true
		if err := l.Launch(&m, c); err != nil {
			t.Fatal(err)
		}
		for i, v := range x[1:] {
			if want := int32(1000*blocks + 64*(i%2)); v != want {
				t.Errorf("%d blocks: number %d is %d, want %d", blocks, i, v, want)
			}
		}
		c.Args[1], x[0] = uint64(blocks+1), 0
		if err := l.Launch(&m, c); err == nil || !strings.Contains(err.Error(), "wait for each other") {
			t.Errorf("%d blocks that wait for another: %v", blocks, err)
		}
		c.Cooperative, c.Args[1], x[0] = false, 1, 0
		if err := l.Launch(&m, c); err != nil {
			t.Errorf("%d blocks, one after the other: %v", blocks, err)
		}
	}
	c := launch(k["cooperates"], 65, 64, 8, 0, 65)
	if c.Cooperative = true; l.Launch(&m, c) == nil {
		t.Error("65 blocks are there at the same time")
	}
}

// A parameter table that does not match the source is rejected before anything runs.
func TestTableIsChecked(t *testing.T) {
	opened(t)
	all := testKernels()
	all[0].Params[0].Kind = kernels.Float32
	if _, err := openUnits(map[string]string{"test.cu": unit}, all); err == nil || !strings.Contains(err.Error(),
		`reverse of test.cu takes parameters "p", the table has "f"`) {
		t.Errorf("%v", err)
	}
}

// A build error includes the compiler's message.
func TestBuildError(t *testing.T) {
	opened(t)
	_, err := openUnits(map[string]string{"test.cu": "this is no C++\n"}, testKernels())
	if err == nil || !strings.Contains(err.Error(), "test.cu:1") {
		t.Errorf("%v", err)
	}
}
