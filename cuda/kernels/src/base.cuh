// What all units share. They are compiled by NVRTC, which has no headers of its own, and for tests by a C++ compiler with
// hostrun/host.h before them, which defines FSPDA_HOST. No product is fused with a sum unless the source says fma: units are compiled with
// --fmad=false.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// KERNEL begins a kernel whose blocks have at most so many threads.
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

// KERNEL_OF also says how many blocks of a kernel shall run on a multiprocessor at a time: it bounds the registers.
#define KERNEL_OF(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)

// APART begins a function that is called, for its code is long and wanted in many places.
#ifdef FSPDA_HOST
#define APART static
#else
#define APART static __device__ __noinline__
#endif

#ifndef FSPDA_HOST
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif

#define WARP 32
#define ALL_LANES 0xffffffffu

// thread_index numbers the threads of a grid of one dimension.
__device__ inline i64 thread_index() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline float quiet_nan() { return __uint_as_float(0x7fc00000u); }

// fours tells whether vectors that begin at these addresses can be read in vectors of four.
__device__ inline bool fours(u64 addresses) { return (addresses & 15) == 0; }

__device__ inline u64 address(const void *p) { return (u64)p; }

// Four numbers of float32 as an array.
struct Four {
  float v[4];
};

__device__ inline Four load4(const float *p) {
  float4 q = *(const float4 *)p;
  return Four{{q.x, q.y, q.z, q.w}};
}

__device__ inline void store4(float *p, const Four &f) { *(float4 *)p = float4{f.v[0], f.v[1], f.v[2], f.v[3]}; }
