// A kernel body is the work of one thread block. It receives its block index as an argument instead
// of reading blockIdx, so that a kernel launch (GridBlock) and the megakernel (megakernel.cu),
// whose blocks take the roles of the blocks of many kernels, run the same code. A body
//
// - takes the block as its first argument, and gets its index, threads and shared memory from it;
//
// - lets all its threads reach each block.sync();
//
// - calls block.sync() before its first write to shared memory, because the previous block may
// still be reading.
#pragma once
#include "base.cuh"

#define BODY template <class Block> __device__ inline void

// global promises the compiler that an address read from memory points to global memory, not to
// shared memory, which makes accesses faster.
template <class T> __device__ inline T *global(T *p) {
#ifndef FSPDA_HOST
  __builtin_assume(__isGlobal(p));
#endif
  return p;
}

// in_register keeps a pointer as it is, where the compiler would compute it anew at each use.
template <class T> __device__ inline T *in_register(T *p) {
#ifndef FSPDA_HOST
  asm("" : "+l"(p));
#endif
  return global(p);
}

// GridBlock is a block of the running launch.
struct GridBlock {
  __device__ u32 x() const { return blockIdx.x; }
  __device__ u32 y() const { return blockIdx.y; }
  __device__ u32 z() const { return blockIdx.z; } // the agent, if there are several
  __device__ u32 thread() const { return threadIdx.x; }
  __device__ u32 threads() const { return blockDim.x; }
  __device__ i64 index() const { return thread_index(); } // global index of the thread along x
  __device__ void sync() const { __syncthreads(); }
};

// shared_of returns the block's shared memory as a T, which must have no constructor. A body may
// call it for one type only.
template <class T> __device__ inline T &shared_of(const GridBlock &) {
  __shared__ T memory;
  return memory;
}
