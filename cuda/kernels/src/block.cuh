// Where a block stands. A body is a kernel's work for one block, which it is told instead of looking it up: so that a kernel that is launched
// (Launched) and a march (march.cu), whose blocks take the places of those of many kernels, run the same code. A body
//   - takes the block first, and asks it for its place, its threads and its shared memory,
//   - lets all its threads come to each block.sync(),
//   - comes to one before it first writes shared memory: the block before it may still read.
#pragma once
#include "base.cuh"

#define BODY template <class Block> __device__ inline void

// global says that an address which was read from memory is one of the GPU's or the host's memory, and not of a block's: such are read faster.
template <class T> __device__ inline T *global(T *p) {
#ifndef FSPDA_HOST
  __builtin_assume(__isGlobal(p));
#endif
  return p;
}

// Launched is a block of the launch that runs.
struct Launched {
  __device__ u32 x() const { return blockIdx.x; }
  __device__ u32 y() const { return blockIdx.y; }
  __device__ u32 z() const { return blockIdx.z; } // the agent, where there are several
  __device__ u32 thread() const { return threadIdx.x; }
  __device__ u32 threads() const { return blockDim.x; }
  __device__ i64 index() const { return thread_index(); } // of the thread, among those of all blocks along x
  __device__ void sync() const { __syncthreads(); }
};

// shared_of is the block's shared memory as a T, which has no constructor. A body has one.
template <class T> __device__ inline T &shared_of(const Launched &) {
  __shared__ T room;
  return room;
}
