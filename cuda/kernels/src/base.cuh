// Definitions shared by all units. NVRTC compiles them without any headers of its own; for tests, a
// C++ compiler compiles them with internal/testing/hostrun/host.h included first, which defines FSPDA_HOST. Products
// and sums are never fused unless the source says fma: units are compiled with --fmad=false.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// KERNEL declares a kernel with at most this many threads per block.
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

// KERNEL_OCCUPANCY also sets the number of blocks that must fit on a multiprocessor, which bounds
// the registers.
#define KERNEL_OCCUPANCY(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)

// NOINLINE declares a function that is called instead of inlined, because its code is long and used
// in many places.
#ifdef FSPDA_HOST
#define NOINLINE static
#else
#define NOINLINE static __device__ __noinline__
#endif

// ALWAYS_INLINE declares a function whose arrays must stay in registers of the caller. The compiler
// leaves long functions with many callers for later, when arrays are already in memory.
#ifdef FSPDA_HOST
#define ALWAYS_INLINE inline
#else
#define ALWAYS_INLINE __device__ __forceinline__
#endif

#ifndef FSPDA_HOST
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif

#define WARP 32
#define ALL_LANES 0xffffffffu

// thread_index returns the global index of the thread in a one-dimensional grid.
__device__ inline i64 thread_index() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline float quiet_nan() { return __uint_as_float(0x7fc00000u); }

// aligned16 reports whether all of these addresses, combined by or, allow 16-byte accesses.
__device__ inline bool aligned16(u64 addresses) { return (addresses & 15) == 0; }

__device__ inline u64 address(const void *p) { return (u64)p; }

// Four is a float4 that can be indexed.
struct Four {
  float v[4];
};

__device__ inline Four load4(const float *p) {
  float4 q = *(const float4 *)p;
  return Four{{q.x, q.y, q.z, q.w}};
}

__device__ inline void store4(float *p, const Four &f) { *(float4 *)p = float4{f.v[0], f.v[1], f.v[2], f.v[3]}; }
